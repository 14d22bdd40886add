"""Reads rows of a source database in consistent snapshots, without locks.

A snapshot is a transaction that reads what was committed when it began (`binlog_places.py` finds
that place in the binlog). A snapshot doesn't show DDL. So the table's description is read before
the snapshot and again within it, after the table was first read, since from then on DDL waits. Both
must be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

import pyarrow as pa
import pymysql
from pymysql import converters

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.cells.column import Column
from lakesplice.planning.source_rows.columns import ReadColumn
from lakesplice.planning.source_rows.key_ranges import (
    Bound,
    KeyColumn,
    KeyRange,
    bound_sql,
    order_sql,
    range_sql,
)
from lakesplice.planning.source_rows.row_text import (
    plain_sql,
    rows_of_text,
    rows_of_values,
    rows_sql,
)
from lakesplice.storage.source.binlog_places import (
    BinlogPlace,
    SnapshotPlace,
    committed_place,
    end_of_binlog,
    is_undone,
    place_of_snapshot,
)
from lakesplice.storage.source.database import DatabaseAddress, asking, connected
from lakesplice.storage.source.tables import Row, SourceTable, described, table_names, text_of
from lakesplice.table.protocol.ports import Clock

Result = TypeVar("Result")

_CONNECT_SECONDS = 20
# A statement reads about 20,000 rows; if it takes this long, it hangs.
_ANSWER_SECONDS = 600
# How long to wait for DDL that locks the table.
_LOCK_SECONDS = 30
_DEFINITION_CHANGED, _NO_TABLE, _NO_COLUMN = 1412, 1146, 1054
_TOO_LONG = (1153, 1301, 2027)


@dataclass(frozen=True, slots=True)
class TableChanged:
    """The table was altered, re-created or dropped while it was read: read its description
    again.
    """

    table: str


@dataclass(frozen=True)
class SourceRows:
    """Rows as columns, in no particular order."""

    count: int
    columns: dict[str, Column]

    @property
    def table(self) -> pa.Table:
        """The values of the columns."""
        return pa.table({name: column.values for name, column in self.columns.items()})


class _ChangedError(Exception):
    """Carries `TableChanged` to the outermost call."""


class SourceConnection:
    """One connection to a server, and a context manager; not safe from several threads.

    Every call blocks, and raises `SourceUnavailable` if the server doesn't answer or refuses.
    """

    def __init__(
        self, address: DatabaseAddress, clock: Clock, certificates: str | None = None
    ) -> None:
        """Connect; with `certificates`, a file of trusted certificates, the server must prove its
        identity.
        """
        self._address, self._clock = address, clock
        with asking(address):
            encoders: dict[Any, Any] = {**converters.encoders}  # and no decoders
            self._connection = connected(
                address,
                certificates,
                use_unicode=False,
                conv=encoders,
                autocommit=True,
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_ANSWER_SECONDS,
                write_timeout=_CONNECT_SECONDS,
                max_allowed_packet=1 << 30,
            )
            self._prepare()

    def _prepare(self) -> None:
        (version, packet) = self._only_row("select version(), @@max_allowed_packet")
        self.is_mariadb = b"mariadb" in (version or b"").lower()
        self._execute(
            "set session sql_mode='', time_zone='+00:00', character_set_results=utf8mb4,"
            f" group_concat_max_len={int(packet or 0)}, lock_wait_timeout={_LOCK_SECONDS}"
        )
        self._execute("set session transaction isolation level repeatable read")

    def __enter__(self) -> Self:
        """Return the connection itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; may be called twice."""
        with suppress(pymysql.MySQLError, OSError):
            self._connection.close()

    def table(self, database: str, name: str) -> SourceTable | None:
        """Return a table's description; None if it doesn't exist or our user may not see it."""
        with asking(self._address):
            return described(self._execute, database, name)

    def tables(self, database: str) -> list[str]:
        """Return the names of a database's tables that our user may see, sorted."""
        with asking(self._address):
            return table_names(self._execute, database)

    def place(self) -> BinlogPlace:
        """Return the present end of the binlog; transactions below it may not be committed yet."""
        with asking(self._address):
            return end_of_binlog(self._execute)

    def has_undone(self, place: BinlogPlace) -> bool:
        """Return whether the row event at a place was rolled back (`is_undone`); False if the
        server can't say.
        """
        with asking(self._address), suppress(pymysql.MySQLError):
            return is_undone(self._execute, place)
        return False

    def identity(self) -> str:
        """Return a text that identifies this server and its binlog."""
        with asking(self._address):
            (server,) = self._only_row("select concat_ws('/', @@hostname, @@port, @@server_id)")
            return text_of(server)

    def threads_running(self) -> int:
        """Return how many of the server's threads are running now, ours included."""
        with asking(self._address):
            (_, value) = self._only_row("show global status like 'Threads_running'")
            return int(value or 0)

    def in_snapshot(
        self, table: SourceTable, work: Callable[[Snapshot], Result]
    ) -> Result | TableChanged:
        """Call `work` with a snapshot of a table, and return its result. The snapshot ends with the
        call.
        """
        with asking(self._address):
            try:
                with self._snapshot(table) as snapshot:
                    return work(snapshot)
            except _ChangedError:
                return TableChanged(f"{table.database}.{table.name}")

    @contextmanager
    def _snapshot(self, table: SourceTable) -> Iterator[Snapshot]:
        low = None if self.is_mariadb else committed_place(self._execute, self._clock)
        self._execute("start transaction with consistent snapshot, read only")
        try:
            place = self._snapshot_place(low)
            snapshot = Snapshot(self._of_table, table, place)
            snapshot.answer("1", "1", "limit 1")
            if not table.same_as(described(self._execute, table.database, table.name)):
                raise _ChangedError
            yield snapshot
        finally:
            with suppress(pymysql.MySQLError, OSError):
                self._execute("rollback")

    def _snapshot_place(self, low: BinlogPlace | None) -> SnapshotPlace:
        if low is None:
            return place_of_snapshot(self._execute)
        return SnapshotPlace(low, end_of_binlog(self._execute))

    def _of_table(self, statement: str) -> list[Row]:
        """Run a statement on a table that may have changed."""
        try:
            return self._execute(statement)
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in (_DEFINITION_CHANGED, _NO_TABLE, _NO_COLUMN):
                raise _ChangedError from error
            raise

    def _execute(self, statement: str, parameters: Sequence[str] = ()) -> list[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, parameters or None)
            return list(cursor.fetchall())

    def _only_row(self, statement: str) -> Row:
        (row,) = self._execute(statement)
        return row


