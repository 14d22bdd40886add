"""A stream of what commits changed, beside Delta Lake's change data feed of the same changes.

Run: python -m benchmarks.changes [--rows 1000000] [--commits 10] [--share 0.02] [--repeats 5]

Both tables start from the same rows of store_sales (TPC-DS) and get the same upserts of whole rows,
in as many commits: ours by `Table.upsert`, Delta's by MERGE with `delta.enableChangeDataFeed`. Then
one Spark session streams both feeds, in turn, from the commit after the first on, all columns, into
nothing (`noop`), with `availableNow`; rows are counted once beforehand. Delta's feed has images of
what was before too, and is asked to leave them out.
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from benchmarks.splice.data import KEY, SEED, make_store_sales
from lakesplice import Table
from lakesplice.spark.jars import DELTA, ensure_jars
from lakesplice.spark.session import build_session

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "changes.json"
RATIO_MIN = 1.0


class Bench:
    """Two tables with the same commits."""

    def __init__(self, folder: Path, rows: pa.Table, commits: int, share: float) -> None:
        self.folder = folder
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        self.spark = build_session("local[2]", "3g", ensure_jars(DELTA), settings)
        self.spark.sparkContext.setLogLevel("ERROR")
        self._make(rows, commits, share)

    def ours(self) -> DataFrame:
        """Our changes, from the commit after the first on."""
        stream = self.spark.readStream.format("lakesplice").option("changes", "true")
        return stream.option("starting_version", "1").load(
            str(self.folder / "lake" / "s" / "sales")
        )

    def delta(self) -> DataFrame:
        """Delta's, without images of what was before."""
        stream = self.spark.readStream.format("delta").option("readChangeFeed", "true")
        found = stream.option("startingVersion", "1").load(str(self.folder / "delta"))
        return found.where("_change_type <> 'update_preimage'")

    def drained(self, frame: DataFrame, sink: str = "noop") -> int:
        """Stream all there is; returns the rows that came in."""
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            writing = frame.writeStream.format(sink).option("checkpointLocation", checkpoint)
            query = writing.trigger(availableNow=True).start()
            query.awaitTermination()
            return sum(int(progress["numInputRows"]) for progress in query.recentProgress)

    def _make(self, rows: pa.Table, commits: int, share: float) -> None:
        table = Table.create(self.folder / "lake" / "s" / "sales", rows, key=KEY)
        path = self.folder / "rows.parquet"
        pq.write_table(rows, path)
        spark, where = self.spark, f"delta.`{self.folder / 'delta'}`"
        spark.read.parquet(str(path)).createOrReplaceTempView("rows")
        spark.sql(
            f"create table {where} using delta"
            " tblproperties ('delta.enableChangeDataFeed' = 'true') as select * from rows"
        )
        random = np.random.default_rng(SEED)
        matching = " and ".join(f"t.{name} = c.{name}" for name in KEY)
        for number in range(commits):
            at = np.sort(random.choice(rows.num_rows, round(rows.num_rows * share), replace=False))
            some = rows.take(pa.array(at))
            new = pa.array(np.full(len(at), number), some.field("ss_quantity").type)
            place = some.column_names.index("ss_quantity")
            some = some.set_column(place, "ss_quantity", new)
            table.upsert(some)
            pq.write_table(some, path.with_name(f"changes-{number}.parquet"))
            spark.read.parquet(
                str(path.with_name(f"changes-{number}.parquet"))
            ).createOrReplaceTempView("changes")
            spark.sql(
                f"merge into {where} t using changes c on {matching}"
                " when matched then update set * when not matched then insert *"
            )


def main() -> None:
    """Measure and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=FIGURES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / "store_sales.parquet"
        make_store_sales(part, 1)
        rows = pq.read_table(part).slice(0, args.rows)
        bench = Bench(Path(folder), rows, args.commits, args.share)
        ways: dict[str, Callable[[], DataFrame]] = {"lakesplice": bench.ours, "delta": bench.delta}
        found: dict[str, Any] = {name: [] for name in ways}
        for turn in range(args.repeats + 1):  # the first warms up
            for name, frame in [*ways.items()][:: 1 if turn % 2 else -1]:
                started = time.monotonic()
                count = bench.drained(frame())
                if turn:
                    found[name].append(time.monotonic() - started)
                else:
                    print(f"{name}: {count} rows read", flush=True)
        bench.spark.stop()
    medians = {name: statistics.median(seconds) for name, seconds in found.items()}
    print({name: round(seconds, 2) for name, seconds in medians.items()})
    print(f"Delta's feed takes {medians['delta'] / medians['lakesplice']:.2f} times as long")
    facts = {"rows": args.rows, "commits": args.commits, "share": args.share}
    args.out.write_text(json.dumps({**facts, "seconds": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
