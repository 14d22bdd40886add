"""What a history table costs beside a table of current rows, and beside other ways to keep history.

Run: python -m benchmarks.history [--rows 20000] [--batches 5] [--repeats 3]

Rows are inserted, then half of them change in each batch. A simulated driver reads Debezium's JSON
into a history table and into a table of current rows, which is also compacted after the last batch.
The peer is delta-rs in the same process: it appends the changes, or keeps a dimension of type 2 by
a MERGE that ends the former versions and adds the new ones. It gets the changes as Arrow, so it
decodes nothing. Then current rows are read: DuckDB through the view of the history table, beside
the table of current rows; and the same in Python.

Everything runs in turn. The figures are medians of seconds of the processor, of all threads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import lakesplice
from lakesplice.apps.table_commands.engine_views import engine_views
from lakesplice.planning.engine_views.engines import Engine
from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import bigint, integer, varchar
from lakesplice.testing.shop.database import Row
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

FIGURES = Path(__file__).parents[1] / "docs" / "benchmarks" / "figures" / "history.json"
SPEC = TableSpec("goods", (bigint("id", optional=False), varchar("name"), integer("n")), ("id",))
HISTORY, CURRENT, COMPACTED = "history", "current rows", "current rows, compacted"
APPEND, MERGE = "delta-rs, append", "delta-rs, MERGE"
_OPEN = {"valid_to": "NULL", "is_current": "true"}


class Batches:
    """The source's events by batch, and the same changes as Arrow."""

    def __init__(self, rows: int, batches: int) -> None:
        database = Database([SPEC], seed=1)
        self.topic_name = database.topic(SPEC.name)
        database.insert(SPEC.name, [(key, f"name {key}", 0) for key in range(rows)])
        self.events: list[Sequence[Event]] = [database.drain()]
        self.changes = [_changes(range(rows), 0)]
        for number in range(1, batches + 1):
            keys = range(number % 2, rows, 2)
            chosen = [(key,) for key in keys]

            def changed(row: Row, to: int = number) -> Row:
                return (row[0], row[1], to)

            database.update(SPEC.name, chosen, changed)
            self.events.append(database.drain())
            self.changes.append(_changes(keys, number))


def _changes(keys: range, number: int) -> pa.Table:
    columns = {"id": list(keys), "name": [f"name {key}" for key in keys]}
    return pa.table({**columns, "n": [number] * len(keys), "valid_from": [number] * len(keys)})


def ingest(folder: Path, batches: Batches, *, keeps_versions: bool) -> SimulatedDriver:
    """Read all batches into a table."""
    topic = SimulatedTopic(batches.topic_name, 1)
    driver = SimulatedDriver(
        LocalStore(folder), topic, FixedClock(), SeededEntropy(1), keeps_versions=keeps_versions
    )
    for events in batches.events:
        topic.append(0, events)
        driver.batch()
    return driver


def append(folder: Path, batches: Batches) -> None:
    """Append all changes to a table of Delta's."""
    for changes in batches.changes:
        write_deltalake(str(folder), changes, mode="append")


def merge(folder: Path, batches: Batches) -> None:
    """Keep a dimension of type 2 by a MERGE for each batch."""
    first, *others = batches.changes
    versions = pa.schema([*first.schema, ("valid_to", pa.int64()), ("is_current", pa.bool_())])
    nothing = pa.nulls(len(first), pa.int64())
    current = pa.repeat(pa.scalar(True), len(first))
    begun = pa.Table.from_arrays([*first.columns, nothing, current], schema=versions)
    write_deltalake(str(folder), begun)
    for changes in others:
        ends = changes.append_column("ends", changes["id"])
        begins = changes.append_column("ends", pa.nulls(len(changes), pa.int64()))
        columns = {name: f"s.{name}" for name in first.column_names}
        (
            DeltaTable(str(folder))
            .merge(
                pa.concat_tables([ends, begins]),
                "t.id = s.ends AND t.is_current",
                source_alias="s",
                target_alias="t",
            )
            .when_matched_update({"valid_to": "s.valid_from", "is_current": "false"})
            .when_not_matched_insert({**columns, **_OPEN})
            .execute()
        )


def measured(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of the processor that some work takes, and its result."""
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def written(folder: Path, batches: Batches) -> dict[str, float]:
    """Fill each table once; return the seconds."""
    seconds: dict[str, float] = {}
    work = {
        HISTORY: lambda: ingest(folder / "h", batches, keeps_versions=True),
        CURRENT: lambda: ingest(folder / "c", batches, keeps_versions=False),
    }
    drivers = {}
    for name, fill in work.items():
        seconds[name], drivers[name] = measured(fill)
    compacted, _ = measured(drivers[CURRENT].compact)
    seconds[COMPACTED] = seconds[CURRENT] + compacted
    seconds[APPEND], _ = measured(lambda: append(folder / "a", batches))
    seconds[MERGE], _ = measured(lambda: merge(folder / "m", batches))
    return seconds


def read(folder: Path, expected: int) -> dict[str, float]:
    """Read the current rows of both tables, in both ways; return the seconds."""
    seconds: dict[str, float] = {}
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        extension = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
        database.execute(f"load '{extension / 'delta.duckdb_extension'}'")
        for name, place, rest in ((HISTORY, "h", " WHERE is_current"), (CURRENT, "c", "")):
            (view,) = engine_views(str(folder / place / "shop" / "goods"), Engine.DUCKDB)
            for statement in view.statements:
                database.execute(statement)
            query = f"SELECT id, name, n FROM shop.goods{rest}"
            seconds[f"DuckDB, {name}"], rows = measured(database.sql(query).to_arrow_table)
            assert rows.num_rows == expected
    table = lakesplice.Table.open(str(folder / "h" / "shop" / "goods"))
    seconds[f"Python, {HISTORY}"], rows = measured(lambda: table.read_history(current=True))
    assert rows.num_rows == expected
    table = lakesplice.Table.open(str(folder / "c" / "shop" / "goods"))
    seconds[f"Python, {CURRENT}"], rows = measured(table.read)
    assert rows.num_rows == expected
    return seconds


def main() -> None:
    """Measure, print the medians, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    batches, turns = Batches(given.rows, given.batches), []
    for _ in range(given.repeats):
        folder = Path(tempfile.mkdtemp())
        turns.append({**written(folder, batches), **read(folder, given.rows)})
        shutil.rmtree(folder)
    medians = {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
    figures = {
        "rows": given.rows,
        "changes": sum(len(changes) for changes in batches.changes),
        "repeats": given.repeats,
        "processor_seconds": {name: round(value, 3) for name, value in medians.items()},
    }
    print(json.dumps(figures, indent=1))
    given.out.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
