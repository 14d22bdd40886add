"""Statements of every kind, drawn from a seed and run at a real database.

Nothing is predicted here: what they came to is asked of the database itself.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pymysql

_LETTERS = string.ascii_letters + string.digits + " ÄßéñЖ漢😀'\"\\\n\t\x00"
_TIMES = dt.timedelta(hours=838, minutes=59, seconds=59)
_LARGE_BYTES = 1_500_000
_NULLS = 0.12
_ADDITIONS = 12
# A statement that the database refuses is one of the kinds: it must leave no trace.
_REFUSALS = (1062, 1205, 1213)

Random = random.Random


@dataclass(frozen=True)
class Typed:
    """A column: its DDL and what it holds.

    `stored` is the type in the lake, `told` where another one if the DDL says it, `as_stored` makes
    of the database's value the lake's.
    """

    name: str
    ddl: str
    stored: pa.DataType
    draw: Callable[[Random], Any]
    as_stored: Callable[[Any], Any] = lambda value: value
    told: pa.DataType | None = None


@dataclass
class Table:
    """A table of the source with the columns it has by now; the first `keys` are its key."""

    name: str
    columns: list[Typed]
    keys: int = 1

    @property
    def key(self) -> list[str]:
        """The names of the key's columns."""
        return [column.name for column in self.columns[: self.keys]]

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return [column.name for column in self.columns]


def _within(low: int, high: int) -> Callable[[Random], int]:
    return lambda chance: chance.choice((low, high, 0, 1, chance.randint(low, high)))


def _digits(precision: int, scale: int) -> Callable[[Random], Decimal]:
    most = 10**precision - 1
    whole = _within(-most, most)
    # From its text, since arithmetic would round to 28 digits.
    return lambda chance: Decimal(f"{whole(chance)}E-{scale}")


def _text(most: int, letters: str = _LETTERS) -> Callable[[Random], str]:
    def draw(chance: Random) -> str:
        size = chance.choice((0, 1, chance.randint(0, most)))
        return "".join(chance.choices(letters, k=size)).strip()

    return draw


def _bytes(most: int, least: int = 0) -> Callable[[Random], bytes]:
    return lambda chance: chance.randbytes(chance.randint(least, most))


def _large(chance: Random) -> bytes:
    return chance.randbytes(_LARGE_BYTES if chance.random() < 0.1 else chance.randint(0, 50_000))


def _date(chance: Random) -> dt.date:
    most = dt.date.max.toordinal()
    return dt.date.fromordinal(chance.choice((1, 577_736, most, chance.randint(1, most))))


def _moment(low: dt.datetime, high: dt.datetime, digits: int) -> Callable[[Random], dt.datetime]:
    unit = 10 ** (6 - digits)

    def draw(chance: Random) -> dt.datetime:
        spread = (high - low) // dt.timedelta(microseconds=unit)
        steps = chance.choice((0, spread, chance.randint(0, spread)))
        return low + dt.timedelta(microseconds=steps * unit)

    return draw


def _time(digits: int) -> Callable[[Random], dt.timedelta]:
    unit = 10 ** (6 - digits)

    def draw(chance: Random) -> dt.timedelta:
        most = _TIMES // dt.timedelta(microseconds=unit)
        return dt.timedelta(microseconds=_within(-most, most)(chance) * unit)

    return draw


def _json(chance: Random) -> str:
    value = {"k": [1, None, {"ü": chance.random()}], "t": _text(20)(chance)}
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


def _utc(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC)


def _plain(text: str) -> dt.datetime:
    """A moment without a zone, as the driver of the database has them."""
    return dt.datetime.fromisoformat(text)


_DATETIMES = _plain("1000-01-01"), _plain("9999-12-31T23:59:59")
_STAMPS = _plain("1970-01-01T00:00:01"), _plain("2038-01-19T03:14:07")
_INSTANT = pa.timestamp("us", tz="UTC")


def _of_text(name: str, ddl: str, most: int, letters: str = _LETTERS) -> Typed:
    return Typed(name, ddl, pa.string(), _text(most, letters))


def _of_bytes(name: str, ddl: str, most: int, least: int = 0) -> Typed:
    return Typed(name, ddl, pa.binary(), _bytes(most, least))


