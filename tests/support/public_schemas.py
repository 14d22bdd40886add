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
from pathlib import Path
from typing import Any

import pymysql

from tests.support.public_tables import PublicColumn, PublicTable, Row, cut, quoted
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
                            self._try(cursor, database, cut(statement, rows_max))
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

    def rows(self, table: PublicTable) -> Counter[Row]:
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
