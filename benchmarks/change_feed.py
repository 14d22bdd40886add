"""What a change feed costs a compaction, beside what it costs Delta Lake's MERGE.

Run: python -m benchmarks.change_feed [--rows 1000000] [--repeats 5] [--without-delta]

A table of store_sales (TPC-DS) gets updates of some columns of some rows, and is compacted: with a
change feed, and without, in turn, each time a copy of the same table. Delta's MERGE makes the same
updates with and without `delta.enableChangeDataFeed`, in a Spark session of all cores that has
warmed up. Ours reads the images' columns from the pages that hold the rows, and writes two images
for each; the figure is what that takes, as a share of the compaction without it. Ours is measured
in seconds of the processor, too, of which the least of all turns counts: what else a machine does
only adds to them.
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

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import COLUMNS, KEY, Cell, make_changes, make_store_sales
from lakesplice import Table

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "change_feed.json"
SHARE_MAX = 1.0  # images cost at most as much as the splice
CELLS = (
    Cell(0.05, 3, "uniform"),
    Cell(0.05, COLUMNS, "uniform"),
    Cell(0.2, 3, "uniform"),
    Cell(0.05, 3, "newest"),
)
FEED, PLAIN = "with a feed", "without"
PROCESSOR = "lakesplice, processor"
_WHERE = ("lake", "s", "sales")


class Ours:
    """Tables with changes that wait, one with a change feed."""

    def __init__(self, folder: Path, rows: Path, changes: Path) -> None:
        self._folder = folder
        self.clock: Callable[[], float] = time.monotonic
        for name, feed in ((FEED, True), (PLAIN, False)):
            shutil.rmtree(folder / name, ignore_errors=True)
            place = (folder / name).joinpath(*_WHERE)
            table = Table.create(place, pq.read_table(rows), key=KEY, change_feed=feed)
            table.upsert(pq.read_table(changes), merge=False)

    def run(self, name: str) -> float:
        """Compact a copy of one of them; return the seconds."""
        copy = self._folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / name, copy)
        table = Table.open(copy.joinpath(*_WHERE))
        started = self.clock()
        table.compact()
        return self.clock() - started

    def image_bytes(self) -> int:
        """The bytes of the images of a compaction."""
        self.run(FEED)
        found = (self._folder / "copy").joinpath(*_WHERE, "_change_data").iterdir()
        return sum(file.stat().st_size for file in found)


class Delta:
    """Delta's tables of the same rows, and MERGE."""

    def __init__(self, spark: SparkSession, folder: Path, rows: Path, changes: Path) -> None:
        self._spark, self._folder = spark, folder
        spark.read.parquet(str(changes)).createOrReplaceTempView("changes")
        names = [name for name in pq.read_schema(changes).names if name not in KEY]
        self._set = ", ".join(f"t.{name} = s.{name}" for name in names)
        for name, feed in ((FEED, "true"), (PLAIN, "false")):
            place = folder / f"delta {name}"
            shutil.rmtree(place, ignore_errors=True)
            writer = spark.read.parquet(str(rows)).write.format("delta")
            writer.option("delta.enableChangeDataFeed", feed).save(str(place))

    def run(self, name: str) -> float:
        """Merge into a copy of one of them; return the seconds."""
        copy = self._folder / "delta copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self._folder / f"delta {name}", copy)
        on = " AND ".join(f"t.{key} = s.{key}" for key in KEY)
        started = time.monotonic()
        self._spark.sql(
            f"MERGE INTO delta.`{copy}` t USING changes s ON {on}"
            f" WHEN MATCHED THEN UPDATE SET {self._set}"
        ).collect()
        return time.monotonic() - started


def measured(run: Callable[[str], float], repeats: int) -> dict[str, list[float]]:
    """Run both ways in turn, after a turn that warms up; return the seconds of each."""
    found: dict[str, list[float]] = {FEED: [], PLAIN: []}
    for turn in range(repeats + 1):
        for name in [*found][:: 1 if turn % 2 else -1]:
            seconds = run(name)
            if turn:
                found[name].append(seconds)
    return found


def share(
    seconds: dict[str, list[float]], typical: Callable[[list[float]], float] = statistics.median
) -> float:
    """What the feed takes more, as a share of what is done without it."""
    plain = typical(seconds[PLAIN])
    return (typical(seconds[FEED]) - plain) / plain


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-delta", action="store_true")
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    spark = None if args.without_delta else delta_session()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made, rows = folder / "store_sales.parquet", folder / "rows.parquet"
        make_store_sales(made, 1)
        pq.write_table(pq.read_table(made).slice(0, args.rows), rows)
        cells = [_cell(folder, rows, cell, args.repeats, spark) for cell in CELLS]
    if spark is not None:
        spark.stop()
    args.out.write_text(json.dumps({"rows": args.rows, "cells": cells}, indent=1) + "\n")


def _cell(
    folder: Path, rows: Path, cell: Cell, repeats: int, spark: SparkSession | None
) -> dict[str, Any]:
    changes = folder / "changes.parquet"
    count = make_changes(rows, cell, changes)
    ours = Ours(folder, rows, changes)
    seconds = {"lakesplice": measured(ours.run, repeats)}
    ours.clock = time.process_time
    seconds[PROCESSOR] = measured(ours.run, repeats)
    if spark is not None:
        seconds["delta"] = measured(Delta(spark, folder, rows, changes).run, repeats)
    image_bytes = ours.image_bytes()
    medians = {
        who: {way: round(statistics.median(found), 2) for way, found in ways.items()}
        for who, ways in seconds.items()
    }
    print(f"{cell.name}: {medians}", flush=True)
    print(
        f"  images: {share(seconds['lakesplice']):.2f} of the compaction (at most {SHARE_MAX}),"
        f" {share(seconds[PROCESSOR], min):.2f} of its processor time,"
        f" {image_bytes / count:.0f} bytes a change",
        flush=True,
    )
    return {
        "cell": cell.name,
        "changes": count,
        "image_bytes": image_bytes,
        "shares": {
            who: share(found, min if who == PROCESSOR else statistics.median)
            for who, found in seconds.items()
        },
        "seconds": seconds,
    }


if __name__ == "__main__":
    main()
