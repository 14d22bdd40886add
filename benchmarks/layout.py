"""Laying a table out by two columns, beside Delta Lake's OPTIMIZE ZORDER BY of the same rows.

Run: python -m benchmarks.layout [--rows 2000000] [--repeats 3] [--out FILE]

Both tables hold the same rows of store_sales (TPC-DS), shuffled, in 32 files. Each turn lays out a
copy of each, ours by `Table.optimize`, Delta's by OPTIMIZE in a Spark session of all cores that has
warmed up; both make files of the same size. Then DuckDB and Spark ask both for a sum over 1 % of
one column, of the other, and of both, and the files are counted whose bounds in the log fit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, SEED, copied, make_store_sales
from lakesplice import Table
from lakesplice.planning.upkeep.clustering import ClusterPolicy

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "layout.json"
BY = ("ss_sold_date_sk", "ss_item_sk")
_FILES, _FILE_BYTES, _SHARE = 32, 4 * 2**20, 0.01
_WHERE = ("lake", "s", "sales")
_SETTINGS = {"spark.databricks.delta.optimize.maxFileSize": str(_FILE_BYTES)}


class Bench:
    """Tables of ours and of Delta with the same rows in as many files."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self._folder = folder
        self.spark: SparkSession = delta_session(settings=_SETTINGS)
        self.ranges = {name: _middle(rows.column(name)) for name in BY}
        size = -(-rows.num_rows // _FILES)
        table, source = None, folder / "rows.parquet"
        for at in range(0, rows.num_rows, size):
            part = rows.slice(at, size)
            if table is None:
                table = Table.create(folder.joinpath("ours", *_WHERE), part, key=KEY)
            else:
                table.upsert(part)
        pq.write_table(rows, source)
        frame = self.spark.read.parquet(str(source)).repartition(_FILES)
        frame.write.format("delta").save(str(folder / "delta"))

    def ours(self) -> float:
        """Lay out a copy of our table; returns seconds."""
        table = Table.open(copied(self._folder / "ours").joinpath(*_WHERE))
        started = time.monotonic()
        table.optimize(BY, policy=ClusterPolicy(file_bytes=_FILE_BYTES))
        return time.monotonic() - started

    def delta(self) -> float:
        """Lay out a copy of Delta's; returns seconds."""
        copy = copied(self._folder / "delta")
        started = time.monotonic()
        self.spark.sql(f"optimize delta.`{copy}` zorder by ({', '.join(BY)})").collect()
        return time.monotonic() - started

    def query(self, name: str, columns: tuple[str, ...], turns: int) -> dict[str, Any]:
        """Ask one table, laid out or not, for a sum; returns seconds per engine, and counts."""
        root = self._folder / name
        folder = root.joinpath(*_WHERE) if name.endswith("ours") else root
        live = " and not _is_deleted" if name.endswith("ours") else ""
        within = [f"{one} between {low} and {high}" for one, (low, high) in self._of(columns)]
        asked = f"count(*), sum(ss_net_profit) from {{}} where {' and '.join(within)}{live}"
        table = DeltaTable(str(folder))
        paths = table.file_uris()
        adds = pa.table(table.get_add_actions(flatten=True)).to_pylist()
        opened = sum(all(_fits(add, *one) for one in self._of(columns)) for add in adds)
        engines: dict[str, Callable[[], Any]] = {
            "duckdb": lambda: duckdb.sql(
                f"select {asked.format(f'read_parquet({paths})')}"
            ).fetchall(),
            "spark": lambda: self.spark.sql(
                f"select {asked.format(f'delta.`{folder}`')}"
            ).collect(),
        }
        seconds: dict[str, list[float]] = {engine: [] for engine in engines}
        answers = set()
        for turn in range(turns + 1):
            for engine, ask in engines.items():
                started = time.monotonic()
                ((rows, profit),) = ask()
                answers.add((rows, str(profit)))
                if turn:
                    seconds[engine].append(time.monotonic() - started)
        assert len(answers) == 1, answers
        return {"files": len(paths), "opened": opened, "rows": rows, "seconds": seconds}

    def _of(self, columns: tuple[str, ...]) -> list[tuple[str, tuple[int, int]]]:
        return [(column, self.ranges[column]) for column in columns]


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "store_sales.parquet"
        make_store_sales(part, 1)
        rows = pq.read_table(part).slice(0, args.rows)
        shuffled = rows.take(pa.array(np.random.default_rng(SEED).permutation(rows.num_rows)))
        bench = Bench(Path(folder), shuffled)
        found = _measured(bench, args.repeats)
        bench.spark.stop()
    args.out.write_text(json.dumps({"rows": args.rows, "by": BY, **found}, indent=1) + "\n")


def _measured(bench: Bench, repeats: int) -> dict[str, Any]:
    ways: dict[str, Callable[[], float]] = {"lakesplice": bench.ours, "delta": bench.delta}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):  # the first warms up
        for name, run in [*ways.items()][:: 1 if turn % 2 else -1]:
            took = run()
            if turn:
                seconds[name].append(took)
    print({name: round(statistics.median(took), 2) for name, took in seconds.items()}, flush=True)
    queries = []
    for columns in ((BY[0],), (BY[1],), BY):
        for name in ("ours", "delta", "copy-ours", "copy-delta"):
            asked = bench.query(name, columns, 3)
            queries.append({"table": name, "columns": columns, **asked})
            medians = {e: round(statistics.median(s), 3) for e, s in asked["seconds"].items()}
            print(columns, name, asked["files"], asked["opened"], medians, flush=True)
    return {"seconds": seconds, "queries": queries}


def _fits(add: dict[str, Any], column: str, wanted: tuple[int, int]) -> bool:
    return bool(add[f"min.{column}"] <= wanted[1] and add[f"max.{column}"] >= wanted[0])


def _middle(column: pa.ChunkedArray) -> tuple[int, int]:
    """The range of 1 % of a column's values, from its middle up."""
    low, high = np.quantile(column.drop_null().to_numpy(), [0.5, 0.5 + _SHARE])
    return int(low), int(high)


if __name__ == "__main__":
    main()
