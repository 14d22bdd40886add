"""What erasing rows costs, beside Delta Lake's DELETE, REORG … APPLY (PURGE) and VACUUM.

Run: python -m benchmarks.erasure [--rows 1000000] [--files 16] [--repeats 3] [--without-delta]

A table of store_sales (TPC-DS) in some files, sorted by when they were sold, loses 100 rows of one
file, or 100 rows of any. Ours deletes them, which isn't measured, and erases them: base files and
index written again, older versions ended, a checkpoint, and the log cleaned. Delta deletes them
with deletion vectors, which isn't measured either, then purges and vacuums, in a Spark session of
all cores that has warmed up. The search of all bytes, which Delta has no counterpart of, is
measured by itself. Both share the machine with whatever else runs, so each is also measured in
seconds of the processor: of this process, and of Spark's JVM.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, SEED, store_sales
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


class Seconds(NamedTuple):
    """What a turn took, by the clock and of the processor."""

    clock: float
    processor: float


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

    def run(self) -> Seconds:
        """Erase the rows of a copy."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / "ours", copy)
        table = Table.open(copy.joinpath(*_WHERE))
        started, busy = time.monotonic(), time.process_time()
        done = table.erase(self._keys)
        assert done.rows == KEYS
        return Seconds(time.monotonic() - started, time.process_time() - busy)

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
        pq.write_table(rows, folder / "rows.parquet")
        writer = spark.read.parquet(str(folder / "rows.parquet")).coalesce(1).write.format("delta")
        writer = writer.option("delta.enableDeletionVectors", "true")
        writer.option("maxRecordsPerFile", size).save(str(place))
        spark.read.parquet(str(folder / "keys.parquet")).createOrReplaceTempView("gone")
        on = " AND ".join(f"t.{key} = g.{key}" for key in KEY)
        spark.sql(
            f"MERGE INTO delta.`{place}` t USING gone g ON {on} WHEN MATCHED THEN DELETE"
        ).collect()

    def processor(self) -> float:
        """The seconds of the processor that the JVM had so far."""
        gateway: Any = self._spark.sparkContext._gateway  # no other way to its pid
        fields = Path("/proc", str(gateway.proc.pid), "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self) -> Seconds:
        """Purge and vacuum a copy."""
        copy = self._folder / "delta copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / "delta", copy)
        self._spark.conf.set(_NO_WAIT, "false")
        started, busy = time.monotonic(), self.processor()
        self._spark.sql(f"REORG TABLE delta.`{copy}` APPLY (PURGE)").collect()
        self._spark.sql(f"VACUUM delta.`{copy}` RETAIN 0 HOURS").collect()
        return Seconds(time.monotonic() - started, self.processor() - busy)


def measured(who: str, run: Callable[[], Seconds], repeats: int) -> list[Seconds]:
    """Run some times after a turn that warms up."""
    found = []
    for _ in range(repeats + 1):
        found.append(run())
        print(f"  {who}: {found[-1].clock:.2f} s, {found[-1].processor:.2f} s busy", flush=True)
    return found[1:]


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
        rows = store_sales(folder, args.rows)
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
    print(which, flush=True)
    ours = Ours(folder, rows, args.files, keys)
    found = {"lakesplice": measured("lakesplice", ours.run, args.repeats)}
    searched, searched_bytes = ours.search()
    print(f"  search: {searched:.2f} s, {searched_bytes} bytes", flush=True)
    ratios = {}
    if spark is not None:
        delta = Delta(spark, folder, rows, args.files, keys)
        found["delta"] = measured("delta", delta.run, args.repeats)
        ratios = {
            "clock": _median(found["delta"], 0) / _median(found["lakesplice"], 0),
            "processor": _median(found["delta"], 1) / _median(found["lakesplice"], 1),
        }
        told = ", ".join(f"{ratio:.1f} by the {name}" for name, ratio in ratios.items())
        print(f"  times as fast: {told} (aim: {AIMS[which]})", flush=True)
    return {
        "cell": which,
        "keys": KEYS,
        "ratios": ratios,
        "seconds": {who: [list(one) for one in turns] for who, turns in found.items()},
        "search": {"seconds": searched, "bytes": searched_bytes},
    }


def _median(turns: list[Seconds], which: int) -> float:
    return statistics.median(turn[which] for turn in turns)


if __name__ == "__main__":
    main()
