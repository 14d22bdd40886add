"""What erasing rows costs, beside Delta Lake's DELETE, REORG … APPLY (PURGE) and VACUUM.

Run: python -m benchmarks.erasure [--rows 1000000] [--files 16] [--repeats 3] [--without-delta]

A table of store_sales (TPC-DS) in some files, sorted by when they were sold, loses 100 rows of one
file, or 100 rows of any. Ours deletes them, which isn't measured, and erases them: base files and
index written again, older versions ended, a checkpoint, and the log cleaned. Delta deletes them
with deletion vectors, which isn't measured either, then purges and vacuums, in a Spark session of
all cores that has warmed up. The search of all bytes, which Delta has no counterpart of, is
measured by itself. All share the machine with whatever else runs, so the least of some turns
counts as well as the median, and ours also in seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.change_feed import delta_session
from benchmarks.splice.data import KEY, SEED, make_store_sales
from lakesplice import Table
from lakesplice.apps.erasing.byte_search import files_in, search

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "erasure.json"
KEYS = 100
ONE_FILE, RANDOM = "keys of one file", "random keys"
AIMS = {ONE_FILE: 10.0, RANDOM: 2.0}
_WHERE = ("lake", "s", "sales")
_NO_WAIT = "spark.databricks.delta.retentionDurationCheck.enabled"


def chosen(rows: pa.Table, files: int, which: str) -> pa.Table:
    """The keys to erase: of rows of the second file, or of any."""
    per_file = -(-rows.num_rows // files)
    count = per_file if which == ONE_FILE else rows.num_rows
    first = per_file if which == ONE_FILE else 0
    at = np.random.default_rng(SEED).choice(count, KEYS, replace=False) + first
    return rows.select(list(KEY)).take(pa.array(np.sort(at)))


class Ours:
    """A table of some base files, of which the rows are deleted."""

    def __init__(self, folder: Path, rows: pa.Table, files: int, keys: pa.Table) -> None:
        self._folder, self._keys = folder, [list(key.values()) for key in keys.to_pylist()]
        place = (folder / "ours").joinpath(*_WHERE)
        shutil.rmtree(folder / "ours", ignore_errors=True)
        size = -(-rows.num_rows // files)
        table = Table.create(place, rows.slice(0, size), key=KEY)
        for first in range(size, rows.num_rows, size):
            table.upsert(rows.slice(first, size))
        table.upsert(delete=keys)
        table.compact()

    def run(self, clock: Callable[[], float] = time.monotonic) -> float:
        """Erase the rows of a copy; return the seconds."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / "ours", copy)
        table = Table.open(copy.joinpath(*_WHERE))
        started = clock()
        done = table.erase(self._keys)
        seconds = clock() - started
        assert done.rows == KEYS
        return seconds

    def search(self) -> tuple[float, int]:
        """Search the erased copy; return the seconds and the bytes."""
        values = [f"column:{KEY[0]}={key[0]}" for key in self._keys[:1]]
        started, read = time.monotonic(), list(files_in(self._folder / "copy"))
        search(read, [*values, "hex:" + "ab" * 16])
        return time.monotonic() - started, sum(len(data) for _, data in read)


class Delta:
    """Delta's table of as many files, with deletion vectors for the rows."""

    def __init__(
        self, spark: SparkSession, folder: Path, rows: pa.Table, files: int, keys: pa.Table
    ) -> None:
        self._spark, self._folder = spark, folder
        place, size = folder / "delta", -(-rows.num_rows // files)
        shutil.rmtree(place, ignore_errors=True)
        pq.write_table(keys, folder / "keys.parquet")
        for first in range(0, rows.num_rows, size):
            part = folder / "part.parquet"
            pq.write_table(rows.slice(first, size), part)
            writer = spark.read.parquet(str(part)).coalesce(1).write.format("delta").mode("append")
            writer.option("delta.enableDeletionVectors", "true").save(str(place))
        spark.read.parquet(str(folder / "keys.parquet")).createOrReplaceTempView("gone")
        on = " AND ".join(f"t.{key} = g.{key}" for key in KEY)
        spark.sql(
            f"MERGE INTO delta.`{place}` t USING gone g ON {on} WHEN MATCHED THEN DELETE"
        ).collect()

    def processor(self) -> float:
        """The seconds of the processor that the JVM had so far."""
        jvm: Any = self._spark.sparkContext._jvm  # pyspark offers no other way
        bean = jvm.java.lang.management.ManagementFactory.getOperatingSystemMXBean()
        return float(bean.getProcessCpuTime()) / 1e9

    def run(self, clock: Callable[[], float] = time.monotonic) -> float:
        """Purge and vacuum a copy; return the seconds."""
        copy = self._folder / "delta copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / "delta", copy)
        self._spark.conf.set(_NO_WAIT, "false")
        started = clock()
        self._spark.sql(f"REORG TABLE delta.`{copy}` APPLY (PURGE)").collect()
        self._spark.sql(f"VACUUM delta.`{copy}` RETAIN 0 HOURS").collect()
        return clock() - started


def measured(run: Callable[[], float], repeats: int) -> list[float]:
    """Run some times after a turn that warms up; return the seconds of each."""
    return [run() for _ in range(repeats + 1)][1:]


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-delta", action="store_true")
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    spark = None if args.without_delta else delta_session()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_store_sales(folder / "store_sales.parquet", 1)
        rows = pq.read_table(folder / "store_sales.parquet").slice(0, args.rows)
        cells = [_cell(folder, rows, args, which, spark) for which in AIMS]
    if spark is not None:
        spark.stop()
    args.out.write_text(
        json.dumps({"rows": args.rows, "files": args.files, "cells": cells}, indent=1) + "\n"
    )


def _cell(
    folder: Path, rows: pa.Table, args: argparse.Namespace, which: str, spark: SparkSession | None
) -> dict[str, Any]:
    keys = chosen(rows, args.files, which)
    ours = Ours(folder, rows, args.files, keys)
    seconds = {"lakesplice": measured(ours.run, args.repeats)}
    seconds["lakesplice, processor"] = measured(lambda: ours.run(time.process_time), args.repeats)
    searched, searched_bytes = ours.search()
    if spark is not None:
        delta = Delta(spark, folder, rows, args.files, keys)
        seconds["delta"] = measured(delta.run, args.repeats)
        seconds["delta, processor"] = measured(lambda: delta.run(delta.processor), args.repeats)
    medians = {who: round(statistics.median(found), 2) for who, found in seconds.items()}
    print(f"{which}: {medians}; search: {searched:.2f} s, {searched_bytes} bytes", flush=True)
    ratios = {}
    if "delta" in medians:
        ratios["clock"] = medians["delta"] / medians["lakesplice"]
        ratios["processor"] = min(seconds["delta, processor"]) / min(
            seconds["lakesplice, processor"]
        )
        told = ", ".join(f"{ratio:.1f} by the {name}" for name, ratio in ratios.items())
        print(f"  times as fast: {told} (aim: {AIMS[which]})", flush=True)
    return {
        "cell": which,
        "keys": KEYS,
        "ratios": ratios,
        "seconds": seconds,
        "search": {"seconds": searched, "bytes": searched_bytes},
    }


if __name__ == "__main__":
    main()
