"""The demo's last step: compares both views of every table with the shop's own rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from lakesplice.apps.lake import table_names
from lakesplice.apps.library.table import Table
from lakesplice.errors import TableNotFoundError
from lakesplice.model.names import IS_DELETED, SYSTEM_COLUMNS, TableName
from lakesplice.storage.stores import open_store
from lakesplice.testing.compare import Difference, compare
from lakesplice.testing.shop import Shop

_QUESTIONS = {
    "orders by status": (
        "orders",
        "select status, count(*) as orders, sum(total) as total from orders"
        " group by status order by status",
    ),
    "dearest products": (
        "products",
        "select sku, title, price, stock from products order by price desc, sku limit 5",
    ),
}


@dataclass(frozen=True)
class Verdict:
    """One view of one table as `engine` read it, and how it differs from the truth, if it does."""

    table: str
    view: str
    engine: str
    version: int
    rows: int
    difference: Difference | None


def stands_at(lake: Path, ends: Mapping[tuple[str, int], int]) -> bool:
    """Whether the tables have everything before these ends, which are per topic and partition."""
    try:
        offsets = {
            topic: Table.open(lake / TableName.from_topic(topic).path).offsets for topic, _ in ends
        }
    except TableNotFoundError:
        return False
    return all(offsets[topic].get(part, 0) >= end for (topic, part), end in ends.items())


def nothing_waits(lake: Path) -> bool:
    """Whether every change is in the base files of its table, so that both views are equal."""
    tables = (Table.open(lake / name.path) for name in table_names(open_store(lake)))
    return not any(table.snapshot.manifest.deltas for table in tables)


def real_time(path: Path) -> pa.Table:
    """The real-time view of a table: our reader returns Arrow, DuckDB queries it."""
    visible = Table.open(path).read()  # noqa: F841  DuckDB finds it by its name
    with duckdb.connect() as connection:
        return connection.execute("select * from visible").to_arrow_table()


def read_optimised(path: Path) -> pa.Table:
    """The read-optimised view: Polars reads the Delta table like any other, without tombstones."""
    frame = pl.scan_delta(str(path)).filter(~pl.col(IS_DELETED)).drop(*SYSTEM_COLUMNS)
    return frame.collect().to_arrow()


def verdicts(shop: Shop, lake: Path) -> list[Verdict]:
    """Compare both views of every table with the truth, in the shop's order of tables."""
    found = []
    for spec in shop.tables:
        path, truth = lake / "shop" / spec.name, shop.truth(spec.name)
        version = DeltaTable(str(path)).version()
        for view, engine, rows in (
            ("real-time", "DuckDB", real_time(path)),
            ("read-optimised", "Polars", read_optimised(path)),
        ):
            difference = compare(truth, rows, spec.key)
            found.append(Verdict(spec.name, view, engine, version, rows.num_rows, difference))
    return found


@dataclass(frozen=True)
class Answer:
    """DuckDB's answer to one question."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]]


def answers(lake: Path) -> list[Answer]:
    """Ask DuckDB some questions about the real-time view."""
    found = []
    with duckdb.connect() as connection:
        for title, (table, question) in _QUESTIONS.items():
            connection.register(table, Table.open(lake / "shop" / table).read())
            result = connection.execute(question)
            columns = [name for name, *_ in result.description or ()]
            found.append(Answer(title, columns, result.fetchall()))
    return found
