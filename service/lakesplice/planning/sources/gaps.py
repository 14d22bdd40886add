"""Gaps of a source: how they arise, and what closes them.

Records are passed over if an operator says so, or if the broker lost them and the settings say to
continue. A gap shrinks as its offsets are read after all, unless a purge may have made their
changes useless. A snapshot of the whole table that began after it closes it, once it is read to its
end. A table that is reloaded has no gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lakesplice.model.arrays import Integers
from lakesplice.model.offsets import Gap, Offset, Offsets
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SourceState

# Bounds the manifest's size: if a partition has more gaps, the oldest two are joined.
_GAPS_MAX = 32


def read_until(state: PartitionState) -> Offset:
    """Return the offset up to which a partition was read, apart from gaps."""
    return Offset(max(state.met_until, state.next_offset))


def passed_over(source: SourceState, offsets: Offsets) -> tuple[Gap, ...]:
    """Return the gaps of a source that continues at `offsets`, given by partition."""
    gaps = source.gaps
    for at, offset in sorted(offsets.items()):
        state = source.partitions.get(at, PartitionState(Offset(0)))
        if offset > read_until(state):
            gap = Gap(source.topic_id, at, read_until(state), offset, state.position)
            gaps = _bounded((*gaps, gap), at)
    return gaps


def after_reading(
    source: SourceState, states: Mapping[int, PartitionState], lowest: Mapping[int, Position]
) -> tuple[Gap, ...]:
    """Return the gaps that remain after a source's partitions were read up to `states`.

    `lowest` has, for some partitions, the lowest position read that is above those before.
    """
    if not source.gaps:
        return ()
    left: list[Gap] = []
    for gap in source.gaps:
        if gap.topic_id != source.topic_id or gap.end is None:
            left.append(_behind(gap, lowest.values()))
            continue
        start = source.partitions.get(gap.partition, PartitionState(Offset(0))).next_offset
        end = states.get(gap.partition, PartitionState(start)).next_offset
        if start >= gap.end:
            met = lowest.get(gap.partition)
            left.append(_behind(gap, () if met is None else (met,)))
        elif source.purge_floor > gap.after:
            left.append(gap)  # what is at or below the floor has no effect if its key is unknown
        else:
            left += _without(gap, gap.end, start, end)
    return tuple(left)


def may_hold(gap: Gap, snapshot: Position) -> bool:
    """Whether rows of a snapshot at this position may be among the records of a gap."""
    return gap.after < snapshot and (gap.before is None or gap.before > snapshot)


def closed_by(gap: Gap, snapshot: Position) -> bool:
    """Whether all changes of a gap are below a whole snapshot at this position."""
    return gap.before is not None and gap.before <= snapshot


def lowest_above(file: Integers, offset: Integers, floor: Position) -> Position | None:
    """Return the lowest of these positions above `floor`, if there is one."""
    above = (file > floor.file) | ((file == floor.file) & (offset > floor.offset))
    if not above.any():
        return None
    lowest = int(file[above].min())
    return Position(lowest, int(offset[above & (file == lowest)].min()))


def _behind(gap: Gap, positions: Iterable[Position]) -> Gap:
    above = [position for position in positions if position > gap.after]
    return replace(gap, before=min(above)) if above and gap.before is None else gap


def _without(gap: Gap, gap_end: Offset, start: Offset, end: Offset) -> list[Gap]:
    """The part of a gap that wasn't read between two offsets."""
    parts = ((gap.start, min(gap_end, start)), (max(gap.start, end), gap_end))
    if end <= start:
        return [gap]
    return [replace(gap, start=first, end=last) for first, last in parts if first < last]


def _bounded(gaps: tuple[Gap, ...], partition: int) -> tuple[Gap, ...]:
    own = [gap for gap in gaps if gap.partition == partition and gap.end is not None]
    if len(own) <= _GAPS_MAX:
        return gaps
    first, second, *_ = own
    joined = replace(first, end=second.end, before=second.before)
    return tuple(joined if gap is first else gap for gap in gaps if gap is not second)
