"""A source database: its address, connections to it, and which columns its tables have now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias
from urllib.parse import unquote, urlsplit

import pymysql

from lakesplice.errors import UsageError
from lakesplice.storage.source.failures import source_failure

Connection: TypeAlias = "pymysql.Connection[pymysql.cursors.Cursor]"
_PORT = 3306
_TIMEOUT_SECONDS = 20
_COLUMNS = """
    select c.table_name, c.column_name, c.column_type, c.character_set_name
    from information_schema.columns c
    join information_schema.tables t
      on t.table_schema = c.table_schema and t.table_name = c.table_name
    where c.table_schema = %s and t.table_type = 'BASE TABLE'
    order by c.table_name, c.ordinal_position
"""


@dataclass(frozen=True, slots=True)
class DatabaseAddress:
    """A database of a MySQL or MariaDB server, and the user and password."""

    host: str
    port: int
    user: str
    database: str
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, text: str, password: str = "") -> Self:
        """Parse `mysql://user@host:port/database`; a password in it overrides the argument.

        Raises `UsageError` for anything else.
        """
        found = cls.of_server(text, password)
        if not found.database:
            raise UsageError("write the address as mysql://user@host:port/database")
        return found

    @classmethod
    def of_server(cls, text: str, password: str = "") -> Self:
        """Parse the same address, in which the database may be left out."""
        try:
            parts = urlsplit(text)
            host, port, user = parts.hostname, parts.port or _PORT, parts.username
        except ValueError:
            host, port, user = None, _PORT, None
        database = unquote(parts.path[1:]) if host else ""
        if not host or not user or "/" in database or parts.scheme != "mysql":
            raise UsageError("write the address as mysql://user@host:port/database")
        inside = unquote(parts.password or "")
        return cls(host, port, unquote(user), database, inside or password)


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a table; `type` is the server's own text, such as `decimal(12,2) unsigned`."""

    table: str
    name: str
    type: str
    charset: str | None


def source_columns(address: DatabaseAddress, certificates: str | None = None) -> list[SourceColumn]:
    """Return the columns of all tables of a database, table by table, in their order. Blocks.

    With `certificates`, a file of trusted certificates, the server must prove its identity. Tables
    that the user may not see are left out. Raises `SourceUnavailable` if the server can't be
    reached.
    """
    with asking(address), connected(address, certificates) as connection:
        return list(_columns(connection, address.database))


def connected(
    address: DatabaseAddress,
    certificates: str | None,
    timeout_seconds: int = _TIMEOUT_SECONDS,
    **settings: Any,
) -> Connection:
    """Connect to a server; with `certificates`, a file of trusted ones, the server must prove who
    it is. `settings` are PyMySQL's own, and win. PyMySQL's errors.
    """
    bounds = {"connect_timeout": timeout_seconds, "read_timeout": timeout_seconds}
    return pymysql.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        charset="utf8mb4",
        ssl_ca=certificates,
        ssl_verify_identity=certificates is not None,
        **(bounds | settings),
    )


@contextmanager
def asking(address: DatabaseAddress) -> Iterator[None]:
    """Turn errors of a server and of the way to it into `SourceUnavailable`."""
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        raise source_failure(error, address) from error


def _columns(connection: Connection, database: str) -> Iterator[SourceColumn]:
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, [database])
        for table, name, type_, charset in cursor.fetchall():
            text = type_.decode() if isinstance(type_, bytes) else type_
            yield SourceColumn(table, name, text, charset)
