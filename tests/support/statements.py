"""Statements of every kind, drawn from a seed and run at a real database.

Nothing is predicted here: the results are read from the database itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pymysql

from tests.support.column_types import Random, Typed, digits_of, every_type
from tests.support.statement_tables import MARKS, PARTS, SIGNALS, Table, below, tables

_NULLS = 0.12
_ADDITIONS = 12
# A statement that the database refuses is one of the kinds: it must leave no trace.
_REFUSALS = (1062, 1205, 1213)


@dataclass
class Statements:
    """One database, and a source of statements for it; `run` goes on where it stopped."""

    database: str
    chance: Random
    connection: pymysql.Connection[Any]
    tables: list[Table] = field(default_factory=tables)
    dropped: list[Table] = field(default_factory=list)
    moved: list[Table] = field(default_factory=list)
    # Names that tables had before a RENAME.
    left: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._steady = [*self.tables]
        self._parts = list(PARTS)
        self.tables += self.moved
        self._additions = [self._addition(number) for number in range(_ADDITIONS)]
        lines = next(table for table in self.tables if table.name == "order_lines")
        # The table that is made while changes flow.
        self._late = Table("late", [*lines.columns], lines.keys)

    def create(self) -> None:
        """Make the database and its first tables."""
        self._execute(f"create database {self.database}")
        self._execute(f"use {self.database}")
        self._execute("set sql_mode='strict_all_tables'")
        for table in (*self.tables, MARKS, *([SIGNALS] if self.moved else [])):
            self._create(table)

    def mark(self) -> str:
        """Leave a mark after all statements so far, and return what its event will hold."""
        token = f"mark {self.chance.getrandbits(64):016x}"
        self._execute("insert into marks values (%s)", [token])
        self.connection.commit()
        return token

    def create_late(self) -> None:
        """Make one more table."""
        self.tables.append(self._late)
        self._steady.append(self._late)
        self._create(self._late)

    def run(self, transactions: int) -> None:
        """Run so many transactions of some statements each; some are rolled back."""
        for _ in range(transactions):
            self.connection.begin()
            for _ in range(self.chance.choice((1, 1, 2, 5))):
                self._one()
            if self.chance.random() < 0.15:
                self.connection.rollback()
            else:
                self.connection.commit()

    def add_column(self) -> None:
        """Add a nullable column, of any type and to any place of some table.

        An ALTER sends no row: one written after it makes sure that the column is heard of.
        """
        table, column = self._additions.pop(0)
        place = self.chance.choice(("", f" after {self.chance.choice(table.names)}"))
        ddl = f"{column.name} {column.ddl} null{place}"
        self._execute(f"alter table {table.name} add column {ddl}")
        table.columns.append(column)
        self._replace(table)
        self.connection.commit()

    def widen_price(self) -> None:
        """Give a decimal more digits before and behind its point: without a schema the bytes of a
        value fit before and after.
        """
        table = next(table for table in self.tables if table.name == "order_lines")
        at = table.names.index("price")
        table.columns[at] = Typed("price", "decimal(16,6)", pa.decimal128(16, 6), digits_of(16, 6))
        self._execute("alter table order_lines modify column price decimal(16,6) null")
        self._replace(table)
        self.connection.commit()

    def rename_column(self) -> None:
        """Give a column that isn't of a key another name, and write a row after it."""
        table = next(table for table in self.tables if table.name == "order_lines")
        at = table.names.index("qty")
        table.columns[at] = replace(table.columns[at], name="quantity")
        self._execute("alter table order_lines rename column qty to quantity")
        self._replace(table)
        self.connection.commit()

    def drop_and_create(self) -> None:
        """Drop some table with its rows, make it again, and write a row.

        Not the one that had a JSON before the connector began: MariaDB calls that a LONGTEXT when
        it is asked, and the connector calls it so until a statement says JSON.
        """
        table = self.chance.choice([one for one in self._steady if one.name != "everything"])
        self._execute(f"drop table {table.name}")
        self._create(table)
        self._replace(table)
        self.connection.commit()
        self.dropped.append(table)

    def regroup_partitions(self) -> None:
        """Cut partitions otherwise: every row stays."""
        first, second, *_ = self._parts
        ends = ", ".join(f"partition {below(at)} values less than ({at})" for at in (3, first))
        self._execute(f"alter table parted reorganize partition {below(first)} into ({ends})")
        self._execute(f"alter table parted rebuild partition {below(second)}")
        self._parts.insert(0, 3)

    def move_rows(self) -> None:
        """Swap two tables' names, give a third another, and lose rows with partitions; then write a
        row of each. May be called twice.
        """
        for table in self.moved:
            self._replace(table)
        self.connection.commit()
        self._execute("rename table west to between_, east to west, between_ to east")
        alone = self.moved[2]
        former, alone.name = alone.name, f"{alone.name}_on"
        self._execute(f"alter table {former} rename to {alone.name}")
        self.left.append(former)
        dropped, emptied = self._parts.pop(0), self._parts[0]
        self._execute(f"alter table parted drop partition {below(dropped)}")
        self._execute(f"alter table parted truncate partition {below(emptied)}")
        for table in self.moved:
            self._replace(table)
        self.connection.commit()

    def snapshot(self, tables: Sequence[Table], kind: str = "incremental") -> None:
        """Have the connector take a new snapshot of tables, among their changes or `blocking`."""
        names = [f"{self.database}.{table.name}" for table in tables]
        data = json.dumps({"data-collections": names, "type": kind})
        number = f"snapshot {self.chance.getrandbits(64):016x}"
        self._execute("insert into signals values (%s, 'execute-snapshot', %s)", [number, data])
        self.connection.commit()

    def position(self) -> tuple[str, int]:
        """The file and position of the binlog up to which all was written."""
        with self.connection.cursor() as cursor:
            cursor.execute("show master status")
            file, position, *_ = cursor.fetchone() or ("", 0)
        return file, int(position)

    def truth(self, table: Table, *, told: bool = False) -> pa.Table:
        """What `SELECT *` says, in the lake's types; `told`: those that the DDL says."""
        with self.connection.cursor(pymysql.cursors.DictCursor) as cursor:
            cursor.execute(f"select * from {table.name}")
            rows = cursor.fetchall()
        return pa.table(
            {
                column.name: pa.array(
                    [
                        None if row[column.name] is None else column.as_stored(row[column.name])
                        for row in rows
                    ],
                    (told and column.told) or column.stored,
                )
                for column in table.columns
            }
        )

    def _addition(self, number: int) -> tuple[Table, Typed]:
        column = self.chance.choice(every_type())
        added = replace(column, name=f"added_{number}_{column.name}")
        return self.chance.choice(self._steady), added

    def _create(self, table: Table) -> None:
        columns = ", ".join(
            f"{column.name} {column.ddl}" + (" null" if at >= table.keys else "")
            for at, column in enumerate(table.columns)
        )
        key = f"primary key({','.join(table.key)})"
        self._execute(f"create table {table.name}({columns}, {key}){table.rest}")

    def _one(self) -> None:
        table = self.chance.choice(self.tables)
        statement = self.chance.choices(
            (self._insert, self._replace, self._upsert, self._update, self._move, self._delete),
            (8, 3, 3, 8, 4, 3),
        )[0]
        try:
            if self.chance.random() < 0.1:
                self._execute("savepoint s")
                statement(table)
                self._execute("rollback to savepoint s")
            statement(table)
        except pymysql.MySQLError as error:
            if error.args[0] not in _REFUSALS:
                raise

    def _insert(self, table: Table, verb: str = "insert", tail: str = "") -> None:
        rows = self.chance.choice((1, 1, 3, 7)) if table.name != "large" else 1
        values = [self._row(table) for _ in range(rows)]
        marks = f"({','.join(['%s'] * len(table.columns))})"
        self._execute(
            f"{verb} into {table.name}({','.join(table.names)})"
            f" values {','.join([marks] * rows)}{tail}",
            [value for row in values for value in row],
        )

    def _replace(self, table: Table) -> None:
        self._insert(table, "replace")

    def _upsert(self, table: Table) -> None:
        name = table.columns[-1].name
        self._insert(table, tail=f" on duplicate key update {name}=values({name})")

    def _update(self, table: Table) -> None:
        changed = self.chance.sample(
            table.columns[table.keys :],
            self.chance.randint(1, min(4, len(table.columns) - table.keys)),
        )
        sets = ",".join(f"{column.name}=%s" for column in changed)
        self._execute(
            f"update {table.name} set {sets} where {table.key[0]}>=%s limit %s",
            [*(self._value(c) for c in changed), self._key(table, 0), self.chance.choice((1, 9))],
        )

    def _move(self, table: Table) -> None:
        """Give rows another key; one that is taken refuses the statement."""
        at = self.chance.randrange(table.keys)
        self._execute(
            f"update {table.name} set {table.key[at]}=%s where {table.key[0]}=%s limit 1",
            [self._key(table, at), self._key(table, 0)],
        )

    def _delete(self, table: Table) -> None:
        self._execute(
            f"delete from {table.name} where {table.key[0]}>=%s limit %s",
            [self._key(table, 0), self.chance.choice((1, 2, 6))],
        )

    def _row(self, table: Table) -> list[Any]:
        keys = [self._key(table, at) for at in range(table.keys)]
        return [*keys, *(self._value(column) for column in table.columns[table.keys :])]

    def _key(self, table: Table, at: int) -> Any:
        return table.columns[at].draw(self.chance)

    def _value(self, column: Typed) -> Any:
        return None if self.chance.random() < _NULLS else column.draw(self.chance)

    def _execute(self, statement: str, values: Sequence[Any] | None = None) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)
