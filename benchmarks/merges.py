"""Merging small files, beside Delta Lake's OPTIMIZE of the same rows in as many files.

Run: python -m benchmarks.merges [--rows 2000000] [--repeats 5]

Both tables hold the same rows of store_sales (TPC-DS), in files that were appended one after
another: many of 20,000 rows, which have to be written again, and some of half a million,
whose row groups are copied. Each turn merges a copy of each table into one file, ours by
`Table.merge`, Delta's by OPTIMIZE in a Spark session of all cores that has warmed up. Then all
columns of our merged file are read by pyarrow, beside a file written fresh of the same rows.
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

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, copied, store_sales
from lakesplice import Table
from lakesplice.planning.upkeep.file_merge import FileMergePolicy

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "merges.json"
FASTER_MIN, SCAN_MAX = 5.0, 1.2
ROWS_A_FILE = (20_000, 500_000)
_ALL_TOGETHER = FileMergePolicy(small_bytes=2**40, files_max=2, target_bytes=2**40)
_WHERE = ("lake", "s", "sales")


class Bench:
    """Tables of ours and of Delta with the same rows in as many files."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self._folder, self._rows = folder, rows
        self.spark = delta_session()

    def fill(self, rows_a_file: int) -> int:
        """Make both tables anew; returns their number of files."""
        ours, delta = self._folder / "ours", self._folder / "delta"
        for folder in (ours, delta):
            shutil.rmtree(folder, ignore_errors=True)
        parts = range(0, self._rows.num_rows, rows_a_file)
        table = None
        for at in parts:
            part = self._rows.slice(at, rows_a_file)
            if table is None:
                table = Table.create(ours.joinpath(*_WHERE), part, key=KEY)
            else:
                table.upsert(part)
            source = self._folder / "part.parquet"
            pq.write_table(part, source)
            frame = self.spark.read.parquet(str(source)).coalesce(1)
            frame.write.format("delta").mode("append").save(str(delta))
        return len(parts)

    def ours(self) -> float:
        """Merge a copy of our table; returns seconds."""
        copy = copied(self._folder / "ours").joinpath(*_WHERE)
        table = Table.open(copy)
        started = time.monotonic()
        table.merge_files(policy=_ALL_TOGETHER)
        return time.monotonic() - started

    def delta(self) -> float:
        """Merge a copy of Delta's; returns seconds."""
        copy = copied(self._folder / "delta")
        started = time.monotonic()
        self.spark.sql(f"optimize delta.`{copy}`").collect()
        return time.monotonic() - started

    def scanned(self, repeats: int) -> tuple[list[float], list[float]]:
        """Read our merged file and one written fresh in turn; returns seconds of each."""
        merged = self._folder / "copy-ours" / Path(*_WHERE)
        shutil.rmtree(self._folder / "fresh", ignore_errors=True)
        fresh = self._folder / "fresh" / "s" / "sales"
        Table.create(fresh, self._rows, key=KEY)
        paths = [Table.open(place).snapshot.manifest.files for place in (merged, fresh)]
        found: tuple[list[float], list[float]] = ([], [])
        for turn in range(repeats + 1):
            for seconds, place, files in zip(found, (merged, fresh), paths, strict=True):
                started = time.monotonic()
                for path in files:
                    pq.read_table(place / path)
                if turn:
                    seconds.append(time.monotonic() - started)
        return found


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), store_sales(Path(folder), args.rows))
        cells = [_cell(bench, rows, args.repeats) for rows in ROWS_A_FILE]
        bench.spark.stop()
    args.out.write_text(json.dumps({"rows": args.rows, "cells": cells}, indent=1) + "\n")


def _cell(bench: Bench, rows_a_file: int, repeats: int) -> dict[str, Any]:
    files = bench.fill(rows_a_file)
    ways: dict[str, Callable[[], float]] = {"lakesplice": bench.ours, "delta": bench.delta}
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):  # the first warms up
        for name, run in [*ways.items()][:: 1 if turn % 2 else -1]:
            seconds = run()
            if turn:
                found[name].append(seconds)
    merged, fresh = bench.scanned(repeats)
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    print(
        f"{files} files of {rows_a_file:,} rows:"
        f" { ({name: round(seconds, 2) for name, seconds in medians.items()}) },"
        f" {medians['delta'] / medians['lakesplice']:.1f} times as fast; a scan takes"
        f" {statistics.median(merged) / statistics.median(fresh):.2f} of a fresh file's",
        flush=True,
    )
    return {
        "files": files,
        "rows_a_file": rows_a_file,
        "seconds": found,
        "scan": {"merged": merged, "fresh": fresh},
    }


if __name__ == "__main__":
    main()
