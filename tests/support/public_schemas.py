"""Databases that other projects publish, run at a real server, and compared with tables.

It uses none of the product's code: rows are read by SELECT on one side and by delta-rs on the
other, and both are converted to text by the column types of information_schema.
"""

from __future__ import annotations

import re
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pymysql
from deltalake import DeltaTable

from tests.support.sources import SourceServer

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`)"""
    r"|(?P<comment>--(?=\s)[^\n]*|\#[^\n]*|/\*(?!!).*?\*/)"
    r"|(?P<delimiter>(?im:^\s*delimiter\s+(?P<end>\S+)[^\n]*$))"
    r"|[^'\"`#/\-\n;$|]+|.",
    re.DOTALL | re.VERBOSE,
)
# The database of each file is ours, and the server is shared.
_LEFT_OUT = re.compile(
    r"(create|drop|alter)\s+(database|schema|user|role)|use\s|grant\s|revoke\s|flush\s|reset\s"
    r"|set\s+(global|password|@@global)|shutdown|kill\s|install|uninstall|purge\s",
    re.IGNORECASE,
)
_MAKES_TABLE = re.compile(r"create\s.*?\btable|alter", re.IGNORECASE)
_Row = tuple[str | None, ...]


def statements(text: str) -> Iterator[str]:
    """Yield a script's statements, without comments."""
    end, parts = ";", list[str]()
    place = 0
    while place < len(text):
        if text.startswith(end, place):
            yield "".join(parts).strip()
            parts, place = [], place + len(end)
            continue
        found = _TOKEN.match(text, place)
        assert found is not None
        if found["end"]:
            end = found["end"]
        elif not found["comment"]:
            parts.append(found[0])
        place = found.end()
    yield "".join(parts).strip()


@dataclass
class PublicSchemas:
    """Databases on a server whose names begin with a tag of their own; a file becomes each.

    `refused` has what the server didn't take, which is no part of what it holds.
    """

    server: SourceServer
    tag: str = field(default_factory=lambda: f"public{secrets.token_hex(4)}")
    databases: list[str] = field(default_factory=list)
    refused: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._connection = self.server.connect()
        self._execute(f"create database {self.tag}_marks")
        self._execute(f"create table {self.tag}_marks.marks(token varchar(40) primary key)")

    @property
    def pattern(self) -> str:
        """What the names of the databases match, those to come included."""
        return f"{self.tag}_.*"

    @property
    def marks(self) -> str:
        """The database and table that hold the marks."""
        return f"{self.tag}_marks.marks"

    def mark(self) -> str:
        """Leave a mark after all statements so far, and return what its event will hold."""
        token = f"mark {secrets.token_hex(8)}"
        self._execute(f"insert into {self.marks} values (%s)", [token])
        self._connection.commit()
        return token

    def run(self, name: str, *files: Path, rows_max: int | None = None) -> None:
        """Run files in a database of this name, made if need be; of an INSERT so many rows."""
        database = f"{self.tag}_{name}"
        if database not in self.databases:
            self.databases.append(database)
            self._execute(f"create database {database}")
        connection = self.server.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"use {database}")
                for file in files:
                    for statement in statements(file.read_text(encoding="utf-8")):
                        if statement and not _LEFT_OUT.match(statement):
                            self._try(cursor, database, _cut(statement, rows_max))
                            if _MAKES_TABLE.match(statement):
                                self._add_keys(cursor, database)
            connection.commit()
        finally:
            connection.close()

    def tables(self) -> list[PublicTable]:
        """Return every table that the databases hold by now."""
        return [table for database in self.databases for table in self._of(database)]

    def _of(self, database: str) -> list[PublicTable]:
        rows = self._rows(
            "select table_name from information_schema.tables"
            " where table_type = 'BASE TABLE' and table_schema = %s order by 1",
            [database],
        )
        return [PublicTable(database, name, self._columns(database, name)) for (name,) in rows]

    def rows(self, table: PublicTable) -> Counter[_Row]:
        """Return the rows that a table holds, each column as text."""
        columns = ", ".join(column.asked for column in table.columns)
        rows = self._rows(f"select {columns} from {table.database}.{quoted(table.name)}")
        return Counter(
            tuple(
                column.text_of_source(value)
                for column, value in zip(table.columns, row, strict=True)
            )
            for row in rows
        )

    def has_key(self, table: PublicTable) -> bool:
        """Whether rows of a table can be told apart: by a primary key, or one as good."""
        rows = self._rows(
            "select index_name from information_schema.statistics where table_schema = %s"
            " and table_name = %s and non_unique = 0 group by index_name"
            " having sum(nullable = 'YES') = 0",
            [table.database, table.name],
        )
        return bool(rows)

    def _columns(self, database: str, table: str) -> tuple[PublicColumn, ...]:
        rows = self._rows(
            "select column_name, data_type, column_type, is_nullable"
            " from information_schema.columns where table_schema = %s and table_name = %s"
            " order by ordinal_position",
            [database, table],
        )
        return tuple(PublicColumn(n, t, c, null == "YES") for n, t, c, null in rows)

    def _add_keys(self, cursor: Any, database: str) -> None:
        """Give each table a key by which its rows can be told apart; statements don't see it."""
        for table in self._of(database):
            if not self.has_key(table):
                self._try(
                    cursor,
                    database,
                    f"alter table {quoted(table.name)} add column numbered bigint auto_increment"
                    " invisible primary key",
                )

    def _try(self, cursor: Any, database: str, statement: str) -> None:
        try:
            cursor.execute(statement)
            while cursor.nextset():
                pass
        except pymysql.MySQLError as error:
            self.refused.setdefault(database, []).append(f"{error.args}: {statement[:200]}")

    def _execute(self, statement: str, values: Sequence[Any] | None = None) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)

    def _rows(self, statement: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        self._connection.commit()
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values)
            return list(cursor.fetchall())


