"""Waiting changes by the rows that they are for, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.model.address import Segment, group_name
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.names import (
    GROUP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
)

_NONE: Integers = np.empty(0, np.int64)


@dataclass(frozen=True)
class OrderedChanges:
    """Waiting changes in the order of a file's rows; those of one row in the order of positions.

    `rows[i]` is the row, counted within the file, that change `order[i]` of `changes` is for.
    """

    rows: Integers
    order: Integers
    changes: pa.Table

    @property
    def addressed(self) -> Integers:
        """The rows that have changes, ascending, each once; `overlay` needs their state."""
        return self.rows[row_starts(self.rows)]

    def within(self, first: int, last: int) -> OrderedChanges:
        """Return the part for rows [first, last), with rows counted from `first`."""
        start, stop = (int(at) for at in np.searchsorted(self.rows, (first, last)))
        return OrderedChanges(self.rows[start:stop] - first, self.order[start:stop], self.changes)


@dataclass(frozen=True)
class WaitingChanges:
    """Waiting changes of any number of deltas and file groups, which can be found by group.

    Change `order[i]` of `changes` is for `groups[i]`; groups ascend.
    """

    changes: pa.Table
    groups: Integers
    order: Integers

    @classmethod
    def of(cls, changes: pa.Table) -> WaitingChanges:
        """Take changes in the layout of `delta_schema`, in any order, with all or some of its
        columns.
        """
        # Most columns of updates are all null, and are never read.
        columns = (
            column if column.null_count == len(column) else column.combine_chunks()
            for column in changes.columns
        )
        changes = pa.table([*columns], schema=changes.schema)
        groups = integer_column(changes, GROUP)
        order = np.arange(len(groups))
        if (groups[1:] < groups[:-1]).any():  # those of one delta ascend
            order = np.argsort(groups, kind="stable")
        return cls(changes, groups[order], order)

    def for_file(self, segments: Sequence[Segment], path: str) -> OrderedChanges:
        """Bring the changes of a file's segments into the order of its rows.

        Raises `CorruptFileError` with `path` for an address beyond its segment.
        """
        first, rows, order = 0, [_NONE], [_NONE]
        for segment in segments:
            start, stop = np.searchsorted(self.groups, (segment.group, segment.group + 1))
            if start < stop:
                found = self.order[start:stop]
                rows.append(self._rows(segment, found, path) + first)
                order.append(found)
            first += segment.rows
        return _sorted(np.concatenate(rows), np.concatenate(order), self.changes)

    def _rows(self, segment: Segment, found: Integers, path: str) -> Integers:
        rows = integer_column(self.changes, ROW)[found]
        beyond = np.flatnonzero((rows < 0) | (rows >= segment.rows))
        if len(beyond):
            raise CorruptFileError(
                "a change is addressed beyond its file group; run `lakesplice index check`",
                path=path,
                group=group_name(segment.group),
                row=int(rows[beyond[0]]),
            )
        return rows


def _sorted(rows: Integers, order: Integers, changes: pa.Table) -> OrderedChanges:
    if (rows[1:] > rows[:-1]).all():
        return OrderedChanges(rows, order, changes)
    # Sorting by three numbers costs eight times as much as by one, which is mostly enough.
    by_row = np.argsort(rows)
    ascending = rows[by_row]
    if (ascending[1:] > ascending[:-1]).all():
        return OrderedChanges(ascending, order[by_row], changes)
    file, offset = (
        integer_column(changes, name)[order] for name in (POSITION_FILE, POSITION_OFFSET)
    )
    by_row = np.lexsort((offset, file, rows))
    return OrderedChanges(rows[by_row], order[by_row], changes)


def row_starts(rows: Integers) -> Mask:
    """Return the places in ascending rows where another row begins."""
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = rows[1:] != rows[:-1]
    return starts


def integer_column(table: pa.Table, name: str) -> Integers:
    """Return a column of 64-bit integers without nulls."""
    return np.asarray(table.column(name).to_numpy(), np.int64)
