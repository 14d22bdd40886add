"""A stream of what commits changed, beside Delta Lake's change data feed of the same changes.

Run: python -m benchmarks.changes [--rows 1000000] [--commits 10] [--share 0.02] [--repeats 5]

Both tables start from the same rows of store_sales (TPC-DS) and get the same upserts of whole rows:
ours by `Table.upsert`, Delta's by MERGE with `delta.enableChangeDataFeed`. One Spark session
streams both feeds in turn, all columns, into nothing (`noop`). Delta's feed has images of what was
before too, and is asked to leave them out.

    catching up   all commits but the first, with `availableNow`: a query started, run and ended.
                  Beside them a data source in Python that has no rows: what Spark takes to start
                  and ask one
    following     a query that runs; a commit more each time, and how long its micro-batch took.
                  Beside them a data source in Python that has the same rows in a Parquet file: what
                  Spark takes to get them from Python. Who is measured gets the commit last, so that
                  nobody writes meanwhile
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from benchmarks.delta_session import delta_session
from benchmarks.splice.data import KEY, SEED, store_sales
from lakesplice import Table
from lakesplice.spark.python_workers import keep_zip_directories

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "changes.json"
OURS, DELTA_FEED, NOTHING, READY = "lakesplice", "delta", "nothing", "ready"
_BATCH_ROWS = 1 << 14
_POLL_S, _BATCH_S_MAX = 0.05, 120.0


class Nothing(DataSource):
    """A stream in Python without rows."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "nothing"

    def schema(self) -> str:
        """Return one column."""
        return "n int"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Return the reader of one part."""
        return _NothingReader()


class _NothingReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(at) for at in range(start["at"], end["at"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:  # noqa: ARG002
        return iter(())


class Ready(DataSource):
    """A stream in Python of the rows of `changes-<n>.parquet`, one file a version."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return READY

    def schema(self) -> StructType:
        """Return the columns of the first file."""
        return from_arrow_schema(pq.read_schema(_changes(Path(self.options["path"]), 1)))

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Return the reader of one part for each file."""
        return _ReadyReader(Path(self.options["path"]), int(self.options["starting_version"]))


class _ReadyReader(DataSourceStreamReader):
    def __init__(self, folder: Path, first: int) -> None:
        self._folder, self._first, self._next = folder, first, first

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": self._first}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        while _changes(self._folder, self._next).exists():
            self._next += 1
        return {"at": self._next}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(at) for at in range(start["at"], end["at"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        keep_zip_directories()
        file = pq.ParquetFile(_changes(self._folder, partition.value))
        yield from file.iter_batches(_BATCH_ROWS)


def _changes(folder: Path, number: int) -> Path:
    return folder / f"changes-{number}.parquet"


class Bench:
    """Two tables with the same commits."""

    def __init__(self, folder: Path, rows: pa.Table, share: float) -> None:
        self.folder, self._rows, self._share = folder, rows, share
        self._random, self._number = np.random.default_rng(SEED), 0
        self.spark = delta_session("local[2]", "3g", {"spark.sql.shuffle.partitions": "2"})
        self.spark.sparkContext.setLogLevel("ERROR")
        self.spark.dataSource.register(Nothing)
        self.spark.dataSource.register(Ready)
        self._table = Table.create(self._ours, rows, key=KEY)
        pq.write_table(rows, folder / "rows.parquet")
        self.spark.read.parquet(str(folder / "rows.parquet")).createOrReplaceTempView("rows")
        self.spark.sql(
            f"create table {self._delta} using delta"
            " tblproperties ('delta.enableChangeDataFeed' = 'true') as select * from rows"
        )

    def commit(self, last: str = OURS) -> None:
        """Upsert the same rows to both tables, and put them into a file; to one way last."""
        rows, self._number = self._rows, self._number + 1
        count = round(rows.num_rows * self._share)
        at = np.sort(self._random.choice(rows.num_rows, count, replace=False))
        some = rows.take(pa.array(at))
        place = some.column_names.index("ss_quantity")
        new = pa.array(np.full(len(at), self._number), some.field(place).type)
        some = some.set_column(place, "ss_quantity", new)
        path = _changes(self.folder, self._number)
        pq.write_table(some, path.with_suffix(".new"))
        to: dict[str, Callable[[], object]] = {
            OURS: lambda: self._table.upsert(some),
            DELTA_FEED: lambda: self._merge(path.with_suffix(".new")),
            READY: lambda: path.hardlink_to(path.with_suffix(".new")),
        }
        for way in sorted(to, key=last.__eq__):
            to[way]()

    def _merge(self, path: Path) -> None:
        self.spark.read.parquet(str(path)).createOrReplaceTempView("changes")
        matching = " and ".join(f"t.{name} = c.{name}" for name in KEY)
        self.spark.sql(
            f"merge into {self._delta} t using changes c on {matching}"
            " when matched then update set * when not matched then insert *"
        )

    def frame(self, way: str, first: int) -> DataFrame:
        """A way's stream, from a version on."""
        reader = self.spark.readStream
        if way == NOTHING:
            return reader.format("nothing").load()
        if way == READY:
            asked = reader.format(READY).option("starting_version", str(max(1, first)))
            return asked.load(str(self.folder))
        if way == OURS:
            asked = reader.format("lakesplice").option("changes", "true")
            return asked.option("starting_version", str(first)).load(str(self._ours))
        asked = reader.format("delta").option("readChangeFeed", "true")
        found = asked.option("startingVersion", str(first)).load(str(self.folder / "delta"))
        return found.where("_change_type <> 'update_preimage'")

    def caught_up(self, way: str) -> tuple[float, int]:
        """Stream all there is; returns the seconds it took and the rows that came in."""
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            writing = self.frame(way, 1).writeStream.format("noop")
            query = (
                writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            )
            query.awaitTermination()
            rows = sum(int(progress["numInputRows"]) for progress in query.recentProgress)
        return time.monotonic() - started, rows

    def followed(self, way: str, commits: int) -> list[float]:
        """Let a query run while commits come; returns the seconds that each one's batch took."""
        with tempfile.TemporaryDirectory(dir=self.folder) as checkpoint:
            writing = self.frame(way, self._number).writeStream.format("noop")
            query = (
                writing.option("checkpointLocation", checkpoint)
                .trigger(processingTime="0 seconds")
                .start()
            )
            _await_batches(query, 1)  # the present version's
            for number in range(commits):
                self.commit(last=way)
                _await_batches(query, number + 2)
            found = _batches(query)[1:]
            query.stop()
        return found

    @property
    def _ours(self) -> Path:
        return self.folder / "lake" / "s" / "sales"

    @property
    def _delta(self) -> str:
        return f"delta.`{self.folder / 'delta'}`"


