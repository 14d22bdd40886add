"""Rows of a source database are read in ranges of keys, in snapshots, and by their keys."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.columns import ReadColumn, Unreadable, read_column
from lakesplice.planning.source_rows.key_lookups import keys_sql
from lakesplice.planning.source_rows.key_ranges import KeyRange, key_columns
from lakesplice.storage.source.database import DatabaseAddress
from lakesplice.storage.source.rows import Snapshot, SourceConnection, TableChanged
from lakesplice.storage.source.tables import SourceTable
from lakesplice.storage.system import SystemClock
from tests.support.sources import SourceServer


@pytest.fixture
def server(mariadb: SourceServer) -> SourceServer:
    """The run's MariaDB."""
    return mariadb


_DAY = "2024-01-{:02}"
_KEYS: dict[str, Callable[[random.Random], tuple[object, object]]] = {
    "a int, b varchar(20) collate utf8mb4_general_ci": lambda c: (c.randint(-9, 9), _word(c)),
    "a varchar(20) character set latin1, b bigint unsigned": lambda c: (
        _word(c), 2**63 + c.randint(0, 99),
    ),
    "a enum('z','m','a'), b decimal(10,3)": lambda c: (
        c.choice("zma"), c.randint(-9999, 9999) / 1000,
    ),
    "a varbinary(9), b datetime(3)": lambda c: (
        c.randbytes(c.randint(0, 3)), f"{_DAY.format(c.randint(1, 28))} 01:02:03.004",
    ),
    "a bit(40), b date": lambda c: (c.getrandbits(40), _DAY.format(c.randint(1, 28))),
    "a time(2), b set('x','b','c')": lambda c: (
        f"{c.choice(('', '-'))}{c.randint(0, 838)}:00:00.5", c.choice(("", "x", "b", "x,c")),
    ),
}  # fmt: skip


def _word(chance: random.Random) -> str:
    return "".join(chance.choices("aAäÄbZ_'\"\\ éß", k=chance.randint(0, 4))).strip()


@pytest.fixture
def connection(server: SourceServer) -> Iterator[SourceConnection]:
    address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
    with SourceConnection(address, SystemClock()) as connection:
        yield connection


@pytest.fixture
def cursor(server: SourceServer) -> Iterator[Any]:
    """Statements in a database of the test's own, committed one by one."""
    with server.connect() as database, database.cursor() as cursor:
        database.autocommit(True)
        name = f"db_{random.SystemRandom().randrange(10**9)}"
        cursor.execute(f"create database {name}")
        cursor.execute(f"use {name}")
        cursor.execute("set sql_mode=''")
        cursor.name = name
        yield cursor


def _described(connection: SourceConnection, cursor: Any, name: str = "t") -> SourceTable:
    table = connection.table(cursor.name, name)
    assert table is not None
    return table


def _column_of(table: SourceTable, name: str, type_: str) -> ReadColumn:
    found = next(column for column in table.columns if column.name == name)
    column = read_column(found, ColumnType.parse(type_), "")
    assert isinstance(column, ReadColumn)
    return column


@pytest.mark.parametrize("key", _KEYS)
def test_ranges_of_any_key_have_every_row_once(
    connection: SourceConnection, cursor: Any, key: str, seed: int
) -> None:
    chance = random.Random(seed)
    cursor.execute(f"create table t ({key}, n int, primary key (a, b))")
    for number in range(120):
        cursor.execute("insert ignore into t values (%s, %s, %s)", (*_KEYS[key](chance), number))
    cursor.execute("select n from t")
    there = sorted(n for (n,) in cursor.fetchall())
    table = _described(connection, cursor)
    columns = key_columns(table.key, {column.name: column for column in table.columns})
    assert not isinstance(columns, Unreadable)
    only = [_column_of(table, "n", "integer")]

    def read(snapshot: Snapshot) -> list[list[int]]:
        found, after = [], None
        while True:
            bound = snapshot.bound(columns, after, 7)
            parts = snapshot.rows(only, columns, KeyRange(after, bound))
            found.append([n for part in parts for n in part.columns["n"].values.to_pylist()])
            if bound is None:
                return found
            after = bound

    found = connection.in_snapshot(table, read)
    assert not isinstance(found, TableChanged)
    assert all(len(rows) == 7 for rows in found[:-1])
    assert sorted(n for rows in found for n in rows) == there