@dataclass(frozen=True)
class PublicColumn:
    """A column as information_schema has it."""

    name: str
    type: str
    declared: str
    nullable: bool

    @property
    def asked(self) -> str:
        """The expression that a SELECT asks for."""
        name = quoted(self.name)
        match self.type:
            case "float" | "double":
                return f"cast({name} as double)"
            case "bit":
                return f"cast({name} as unsigned)"
            case "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob":
                return f"hex({name})"
            case "vector":
                return f"vec_totext({name})"
            case _ if self.is_geometry:
                return f"concat(st_srid({name}), ' ', hex(st_aswkb({name})))"
        return f"convert(cast({name} as char) using utf8mb4)"

    @property
    def is_geometry(self) -> bool:
        return self.type in _GEOMETRIES

    def text_of_source(self, value: Any) -> str | None:
        """Return a value that a SELECT gave as text."""
        if value is None:
            return None
        match self.type:
            case "float" | "double":
                return repr(float(value))
            case "timestamp" if value.startswith("0000"):
                return None
            case "date" | "datetime" if _NO_DATE.match(value):
                # What the connector makes of a date that is none.
                return None if self.nullable else _EPOCHS[self.type]
            case "datetime" | "timestamp" | "time":
                return _with_six_digits(value)
        return str(value)

    def text_of_lake(self, value: Any) -> str | None:
        """Return a value of the lake's column as text."""
        match value:
            case None:
                return None
            case bool():
                return str(int(value))
            case bytes() if self.type == "bit":
                return str(int.from_bytes(value, "little"))
            case bytes() if self.is_geometry:
                return _geometry(value)
            case bytes():
                return value.hex().upper()
            case float():
                return repr(value)
            case datetime():
                # No TIMESTAMP is that early: it is a zero, which the connector's binlog reader and
                # its snapshot take for different things.
                if self.type == "timestamp" and value.timestamp() == 0:
                    return None
                return value.replace(tzinfo=None).isoformat(" ", "microseconds")
            case date():
                return value.isoformat()
            case int() if self.type == "time":
                return _time(value)
            case Decimal() | int():
                return _padded(value, self)
        return str(value)


_GEOMETRIES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection",
)  # fmt: skip
_EPOCHS = {"date": "1970-01-01", "datetime": "1970-01-01 00:00:00.000000"}
_NO_DATE = re.compile(r"0000|\d+-00|\d+-\d+-00")


@dataclass(frozen=True)
class PublicTable:
    """A table of one of the databases."""

    database: str
    name: str
    columns: tuple[PublicColumn, ...]

    @property
    def in_topic(self) -> str:
        """The table's name as the connector puts it into a topic's."""
        return re.sub(r"[^0-9A-Za-z._-]", "_", self.name)

    def in_lake(self, path: Path) -> Counter[_Row]:
        """Return the rows of a folder's Delta table, each of this table's columns as text."""
        stored = pa.table(DeltaTable(str(path)).to_pyarrow_table())
        deleted = stored["_is_deleted"].to_pylist()
        columns = [
            [column.text_of_lake(value) for value in stored[_in_lake(column.name)].to_pylist()]
            for column in self.columns
        ]
        rows = zip(*columns, strict=True)
        return Counter(row for row, gone in zip(rows, deleted, strict=True) if not gone)


def _in_lake(name: str) -> str:
    """Return the name that a column has in the lake."""
    return re.sub(r"\W", lambda found: f"_x{ord(found[0]):x}_", name)


def quoted(name: str) -> str:
    """Return a name as a statement has it."""
    return "`" + name.replace("`", "``") + "`"


def difference(truth: Counter[_Row], found: Counter[_Row]) -> str | None:
    """Return how rows differ, with an example of each side; None if they don't."""
    if truth == found:
        return None
    lacking, beyond = truth - found, found - truth
    shown = (next(iter(rows), None) for rows in (lacking, beyond))
    return "{} of {} rows lack, {} are too many: {} / {}".format(
        lacking.total(), truth.total(), beyond.total(), *shown
    )


def _cut(statement: str, rows_max: int | None) -> str:
    """Leave the first rows of an INSERT that has each in a line of its own."""
    if rows_max is None or statement[:6].lower() != "insert":
        return statement
    return ",\n".join(statement.split(",\n")[:rows_max])


def _with_six_digits(text: str) -> str:
    whole, _, digits = text.partition(".")
    return f"{whole}.{digits:<06}"


def _time(micros: int) -> str:
    seconds, rest = divmod(abs(micros), 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' * (micros < 0)}{hours:02}:{minutes:02}:{seconds:02}.{rest:06}"


def _padded(value: Decimal | int, column: PublicColumn) -> str:
    """Return a number with the zeros that a ZEROFILL column or a YEAR shows."""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if column.type == "year":
        return f"{value:04}"
    width = re.search(r"\((\d+).*zerofill", column.declared)
    return text.zfill(int(width[1]) + ("." in text)) if width else text


def _geometry(value: bytes) -> str:
    """Return the reference system and the plain WKB of what PostGIS calls EWKB."""
    order: Literal["little", "big"] = "little" if value[0] else "big"
    kind = int.from_bytes(value[1:5], order)
    if not kind & 0x20000000:
        return f"0 {value.hex().upper()}"
    srid = int.from_bytes(value[5:9], order)
    plain = value[:1] + (kind ^ 0x20000000).to_bytes(4, order) + value[9:]
    return f"{srid} {plain.hex().upper()}"
