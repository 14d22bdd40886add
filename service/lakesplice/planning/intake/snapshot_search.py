"""Searches a topic for the newest snapshot of its whole table: where its rows begin, and what shows
that the topic has all of them.

All rows of a snapshot have one position, and while a connector takes one it sends nothing else. So
what a partition has before its first row of the snapshot is in the snapshot. A later change in the
partition shows that no further row comes, and so does the snapshot's last row. In a partition that
has no row of it, positions show what is later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import Ordering, Position
from lakesplice.planning.sources.snapshots import LAST_OF_SNAPSHOT, OF_NONE


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A snapshot of a whole table in its topic, at a position; `starts` are the offsets from which
    on all its rows and all later changes are. `ended`: the topic has its last row.

    It isn't known whether all its rows are there in partitions that are `cut`, where the broker
    may have deleted some, and `open`, where some may still come. In `unclear` ones, which have none
    of its rows, positions don't show which changes are later.
    """

    position: Position
    starts: Offsets
    ended: bool
    cut: tuple[int, ...] = ()
    open: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()


@dataclass(slots=True)
class _Rows:
    """Rows of one snapshot in a partition, from `start` to `last`; `follows`: behind a change."""

    start: Offset
    follows: bool
    last: Offset
    ended: bool


@dataclass(frozen=True, slots=True)
class _Run:
    """Changes of a partition from `start` on, whose positions rise from `low` to `high`."""

    start: Offset
    low: Position
    high: Position


@dataclass(slots=True)
class _Partition:
    """What is known of a partition: `next` is the offset behind its last change."""

    first: Offset
    next: Offset
    met: bool = False
    rows: dict[Position, _Rows] = field(default_factory=dict)
    runs: list[_Run] = field(default_factory=list)


@dataclass(frozen=True)
class _Changes:
    """Changes of a partition in the order of their records: offsets, positions and marks."""

    at: Integers
    file: Integers
    offset: Integers
    mark: Integers

    @classmethod
    def of(cls, offsets: Integers, decoded: Decoded) -> _Changes:
        parts = [
            (
                block.rows,
                block.position_file,
                block.position_offset,
                np.full(len(block), OF_NONE) if block.snapshot is None else block.snapshot,
            )
            for block in decoded.blocks
            if block.ordering is Ordering.BINLOG
        ]
        fences = decoded.fences
        none = np.full(len(fences.rows), OF_NONE)
        parts.append((fences.rows, fences.position_file, fences.position_offset, none))
        rows, file, offset, mark = (
            np.concatenate([part[at] for part in parts]).astype(np.int64) for at in range(4)
        )
        order = np.argsort(rows, kind="stable")
        return cls(offsets[rows[order]], file[order], offset[order], mark[order])

    def __len__(self) -> int:
        return len(self.at)

    def position(self, change: int) -> Position:
        return Position(int(self.file[change]), int(self.offset[change]))

    def starts(self, before: Offset) -> Integers:
        """Return the offset behind the change before each; `before` is that of the first."""
        return np.append(np.int64(before), self.at[:-1] + 1)

    def runs(self) -> Iterator[tuple[int, int]]:
        """Yield the first and the last of changes whose positions don't fall."""
        file, offset = self.file, self.offset
        falls = above(file[:-1], offset[:-1], file[1:], offset[1:])
        bounds = [0, *(np.flatnonzero(falls) + 1).tolist(), len(self)]
        yield from ((first, end - 1) for first, end in pairwise(bounds))

    def snapshots(self) -> Iterator[Integers]:
        """Yield the rows of each snapshot."""
        rows = np.flatnonzero(self.mark != OF_NONE)
        while len(rows):
            first = rows[0]
            own: Mask = (self.file[rows] == self.file[first]) & (
                self.offset[rows] == self.offset[first]
            )
            yield rows[own]
            rows = rows[~own]


class SnapshotSearch:
    """A search through the records of a topic. Not thread-safe."""

    def __init__(self) -> None:
        self._partitions: dict[int, _Partition] = {}

    def expect(self, earliest: Offsets) -> None:
        """Name the topic's partitions, and their first offsets as long as nothing was taken."""
        for at, first in earliest.items():
            self._partitions.setdefault(at, _Partition(first, first))

    def take(self, partition: int, offsets: Integers, decoded: Decoded) -> None:
        """Take the next records of a partition, which have these offsets."""
        changes, known = _Changes.of(offsets, decoded), self._partitions[partition]
        if not len(changes):
            return
        starts = changes.starts(known.next)
        known.runs += [
            _Run(Offset(int(starts[first])), changes.position(first), changes.position(last))
            for first, last in changes.runs()
        ]
        for rows in changes.snapshots():
            first, last = int(rows[0]), Offset(int(changes.at[rows[-1]]))
            new = _Rows(Offset(int(starts[first])), known.met or first > 0, last, ended=False)
            own = known.rows.setdefault(changes.position(first), new)
            own.last = last
            own.ended |= bool((changes.mark[rows] == LAST_OF_SNAPSHOT).any())
        known.met, known.next = True, Offset(int(changes.at[-1]) + 1)

    def newest(self) -> TopicSnapshot | None:
        """Return the newest snapshot, though it may not be complete; None if there is none."""
        position = self._newest_position()
        if position is None:
            return None
        starts: dict[int, Offset] = {}
        cut, still_open, unclear = [], [], []
        for at, known in sorted(self._partitions.items()):
            rows = known.rows.get(position)
            if rows is not None:
                starts[at], follows = rows.start, rows.follows
                passed = rows.ended or known.next > rows.last + 1
            else:
                later = [number for number, run in enumerate(known.runs) if run.high > position]
                starts[at] = known.runs[later[0]].start if later else known.next
                follows, passed = any(run.low <= position for run in known.runs), bool(later)
                if later and any(run.low <= position for run in known.runs[later[0] + 1 :]):
                    unclear.append(at)
            if known.first and not follows:
                cut.append(at)
            if not passed:
                still_open.append(at)
        ended = any(position in one.rows and one.rows[position].ended for one in self._all())
        return TopicSnapshot(position, starts, ended, tuple(cut), tuple(still_open), tuple(unclear))

    def _all(self) -> Iterator[_Partition]:
        yield from self._partitions.values()

    def _newest_position(self) -> Position | None:
        """Return the position of the snapshot that no other follows in any partition."""
        newest = {
            max(one.rows, key=lambda at: one.rows[at].start) for one in self._all() if one.rows
        }
        left = {at for at in newest if not any(self._is_before(at, other) for other in newest)}
        return max(left or newest, default=None)

    def _is_before(self, one: Position, other: Position) -> bool:
        both = (known.rows for known in self._all() if {one, other} <= known.rows.keys())
        return any(rows[one].start < rows[other].start for rows in both)