def test_rows_that_are_too_long_for_a_text_are_read_one_by_one(
    server: SourceServer, cursor: Any
) -> None:
    cursor.execute("create table t (id int primary key, b longblob, x longtext)")
    rows = [
        (1, b"a" * 600_000, None), (2, b"", "x" * 700_000), (3, None, ""), (4, b"\xff" * 9, '"'),
    ]  # fmt: skip
    cursor.executemany("insert into t values (%s, %s, %s)", rows)
    cursor.execute("set global max_allowed_packet = 1048576")
    address = DatabaseAddress(server.host, server.port, server.user, "", server.password)
    try:
        with SourceConnection(address, SystemClock()) as connection:
            table = _described(connection, cursor)
            key = key_columns(table.key, {column.name: column for column in table.columns})
            assert not isinstance(key, Unreadable)
            columns = [
                _column_of(table, name, type_)
                for name, type_ in (("id", "integer"), ("b", "binary"), ("x", "string"))
            ]
            parts = connection.in_snapshot(
                table, lambda snapshot: list(snapshot.rows(columns, key, KeyRange()))
            )
    finally:
        cursor.execute("set global max_allowed_packet = 67108864")
    assert not isinstance(parts, TableChanged)
    read = [
        row
        for part in parts
        for row in zip(*(part.columns[n].values.to_pylist() for n in ("id", "b", "x")), strict=True)
    ]
    assert sorted(read) == rows


@pytest.mark.parametrize(
    "statement",
    [
        "alter table t add c int default 7",
        "truncate t",
        "drop table t",
        "alter table t modify n bigint",
    ],
)
def test_a_table_altered_before_its_snapshot_is_not_read_with_its_old_columns(
    connection: SourceConnection, cursor: Any, statement: str
) -> None:
    cursor.execute("create table t (id int primary key, n int)")
    cursor.execute("insert into t values (1, 2)")
    table = _described(connection, cursor)
    if statement == "truncate t":
        # What tells it is the second in which the table was made.
        table = replace(table, made="1970-01-01 00:00:00")
    cursor.execute(statement)
    assert isinstance(connection.in_snapshot(table, lambda _: 1), TableChanged)


def test_a_snapshot_has_what_was_committed_at_its_place_and_nothing_later(
    connection: SourceConnection, cursor: Any
) -> None:
    cursor.execute("create table t (id int primary key, n int)")
    cursor.execute("insert into t values (1, 2)")
    before = connection.place()
    table = _described(connection, cursor)

    def read(snapshot: Snapshot) -> tuple[Any, Any]:
        cursor.execute("update t set n = 3")
        return snapshot.place, snapshot.answer("n", "1")

    found = connection.in_snapshot(table, read)
    assert not isinstance(found, TableChanged)
    place, rows = found
    assert (place.low, place.high, rows) == (before, before, [(b"2",)])
    assert connection.place().offset > before.offset


def test_a_table_s_key_is_the_one_that_its_rows_are_ordered_by(
    connection: SourceConnection, cursor: Any
) -> None:
    cursor.execute(
        "create table t (a int, b int not null, unique (a), unique (b, a), unique z (b))"
    )
    assert _described(connection, cursor).key == ("b",)
    cursor.execute("create table n (a int, unique (a))")
    assert _described(connection, cursor, "n").key == ()
    assert connection.table(cursor.name, "none") is None


def test_keys_are_looked_up_by_their_index_and_strange_characters_find_no_row(
    connection: SourceConnection, cursor: Any
) -> None:
    cursor.execute(
        "create table t (s varchar(9) character set latin1, e enum('x','ü') character set latin1,"
        " primary key (s, e))"
    )
    cursor.execute("insert into t select concat('k', seq), 'ü' from seq_1_to_2000")
    table = _described(connection, cursor)
    columns = {column.name: column for column in table.columns}
    key = key_columns(table.key, columns)
    assert not isinstance(key, Unreadable)
    read = [_column_of(table, name, "string") for name in ("s", "e")]
    keys = pa.table({"s": ["k7", "漢", "K9"], "e": ["ü", "😀", "ü"]})
    condition = keys_sql(key, read, keys)
    found = connection.in_snapshot(table, lambda s: s.rows_where(read, condition))
    assert not isinstance(found, TableChanged)
    assert sorted(found.columns["s"].values.to_pylist()) == ["k7", "k9"]
    cursor.execute(f"explain select * from t where {condition}")
    assert cursor.fetchone()[3] == "range"
