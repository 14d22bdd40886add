"""Periods: what lies between two ends of many rows (`ends_of_all_rows.py`) in a history table.

A version lasts to the end of its period at most, and a row that comes back in a later period is a
new version. A snapshot's end is one only for rows that the snapshot lacks: the change of a row that
it has, the first one of its period, continues the period before. An end that a connector sent again
after a failover, in the same transaction, counts at its last position, as changes do. The shards of
a table have periods of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.names import (
    HISTORY_ENDS,
    HISTORY_OP,
    HISTORY_SNAPSHOT_END,
    HISTORY_TRANSACTION,
    POSITION_FILE,
    POSITION_OFFSET,
    SOURCE_TS,
)
from lakesplice.model.position import RANK_DELETE, RANK_OTHER

NEVER = int(np.iinfo(np.int64).min)
"""Stands for an unknown time, in microseconds since 1970."""


@dataclass(frozen=True)
class Periods:
    """The period of each change.

    `number` rises by one at each end of a shard. A change continues what is in the period
    `continues`: its own, or the one before if the snapshot between them has it. `began` is the
    latest time of the ends before the period, `NEVER` in the first one. `closed` marks periods that
    have an end, and `ends` is the latest time up to it.
    """

    number: Integers
    continues: Integers
    began: Integers
    closed: Mask
    ends: Integers

    @classmethod
    def of(cls, changes: pa.Table, ends: pa.Table, shard_key: Sequence[str]) -> Periods:
        """Return the periods of changes between ends of many rows; both have their positions, times
        and the columns that distinguish shards.
        """
        count = changes.num_rows
        nothing, first = np.full(count, NEVER, np.int64), np.zeros(count, np.int64)
        if not ends.num_rows:
            return cls(first, first, nothing, np.zeros(count, np.bool_), nothing)
        shard, file, offset = _places(ends, changes, shard_key)
        order = np.lexsort((offset, file, shard))
        order = order[~np.isin(order, _sent_again(ends, order, shard))]
        is_end = order < ends.num_rows
        number = np.zeros(len(shard), np.int64)
        number[order] = np.cumsum(is_end)
        marks = order[is_end]
        times = rising(microseconds(ends.column(SOURCE_TS))[marks], shard[marks])
        number, own = number[ends.num_rows :], shard[ends.num_rows :]
        before, after = number - 1, np.minimum(number, len(marks) - 1)
        follows = (number > 0) & (shard[marks[before]] == own)
        closed = (number < len(marks)) & (shard[marks[after]] == own)
        opening, here = marks[before], slice(ends.num_rows, None)
        is_snapshot = pc.equal(ends.column(HISTORY_OP), HISTORY_SNAPSHOT_END).to_numpy()
        has = follows & is_snapshot[opening] & (file[opening] == file[here])
        has &= offset[opening] - RANK_DELETE + RANK_OTHER == offset[here]
        return cls(
            number,
            number - has,
            np.where(follows, times[before], NEVER),
            closed,
            np.where(closed, times[after], NEVER),
        )


def are_ends(rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows of a history table are no versions, but ends of many rows."""
    return pc.is_in(rows.column(HISTORY_OP), pa.array(HISTORY_ENDS))


def _sent_again(ends: pa.Table, order: Integers, shard: Integers) -> Integers:
    """Return the ends whose transaction has another one at a higher position of the shard."""
    transactions = ends.column(HISTORY_TRANSACTION).to_pylist()
    last: dict[tuple[int, str], int] = {}
    found = []
    for at in order[order < ends.num_rows].tolist():
        if transactions[at] is not None:
            before = last.get((int(shard[at]), transactions[at]))
            last[int(shard[at]), transactions[at]] = at
            found += [] if before is None else [before]
    return np.array(found, np.int64)


def _places(
    ends: pa.Table, changes: pa.Table, shard_key: Sequence[str]
) -> tuple[Integers, Integers, Integers]:
    """Return a number for the shard, and the position, of the ends and then of the changes."""
    names = [*shard_key, POSITION_FILE, POSITION_OFFSET]
    both = pa.concat_tables([ends.select(names), changes.select(names)]).combine_chunks()
    shard = np.zeros(both.num_rows, np.int64)
    for name in shard_key:
        codes = both.column(name).chunk(0).dictionary_encode().indices.to_numpy()
        shard = shard * (int(codes.max()) + 1) + codes
    file, offset = (both.column(name).to_numpy() for name in (POSITION_FILE, POSITION_OFFSET))
    return shard, file, offset


def microseconds(times: pa.ChunkedArray) -> Integers:
    """Return times in microseconds since 1970, `NEVER` for null."""
    known: Integers = pc.fill_null(times.cast(pa.int64()), NEVER).to_numpy()
    return known


def rising(times: Integers, key: Integers) -> Integers:
    """Return for each time the latest of its key up to it; equal keys are next to each other."""
    known = times.copy()
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    lengths = np.diff(np.append(starts, len(key)))
    # Steps double until they span the longest run of one key.
    step, longest = 1, int(lengths.max(initial=0))
    place = np.arange(len(key)) - np.repeat(starts, lengths)
    while step < longest:
        later = np.flatnonzero(place >= step)
        known[later] = np.maximum(known[later], known[later - step])
        step *= 2
    return known