class Snapshot:
    """A table's rows as they were at `place`. Valid only within `SourceConnection.in_snapshot`."""

    def __init__(
        self, ask: Callable[[str], list[Row]], table: SourceTable, place: SnapshotPlace
    ) -> None:
        """Called by `SourceConnection`."""
        self._ask, self._table, self.place = ask, table, place

    def answer(self, expressions: str, condition: str, rest: str = "") -> list[Row]:
        """Return the values of expressions for the rows that match a condition."""
        return self._ask(
            f"select {expressions} from {self._table.sql} where {condition} {rest}"  # noqa: S608 - planning quotes
        )

    def bound(self, key: Sequence[KeyColumn], after: Bound | None, count: int) -> Bound | None:
        """Return the key of the `count`-th row after a bound; None if there are fewer rows."""
        return self._nth(key, KeyRange(after), count)

    def _nth(self, key: Sequence[KeyColumn], rows: KeyRange, count: int) -> Bound | None:
        rest = f"order by {order_sql(key)} limit 1 offset {count - 1}"
        found = self.answer(bound_sql(key), range_sql(key, rows), rest)
        return tuple(text_of(part) for part in found[0]) if found else None

    def rows(
        self, columns: Sequence[ReadColumn], key: Sequence[KeyColumn], rows: KeyRange
    ) -> Iterator[SourceRows]:
        """Yield the rows of a range in one part, or in several if they are too long for one text.

        Each part's number of rows was counted by the statement that read it.
        """
        condition = range_sql(key, rows)
        text, count = self._text(columns, condition)
        read = rows_of_text(text, count, columns)
        if read is not None:
            yield SourceRows(count, read)
        elif count > 1:
            middle = self._nth(key, rows, count // 2)
            yield from self.rows(columns, key, KeyRange(rows.after, middle))
            yield from self.rows(columns, key, KeyRange(middle, rows.upto))
        else:
            yield self._one_by_one(columns, condition, count)

    def rows_where(self, columns: Sequence[ReadColumn], condition: str) -> SourceRows:
        """Return the rows that match a condition; only for few rows."""
        text, count = self._text(columns, condition)
        read = rows_of_text(text, count, columns)
        if read is not None:
            return SourceRows(count, read)
        return self._one_by_one(columns, condition, count)

    def _one_by_one(self, columns: Sequence[ReadColumn], condition: str, count: int) -> SourceRows:
        plain = self.answer(plain_sql(columns), condition)
        if len(plain) != count:
            raise UnsupportedError("a row is too long to be read", table=self._table.name)
        return SourceRows(count, rows_of_values(plain, columns))

    def _text(self, columns: Sequence[ReadColumn], condition: str) -> tuple[bytes | None, int]:
        try:
            ((text, count),) = self.answer(rows_sql(columns), condition)
        except pymysql.MySQLError as error:
            if not error.args or error.args[0] not in _TOO_LONG:
                raise
            ((count,),) = self.answer("count(*)", condition)
            return None, int(count or 0)
        return text, int(count or 0)
