"""Both sides of a table that is compared, and how rows of its source are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pyarrow as pa

from lakesplice.apps.verifying.catch_up import CatchUp, epoch_of
from lakesplice.apps.verifying.compared_table import ComparedTable
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.model.position import Position
from lakesplice.planning.source_rows.columns import ReadColumn
from lakesplice.planning.source_rows.key_lookups import keys_sql
from lakesplice.storage.source.binlog_places import BinlogPlace, SnapshotPlace
from lakesplice.storage.source.rows import (
    Snapshot,
    SourceConnection,
    SourceRows,
    TableChanged,
)
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.table import Table

_Result = TypeVar("_Result")
_KEYS_AT_ONCE = 500


class ChangedMeanwhileError(Exception):
    """The source's table was altered; the verification must start again."""


@dataclass(frozen=True)
class ComparedSides:
    """A table of a lake and of its source: where each is, and how the source is read."""

    connection: SourceConnection
    store: Store
    topic: str
    table: ComparedTable
    read_limit: ReadLimit
    catch_up: CatchUp

    def lake(self) -> Table:
        """Return the lake's table at its newest version."""
        return Table(self.store)

    def position(self, place: BinlogPlace) -> Position:
        """Return a place in the source's binlog as a position in the lake's newest epoch."""
        return place.position(epoch_of(self.lake().snapshot.manifest.sources[self.topic]))

    def in_snapshot(self, work: Callable[[Snapshot], _Result]) -> _Result:
        """Return what `work` makes of a snapshot of the source's table. Blocks.

        Raises `ChangedMeanwhileError` if the table was altered.
        """
        found = self.connection.in_snapshot(self.table.source, work)
        if isinstance(found, TableChanged):
            raise ChangedMeanwhileError
        return found

    def conditions(self, keys: pa.Table) -> Iterator[str]:
        """Yield SQL conditions that find the rows of these keys at the source, a part of them each.
        When the next one is asked for, the part counts as read: blocks to keep within the limit.
        """
        for start in range(0, keys.num_rows, _KEYS_AT_ONCE):
            part = keys.slice(start, _KEYS_AT_ONCE)
            yield keys_sql(self.table.lake_key, self.table.compared.key, part)
            self.read_limit.spend(part.num_rows)

    def source_rows(self, keys: pa.Table) -> Iterator[tuple[SnapshotPlace, SourceRows]]:
        """Yield the source's rows of these keys with all columns that are compared, each part from
        a snapshot of its own.
        """
        for condition in self.conditions(keys):
            yield self.in_snapshot(partial(_placed_rows, self.table.compared.columns, condition))


def _placed_rows(
    columns: tuple[ReadColumn, ...], condition: str, snapshot: Snapshot
) -> tuple[SnapshotPlace, SourceRows]:
    return snapshot.place, snapshot.rows_where(columns, condition)
