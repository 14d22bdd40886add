"""The splice of one base file beside copying it and rewriting it, and what fifty splices leave.

Run: python -m benchmarks.splice.one_file '{"work": …, "parts": […], "megabytes": 128, …}'

Nothing here syncs to the disk, neither we nor the copy: what is compared is the work.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.splice.data import KEY, SEED, changed_columns
from lakesplice.formats.parquet import write_base
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.arrays import Integers
from lakesplice.model.names import (
    IS_DELETED,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import base_rows
from lakesplice.planning.by_hand.hand_fed_schema import hand_fed_schema, stored_rows
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.storage.copying import FileSink, ScratchFile
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.files.plain_rewrite import PlainRewriter
from lakesplice.table.protocol.ports import Rewriter

Figures = dict[str, Any]
SPLICE = best_rewriter(FileSink, os.cpu_count() or 1, ScratchFile)
# Rows and columns that change: what has to cost hardly more than copying, and what is the most.
CHANGES: Mapping[str, tuple[str, float, int]] = {
    "one row, 3 columns": ("one", 0.0, 3),
    "one row, all columns": ("one", 0.0, 23),
    "newest 1 %, 3 columns": ("newest", 0.01, 3),
    "newest 1 %, all columns": ("newest", 0.01, 23),
    "uniform 5 %, 3 columns": ("uniform", 0.05, 3),
    "uniform 20 %, all columns": ("uniform", 0.2, 23),
    "uniform 50 %, all columns": ("uniform", 0.5, 23),
}
_ROWS_PER_MEGABYTE = 28_400
_SPLICES = 50
# Until Java has compiled what a scan runs.
_WARM_UPS = 12


class OneFile:
    """A base file of store_sales of about so many megabytes."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.work = Path(task["work"])
        self.rows = pa.concat_tables(pq.read_table(part) for part in task["parts"])
        wanted = round(task["megabytes"] * _ROWS_PER_MEGABYTE)
        if wanted <= self.rows.num_rows:
            self.rows = self.rows.slice(0, wanted)
        while self.rows.num_rows < wanted:  # the keys repeat: nothing looks for them here
            more = self.rows.slice(0, wanted - self.rows.num_rows)
            self.rows = pa.concat_tables([self.rows, more])
        self.schema: TableSchema = hand_fed_schema(self.rows.schema, KEY)
        self.path = self.work / "one-file.parquet"
        now = pa.scalar(0, pa.timestamp("us", tz="UTC"))
        written = base_rows(stored_rows(self.rows, self.schema), 0, now, self.schema)
        with pa.OSFile(str(self.path), "wb") as sink:
            write_base([written], self.schema, sink)

    def edits(self, spread: str, share: float, columns: int, number: int) -> Edits:
        """The edits of an upsert: some rows, so many columns, and the system's own."""
        total = self.rows.num_rows
        count = max(1, round(total * share))
        random = np.random.default_rng([SEED, number])
        if spread == "newest":
            at = np.arange(total - count, total)
        else:
            at = np.sort(random.choice(total, count, replace=False))
        found = {}
        for name in changed_columns(self.rows.schema, columns):
            values = self.rows.column(name).take(pa.array(random.permutation(total)[:count]))
            found[name] = ColumnEdit(at, values.combine_chunks())
        return Edits(at, found | system_edits(at, number))


def system_edits(at: Integers, position: int) -> dict[str, ColumnEdit]:
    """Return the edits of the system's columns that go with an upsert of the given rows."""
    count = len(at)
    moment = pa.scalar(position, pa.timestamp("us", tz="UTC"))
    return {
        POSITION_FILE: ColumnEdit(at, pa.repeat(pa.scalar(0, pa.int64()), count)),
        POSITION_OFFSET: ColumnEdit(at, pa.repeat(pa.scalar(position, pa.int64()), count)),
        ROW_DIGEST: ColumnEdit(at, pa.nulls(count, pa.int64())),
        IS_DELETED: ColumnEdit(at, pa.repeat(pa.scalar(False), count)),
        SOURCE_TS: ColumnEdit(at, pa.repeat(moment, count)),
    }


def splice_one(file: OneFile, repeats: int) -> list[Figures]:
    """Time splice, plain rewrite and copy in turn; medians."""
    found = []
    for name, (spread, share, columns) in CHANGES.items():
        edits = file.edits(spread, share, columns, 1)
        ways: dict[str, Callable[[], object]] = {
            "splice": partial(_rewrite, file, file.path, SPLICE, edits),
            "plain": partial(_rewrite, file, file.path, PlainRewriter(), edits),
            "copy": lambda: shutil.copyfile(file.path, file.work / "one-file.copy"),
        }
        seconds = _in_turn(ways, repeats)
        found.append({"change": name, "bytes": file.path.stat().st_size, "seconds": seconds})
        print(name, _medians(seconds), flush=True)
    return found


def wear(file: OneFile, repeats: int, splices: int = _SPLICES) -> Figures:
    """Splice a file again and again, and compare it with one that holds the same, written fresh."""
    worn, fresh = file.work / "worn.parquet", file.work / "fresh.parquet"
    shutil.copyfile(file.path, worn)
    for number in range(splices):
        edits = file.edits("uniform", 0.01, 3, 100 + number)
        _rewrite(file, worn, SPLICE, edits).rename(worn)
    _rewrite(file, worn, PlainRewriter(), Edits()).rename(fresh)
    spark = SparkSession.Builder().master("local[2]").config("spark.ui.enabled", "false")
    session = spark.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    engines: dict[str, Callable[[Path], object]] = {
        "pyarrow": pq.read_table,
        # Of hashes, since a maximum might be taken from statistics.
        "duckdb": lambda path: duckdb.sql(
            f"select bit_xor(hash(columns(*))) from '{path}'"
        ).fetchall(),
        "spark": lambda path: (
            session.read.parquet(str(path)).write.format("noop").mode("overwrite").save()
        ),
    }
    scans = {
        name: _in_turn(
            {"worn": partial(scan, worn), "fresh": partial(scan, fresh)},
            repeats,
            _WARM_UPS,
        )
        for name, scan in engines.items()
    }
    session.stop()
    return {
        "splices": splices,
        "bytes_worn": worn.stat().st_size,
        "bytes_fresh": fresh.stat().st_size,
        "bytes_before": file.path.stat().st_size,
        "scan_seconds": scans,
    }


def _rewrite(file: OneFile, path: Path, rewriter: Rewriter, edits: Edits) -> Path:
    written = file.work / "one-file.next"
    base = BaseFile(path.name, path.stat().st_size, (Segment(1, file.rows.num_rows),))
    with pa.memory_map(str(path)) as source, pa.OSFile(str(written), "wb") as sink:
        rewriter.rewrite(source, base, edits, file.schema, sink)
    return written


def _in_turn(
    ways: Mapping[str, Callable[[], object]], repeats: int, warm_ups: int = 1
) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + warm_ups):
        # To be the first after a pause, or the last, is an advantage that all are to have.
        for name, act in [*ways.items()][:: 1 if turn % 2 else -1]:
            os.sync()
            started = time.monotonic()
            act()
            if turn >= warm_ups:
                seconds[name].append(time.monotonic() - started)
    return seconds


def _medians(seconds: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: round(statistics.median(values), 3) for name, values in seconds.items()}


def main() -> None:
    """Run what the first argument describes and keep the figures."""
    task: dict[str, Any] = json.loads(sys.argv[1])
    file = OneFile(task)
    found = {
        "one_file": splice_one(file, task["repeats"]),
        "wear": wear(file, task["repeats"], task["splices"]),
    }
    Path(task["out"]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
