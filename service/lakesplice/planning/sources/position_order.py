"""Order within one topic partition: what a lower position means.

A topic partition has its source's changes in order, so positions rise or stay equal (rows of one
snapshot, the two halves of a key update). There are two reasons for a lower position, which look
alike:

    a repetition    the connector restarted and sends again what it had sent: harmless, since a
                    change at or below its row's position has no effect
    another source  after a failover or with a reset binlog positions start over, and by the same
                    rule new changes would silently have no effect

The GTID distinguishes them: one that this partition had before is a repetition. Within a stream of
GTIDs (`gtids.py`) numbers only rise, so "had before" means: not above the highest one met. Every
other lower position is a violation, also that of a row without a GTID; `epochs.py` decides which of
them another server explains. Snapshot rows have no GTID: their position is the one where their
snapshot began. A snapshot that is started again begins at or above everything that was sent, so
snapshot rows at a lower position are unexplained. Server ids prove nothing: they name the server
where a change originated, and alternate behind replicas.
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
    operator (empty if there is none). `high` and `seen` include the rows before it: the highest
    position, and per stream of GTIDs the highest number. `repetitions` counts the rows before it at
    lower positions.
    """

    first_violation: int | None
    detail: str
    high: Position
    seen: Mapping[str, int]
    repetitions: int = 0


def check_order(
    position_file: Integers,
    position_offset: Integers,
    gtid: pa.StringArray,
    start: Position,
    seen: Mapping[str, int],
    known: Mask | None = None,
) -> OrderCheck:
    """Check the rows of one partition, in offset order.

    `start` is the highest position that the partition had before, `seen` the highest number per
    stream of GTIDs. Those of other partitions must not be included: if one is ahead, changes of a
    new source that this partition hasn't had yet would look like repetitions. A GTID that is null
    or can't be read explains nothing. Rows marked in `known` are known to be repetitions.
    """
    below = _below_high(position_file, position_offset, start)
    streams = GtidStreams.of(gtid, seen)
    unexplained = below & ~streams.met_before(below, seen)
    if known is not None:
        unexplained &= ~known
    violations = np.flatnonzero(unexplained)
    if not len(violations):
        high = _high(position_file, position_offset, start)
        return OrderCheck(None, "", high, streams.highest(seen), int(np.count_nonzero(below)))
    first = int(violations[0])
    high = _high(position_file[:first], position_offset[:first], start)
    at = Position(int(position_file[first]), int(position_offset[first]))
    name = gtid[first].as_py()
    under = f"under GTID {name}, which is new," if name else "without a GTID"
    detail = f"position {at} {under} falls below {high}"
    before = int(np.count_nonzero(below[:first]))
    highest = GtidStreams.of(gtid.slice(0, first), seen).highest(seen)
    return OrderCheck(first, detail, high, highest, before)


def accept_repetitions(
    position_file: Integers, position_offset: Integers, start: Position, seen: Mapping[str, int]
) -> OrderCheck:
    """Check the rows of one partition whose positions come from one clock that never goes back: a
    position below the highest is a repetition, from any sender.
    """
    below = _below_high(position_file, position_offset, start)
    high = _high(position_file, position_offset, start)
    return OrderCheck(None, "", high, dict(seen), int(np.count_nonzero(below)))


def _below_high(file: Integers, offset: Integers, start: Position) -> Mask:
    """Mark the rows that are below the highest position before them."""
    files = np.concatenate((np.array([start.file], np.int64), file))
    offsets = np.concatenate((np.array([start.offset], np.int64), offset))
    falls: Mask = (files[1:] < files[:-1]) | (
        (files[1:] == files[:-1]) & (offsets[1:] < offsets[:-1])
    )
    if not falls.any():
        return falls
    order = np.lexsort((offsets, files))
    rises = np.ones(len(order), dtype=np.int64)
    rises[1:] = (np.diff(files[order]) != 0) | (np.diff(offsets[order]) != 0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(rises)
    below: Mask = rank[1:] < np.maximum.accumulate(rank)[:-1]
    return below


def _high(file: Integers, offset: Integers, start: Position) -> Position:
    if not len(file):
        return start
    highest = file.max()
    return max(start, Position(int(highest), int(offset[file == highest].max())))
