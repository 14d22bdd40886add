"""Order within one topic partition: what a lower position means.

A topic partition has its source's changes in order, so positions rise or stay equal (rows of one
snapshot, the two halves of a key update). There are two reasons for a lower position, or for the
highest one again, which look alike:

    a repetition    the connector restarted and sends again what it had sent: harmless, since a
                    change at or below its row's position has no effect
    another source  after a failover or with a reset binlog positions start over, and by the same
                    rule new changes would silently have no effect

The GTID distinguishes them: one that this partition had before is a repetition. Within a stream of
GTIDs (`gtids.py`) numbers only rise, so "had before" means: not above the highest one met. Every
other lower position is a violation, also that of a row without a GTID; `epochs.py` decides which of
them another server explains. The highest position again is a violation only under a new GTID: one
server never writes two transactions at one place.

A connector can also repeat changes from a server whose positions are higher. They are applied once
more, each over a newer state of its row, until the connector has repeated them all. If it goes on
to a third server before that, the rest of them must be applied there, although they were met
before. So only what was met *recently* counts: since the last repeated GTID at a new highest
position, and since the epoch began, whose first change may be an old one that the broker had
compacted away. Sets of GTIDs don't show such repetitions.

Snapshot rows have no GTID: their position is the one where their snapshot began. A snapshot that is
started again begins at or above everything that was sent, so snapshot rows at a lower position are
unexplained. Server ids prove nothing: they name the server where a change originated, and alternate
behind replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.position import Position
from lakesplice.planning.sources.gtids import GtidStreams


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """What a partition's positions showed.

    `first_violation` is the row from which on nothing may be applied, `detail` the reason for an
    operator (empty if there is none). The rest includes the rows before it: `high` is the highest
    position, `recent` has per stream of GTIDs the highest number that was met recently, and
    `repetitions` counts rows at lower positions.
    """

    first_violation: int | None
    detail: str
    high: Position
    recent: Mapping[str, int]
    repetitions: int = 0


def check_order(
    position_file: Integers,
    position_offset: Integers,
    gtid: pa.StringArray,
    start: Position,
    recent: Mapping[str, int],
    known: Mask | None = None,
) -> OrderCheck:
    """Check the rows of one partition, in offset order.

    `start` is the highest position that the partition had before, `recent` the highest number per
    stream of GTIDs that it met recently. Those of other partitions must not be included: if one is
    ahead, changes of a new source that this partition hasn't had yet would look like repetitions. A
    GTID that is null or can't be read explains nothing. Rows marked in `known` are known to be
    repetitions.
    """
    below, again = _not_above_high(position_file, position_offset, start)
    streams = GtidStreams.of(gtid, recent)
    suspect = below | (again & (streams.stream >= 0))
    if known is None:
        known = np.zeros(len(gtid), np.bool_)
    suspect &= ~known
    rising = ~(below | again | known)
    if _goes_back(streams, rising, recent):
        first, recent = _row_by_row(streams, suspect, rising, recent)
    else:
        violations = np.flatnonzero(suspect & ~streams.met_before(suspect, recent))
        first = int(violations[0]) if len(violations) else None
        before = streams if first is None else GtidStreams.of(gtid.slice(0, first), recent)
        recent = before.highest(recent)
    high = _high(position_file[:first], position_offset[:first], start)
    detail = ""
    if first is not None:
        at = Position(int(position_file[first]), int(position_offset[first]))
        name = gtid[first].as_py()
        under = f"under GTID {name}, which is new," if name else "without a GTID"
        falls = "is the highest one again" if at == high else f"falls below {high}"
        detail = f"position {at} {under} {falls}"
    return OrderCheck(first, detail, high, recent, int(np.count_nonzero(below[:first])))


def _goes_back(streams: GtidStreams, rising: Mask, recent: Mapping[str, int]) -> bool:
    """Whether a row at a new highest position has a GTID that was met before, other than that of
    the row before it.
    """
    if streams.from_sets:
        return False
    first_of_transaction = np.ones(len(rising), np.bool_)
    first_of_transaction[1:] = (np.diff(streams.stream) != 0) | (np.diff(streams.number) != 0)
    asked = rising & first_of_transaction & (streams.stream >= 0)
    return bool(streams.met_before(asked, recent).any())


def _row_by_row(
    streams: GtidStreams, suspect: Mask, rising: Mask, recent: Mapping[str, int]
) -> tuple[int | None, dict[str, int]]:
    """Return the first violation, and the highest numbers met recently before it.

    Each row decides what the next one means. Few batches need this.
    """
    met = dict(recent)
    before: tuple[str, int] | None = None
    columns = (streams.stream, streams.number, suspect, rising)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for row, (stream, number, is_suspect, rises) in enumerate(rows):
        name = streams.names[stream] if stream >= 0 else None
        is_met = name is not None and number <= met.get(name, -1)
        if is_suspect and not is_met:
            return row, met
        if name is None:
            continue
        if not is_met:
            met[name] = number
        elif rises and before != (name, number):
            met = {name: number}
        before = name, number
    return None, met


def accept_repetitions(
    position_file: Integers, position_offset: Integers, start: Position, recent: Mapping[str, int]
) -> OrderCheck:
    """Check the rows of one partition whose positions come from one clock that never goes back: a
    position below the highest is a repetition, from any sender.
    """
    below, _ = _not_above_high(position_file, position_offset, start)
    high = _high(position_file, position_offset, start)
    return OrderCheck(None, "", high, dict(recent), int(np.count_nonzero(below)))


def _not_above_high(file: Integers, offset: Integers, start: Position) -> tuple[Mask, Mask]:
    """Mark the rows that are below the highest position before them, and those that are at it."""
    files = np.concatenate((np.array([start.file], np.int64), file))
    offsets = np.concatenate((np.array([start.offset], np.int64), offset))
    same_file = files[1:] == files[:-1]
    falls: Mask = (files[1:] < files[:-1]) | (same_file & (offsets[1:] < offsets[:-1]))
    if not falls.any():
        return falls, same_file & (offsets[1:] == offsets[:-1])
    order = np.lexsort((offsets, files))
    rises = np.ones(len(order), dtype=np.int64)
    rises[1:] = (np.diff(files[order]) != 0) | (np.diff(offsets[order]) != 0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(rises)
    highest = np.maximum.accumulate(rank)[:-1]
    return rank[1:] < highest, rank[1:] == highest


def _high(file: Integers, offset: Integers, start: Position) -> Position:
    if not len(file):
        return start
    highest = file.max()
    return max(start, Position(int(highest), int(offset[file == highest].max())))