def _of_integers() -> list[Typed]:
    kinds: list[tuple[str, pa.DataType, int, bool]] = [
        ("tinyint", pa.int16(), 8, True),
        ("tinyint unsigned", pa.int16(), 8, False),
        ("smallint", pa.int16(), 16, True),
        ("smallint unsigned", pa.int32(), 16, False),
        ("mediumint", pa.int32(), 24, True),
        ("mediumint unsigned", pa.int32(), 24, False),
        ("int", pa.int32(), 32, True),
        ("int unsigned", pa.int64(), 32, False),
        ("bigint", pa.int64(), 64, True),
        ("bigint unsigned", pa.decimal128(20, 0), 64, False),
    ]
    return [
        Typed(
            f"n_{ddl.replace(' ', '_')}",
            ddl,
            stored,
            _within(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else _within(0, 2**bits - 1),
            told=pa.int8() if ddl == "tinyint" else None,
        )
        for ddl, stored, bits, signed in kinds
    ]


def _of_moments() -> list[Typed]:
    times = [
        Typed(
            f"t_{digits}", f"time({digits})", pa.int64(), _time(digits),
            lambda value: value // dt.timedelta(microseconds=1),
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    datetimes = [
        Typed(
            f"d_{digits}", f"datetime({digits})", _INSTANT,
            _moment(*_DATETIMES, digits), _utc,
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    stamps = [
        Typed(
            f"s_{digits}", f"timestamp({digits})", _INSTANT,
            _moment(*_STAMPS, digits), _utc,
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    return [*times, *datetimes, *stamps]


def every_type() -> list[Typed]:
    """A column of every type that can be stored, all nullable."""
    return [
        *_of_integers(),
        Typed("n_bool", "tinyint(1)", pa.int16(), _within(-128, 127), told=pa.int8()),
        Typed("p_12", "decimal(12,2)", pa.decimal128(12, 2), _digits(12, 2)),
        Typed("p_38", "decimal(38,10)", pa.decimal128(38, 10), _digits(38, 10)),
        Typed("p_5", "decimal(5,5)", pa.decimal128(5, 5), _digits(5, 5)),
        # Six digits are what the server prints of a FLOAT.
        Typed("f_4", "float", pa.float32(), lambda c: c.randint(-99_999, 99_999) / 100),
        Typed("f_8", "double", pa.float64(), lambda c: c.gauss(0, 1e12)),
        Typed("b_1", "bit(1)", pa.bool_(), _within(0, 1), lambda v: v != b"\0"),
        Typed("b_12", "bit(12)", pa.binary(), _within(0, 4095), lambda v: v[::-1]),
        Typed("b_64", "bit(64)", pa.binary(), _within(0, 2**64 - 1), lambda v: v[::-1]),
        _of_text("c_10", "char(10)", 10),
        _of_text("c_100", "varchar(100)", 100),
        _of_text("c_latin", "varchar(50) character set latin1", 50, string.printable + "äÿ€"),
        _of_text("x_tiny", "tinytext", 40),
        _of_text("x_text", "text", 400),
        _of_text("x_medium", "mediumtext", 400),
        _of_text("x_long", "longtext", 400),
        _of_bytes("y_16", "binary(16)", 16, 1),
        _of_bytes("y_20", "varbinary(20)", 20),
        _of_bytes("y_tiny", "tinyblob", 40),
        _of_bytes("y_blob", "blob", 400),
        _of_bytes("y_long", "longblob", 400),
        Typed("e", "enum('new','ü','c d')", pa.string(), lambda c: c.choice(("new", "ü"))),
        Typed("z", "set('a','b','c')", pa.string(), lambda c: c.choice(("", "a", "a,c"))),
        Typed("j", "json", pa.string(), _json),
        Typed("d", "date", pa.date32(), _date),
        *_of_moments(),
        Typed("yr", "year", pa.int32(), lambda c: c.choice((1901, 2024, 2155))),
    ]


def _required(name: str, ddl: str, stored: pa.DataType, draw: Any) -> Typed:
    return Typed(name, f"{ddl} not null", stored, draw)


def tables() -> list[Table]:
    """The tables at the start: keys of several types, one column of each type, large values."""
    codes = [f"{letter}-{word}" for letter in "abü" for word in ("x", "é", "漢", "long" * 9)]
    number = _required("id", "int unsigned", pa.int64(), lambda c: c.randint(1, 60))
    price = Typed("price", "decimal(10,4)", pa.decimal128(10, 4), _digits(10, 4))
    return [
        Table("everything", [number, *every_type()]),
        Table(
            "order_lines",
            [
                _required("code", "varchar(40)", pa.string(), lambda c: c.choice(codes)),
                _required("line_no", "int", pa.int32(), lambda c: c.randint(-3, 3)),
                Typed("qty", "int", pa.int32(), _within(-5, 99)),
                price,
            ],
            keys=2,
        ),
        Table(
            "large",
            [
                _required(
                    "id", "varbinary(8)", pa.binary(),
                    lambda c: c.choice((b"\0", b"\xff\n", b"a", b"A", b"a\0", b"\\")),
                ),
                Typed("body", "longblob", pa.binary(), _large),
                _of_text("note", "longtext", 3_000),
            ],
        ),
        Table(
            "priced",
            [
                _required(
                    "amount", "decimal(8,3)", pa.decimal128(8, 3),
                    lambda c: Decimal(c.randint(-20, 20)).scaleb(-1).quantize(Decimal("0.001")),
                ),
                Typed("what", "varchar(30)", pa.string(), _text(30)),
            ],
        ),
    ]  # fmt: skip


_MARKS = Table("marks", [_required("token", "varchar(40)", pa.string(), _text(1))])


def _late() -> Table:
    """The table that is made while changes flow."""
    return Table("late", [*tables()[1].columns], keys=2)


@dataclass
class Statements:
    """One database, and a source of statements for it; `run` goes on where it stopped."""

    database: str
    chance: Random
    connection: pymysql.Connection[Any]
    tables: list[Table] = field(default_factory=tables)

    def __post_init__(self) -> None:
        self._additions = [self._addition(number) for number in range(_ADDITIONS)]

    def create(self) -> None:
        """Make the database and its first tables."""
        self._execute(f"create database {self.database}")
        self._execute(f"use {self.database}")
        self._execute("set sql_mode='strict_all_tables'")
        for table in (*self.tables, _MARKS):
            self._create(table)

    def mark(self) -> str:
        """Leave a mark after all statements so far, and return what its event will hold."""
        token = f"mark {self.chance.getrandbits(64):016x}"
        self._execute("insert into marks values (%s)", [token])
        self.connection.commit()
        return token

    def create_late(self) -> None:
        """Make one more table."""
        table = _late()
        self.tables.append(table)
        self._create(table)

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
        table.columns[at] = Typed("price", "decimal(16,6)", pa.decimal128(16, 6), _digits(16, 6))
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
        return self.chance.choice(self.tables), added

    def _create(self, table: Table) -> None:
        columns = ", ".join(
            f"{column.name} {column.ddl}" + (" null" if at >= table.keys else "")
            for at, column in enumerate(table.columns)
        )
        self._execute(f"create table {table.name}({columns}, primary key({','.join(table.key)}))")

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