def _batches(query: StreamingQuery) -> list[float]:
    return [
        one["durationMs"]["triggerExecution"] / 1000
        for one in query.recentProgress
        if one["numInputRows"]
    ]


def _await_batches(query: StreamingQuery, count: int) -> None:
    deadline = time.monotonic() + _BATCH_S_MAX
    while len(_batches(query)) < count:
        if (failure := query.exception()) is not None:
            raise failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"batch {count} didn't end in {_BATCH_S_MAX} s")
        time.sleep(_POLL_S)


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
        rows = store_sales(Path(folder), args.rows)
        bench = Bench(Path(folder), rows, args.share)
        for _ in range(args.commits):
            bench.commit()
        found = {
            "catching_up": _in_turn(bench.caught_up, args.repeats, (OURS, DELTA_FEED, NOTHING))
        }
        _say("catching up", found["catching_up"])
        # The first of each query starts what the others find running.
        found["following"] = {
            way: bench.followed(way, args.repeats + 1)[1:] for way in (OURS, DELTA_FEED, READY)
        }
        _say("following", found["following"])
        bench.spark.stop()
    facts = {"rows": args.rows, "commits": args.commits, "share": args.share}
    args.out.write_text(json.dumps({**facts, "seconds": found}, indent=1) + "\n")


def _say(name: str, ways: dict[str, list[float]]) -> None:
    medians = {way: statistics.median(seconds) for way, seconds in ways.items()}
    ratio = medians[DELTA_FEED] / medians[OURS]
    shown = {way: round(seconds, 2) for way, seconds in medians.items()}
    print(name, shown, round(ratio, 2), flush=True)


def _in_turn(
    run: Callable[[str], tuple[float, int]], repeats: int, ways: tuple[str, ...]
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(repeats + 1):  # the first warms up
        for way in ways[:: 1 if turn % 2 else -1]:
            seconds, rows = run(way)
            if turn:
                found[way].append(seconds)
            else:
                print(f"{way}: {rows} rows", flush=True)
    return found


if __name__ == "__main__":
    main()
