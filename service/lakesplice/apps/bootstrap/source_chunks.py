"""Reads chunks of one table of a source database over several connections at once, and limits the
load.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, LifoQueue

import pyarrow as pa

from lakesplice.errors import LakespliceError, UnsupportedError
from lakesplice.model.position import RANK_OTHER, Position
from lakesplice.model.progress.shadow_plan import KeyBound, ShadowPlan
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.read_rows import ReadRows
from lakesplice.planning.source_rows.columns import ReadColumn, Unreadable, read_column
from lakesplice.planning.source_rows.key_ranges import KeyColumn, KeyRange, key_columns
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.source.rows import Snapshot, SourceConnection, SourceRows, TableChanged
from lakesplice.storage.source.tables import SourceTable
from lakesplice.table.protocol.ports import Clock

_PAUSE_SECONDS = 1.0
CONNECTIONS, CHUNK_ROWS, THREADS_RUNNING_MAX = 4, 20_000, 50


@dataclass(frozen=True, slots=True)
class LoadBounds:
    """The limits: the number of `connections`, `rows_per_second` over all connections (0: no
    limit), and the number of rows of a chunk. No chunk is started while more than
    `threads_running_max` of the server's threads are running.
    """

    connections: int = CONNECTIONS
    rows_per_second: int = 0
    chunk_rows: int = CHUNK_ROWS
    threads_running_max: int = THREADS_RUNNING_MAX


@dataclass(frozen=True)
class ReadPlan:
    """How to read a table's rows: `columns` are those of `schema`, in the same order."""

    table: SourceTable
    schema: SourceSchema
    columns: tuple[ReadColumn, ...]
    key: tuple[KeyColumn, ...]


def read_plan(
    table: SourceTable, schema: SourceSchema, excluded: frozenset[str] = frozenset()
) -> ReadPlan | str:
    """Return how to read a table whose newest streamed image has this schema, or a text that says
    why it can't be read. `excluded` are columns that the connector leaves out.
    """
    if not table.key or not schema.key:
        return (
            "it has no primary or unique key, so it can't be read in chunks; let the connector take"
            " a snapshot of it"
        )
    here = {column.name: column for column in table.columns}
    if missing := sorted(here.keys() - {one.name for one in schema.fields} - excluded):
        return (
            f"the topic's newest record lacks the columns {', '.join(missing)}: change a row, so"
            " that a record shows them, or give --excluded if the connector leaves them out"
        )
    columns = []
    for one in schema.fields:
        if one.name not in here or one.type is None:
            return (
                f"the topic's newest record has a column {one.name}, which the database lacks; "
                f"change a row, so that a record shows the table as it is now"
            )
        column = read_column(here[one.name], one.type, one.source_type)
        if isinstance(column, Unreadable):
            return f"column {column.column}: {column.reason}"
        columns.append(column)
    key = key_columns(table.key, here)
    if isinstance(key, Unreadable):
        return f"column {key.column}: {key.reason}"
    return ReadPlan(table, schema, tuple(columns), key)


def position_of(place: BinlogPlace) -> Position:
    """Return the position above all changes committed at a place, and below all later ones.

    Raises `UnsupportedError` for a binlog whose files aren't numbered.
    """
    _, _, number = place.file.rpartition(".")
    if not number.isdecimal():
        raise UnsupportedError("the binlog's file has no number", file=place.file)
    return Position.of(0, int(number), place.offset, 0, RANK_OTHER)


def key_bounds(
    connection: SourceConnection, plan: ReadPlan, rows: int
) -> tuple[Position, tuple[KeyBound, ...]] | TableChanged:
    """Return a position that the source has reached, and the last key of each chunk of `chunk_rows`
    rows, except for the last chunk.
    """

    def step(snapshot: Snapshot) -> tuple[Position, tuple[KeyBound, ...]]:
        bounds: list[KeyBound] = []
        bound = snapshot.bound(plan.key, None, rows)
        while bound is not None:
            bounds.append(bound)
            bound = snapshot.bound(plan.key, bound, rows)
        return position_of(snapshot.place.low), tuple(bounds)

    return connection.in_snapshot(plan.table, step)


@dataclass
class SourceChunks:
    """Reads chunks; safe from as many threads as `bounds` allows connections.

    `connect` opens a connection; connections are reused. `close` closes them.
    """

    connect: Callable[[], SourceConnection]
    plan: ReadPlan
    shadow: ShadowPlan
    bounds: LoadBounds
    clock: Clock
    _idle: LifoQueue[SourceConnection] = field(default_factory=LifoQueue)
    _opened: list[SourceConnection] = field(default_factory=list)

    def read(self, chunk: int) -> list[ReadRows] | TableChanged:
        """Read a chunk, all its rows in one snapshot. Blocks.

        Raises `UnsupportedError` for a value that streaming would refuse, and if the server isn't
        the one with which the shadow was started. Raises `SourceUnavailable` if the server doesn't
        answer.
        """
        connection = self._connection()
        try:
            while connection.threads_running() > self.bounds.threads_running_max:
                self.clock.wait(_PAUSE_SECONDS)
            read = connection.in_snapshot(self.plan.table, lambda one: self._read(one, chunk))
        except LakespliceError:
            connection.close()
            raise
        self._idle.put(connection)
        return read

    def close(self) -> None:
        """Close all connections."""
        for connection in self._opened:
            connection.close()

    def _connection(self) -> SourceConnection:
        with suppress(Empty):
            return self._idle.get_nowait()
        connection = self.connect()
        self._opened.append(connection)
        if connection.identity() != self.shadow.server:
            raise UnsupportedError(
                "the server isn't the one with which the table was started, so positions can't be "
                "compared; run the command again with --again",
                began_with=self.shadow.server,
                now=connection.identity(),
            )
        return connection

    def _read(self, snapshot: Snapshot, chunk: int) -> list[ReadRows]:
        plan, position = self.plan, position_of(snapshot.place.low)
        if position < self.shadow.start:
            raise UnsupportedError(
                "the server's binlog was reset since the table was started; run the command again "
                "with --again"
            )
        read_ms = self.clock.now_ms()
        parts = snapshot.rows(plan.columns, plan.key, KeyRange(*self.shadow.range_of(chunk)))
        return [
            ReadRows(plan.schema, _images(part, plan), position, read_ms)
            for part in parts
            if part.count
        ]


def _images(part: SourceRows, plan: ReadPlan) -> pa.Table:
    """Return rows in the columns of the schema; refuse each value that streaming refuses."""
    for column in plan.columns:
        if part.columns[column.name].flaws:
            raise UnsupportedError(
                "a value of the column can't be read as its type, so streaming would make it a dead"
                " letter; correct the row",
                table=plan.table.name,
                column=column.name,
            )
    return part.table
