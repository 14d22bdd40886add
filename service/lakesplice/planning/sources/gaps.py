"""Gaps of a source: how they arise, and what closes them.

Records are passed over if an operator says so, or if the broker lost them and the settings say to
continue. A gap shrinks as its offsets are read after all, unless a purge may have made their
changes useless. A snapshot of the whole table that began after it closes it, once it is read to its
end. A table that is reloaded has no gaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from lakesplice.model.arrays import Integers
from lakesplice.model.change import above
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import Position
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.late_order import LateChange, ReadAround, narrowed

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
            start, reached = read_until(state), state.position
            gap = Gap(source.topic_id, at, start, offset, reached, met=state.met)
            gaps = _bounded((*gaps, gap), at)
    return gaps


def after_reading(
    source: SourceState,
    states: Mapping[int, PartitionState],
    lowest: Mapping[int, Position],
    late: Mapping[int, Sequence[LateChange]] = MappingProxyType({}),
) -> tuple[Gap, ...]:
    """Return the gaps that remain after a source's partitions were read up to `states`.

    `lowest` has, for some partitions, the lowest position read for the first time that is above
    those before; `late` has what was applied of the records that were returned to.
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
            now = _narrowed(gap, late.get(gap.partition, ()))
            left.append(_behind(now, () if met is None else (met,)))
        elif source.purge_floor > gap.after:
            # What is at or below the floor has no effect if its key is unknown. What is read again
            # of it can't be judged a second time.
            left.append(gap if end <= start else replace(gap, met=None))
        else:
            unread = _without(gap, gap.end, start, end)
            parts = [_narrowed(part, late.get(gap.partition, ()), gap) for part in unread]
            met = lowest.get(gap.partition)
            left += [_behind(part, () if met is None else (met,)) for part in parts]
    return tuple(left)


def around(gap: Gap) -> ReadAround | None:
    """Return what was read around a gap's records; None if it isn't known."""
    if gap.met is None:
        return None
    before = PartitionState(gap.start, gap.after, gap.met.highest).having_met(gap.met)
    return ReadAround(before, gap.before)


def narrowed_gaps(
    gaps: Iterable[Gap], topic_id: str, late: Mapping[int, Sequence[LateChange]]
) -> tuple[Gap, ...]:
    """Return gaps after late records of their topic were applied, given by partition."""
    return tuple(
        _narrowed(gap, late.get(gap.partition, ())) if gap.topic_id == topic_id else gap
        for gap in gaps
    )


def _narrowed(part: Gap, late: Sequence[LateChange], gap: Gap | None = None) -> Gap:
    """Return a part of a gap, or all of it, after late records were applied."""
    known = around(part)
    if known is None:
        return part
    now, adjoins = narrowed(part.start, known, late), part.start - 1
    moved = now.before is not known.before or (gap is not None and part.start > gap.start)
    before = now.before
    if moved and not any(change.offset == adjoins for change in late):
        before = before.before_missing()
    return replace(part, after=before.position, before=now.behind, met=before.met)


def may_hold(gap: Gap, snapshot: Position) -> bool:
    """Whether rows of a snapshot at this position may be among the records of a gap."""
    return gap.after < snapshot and (gap.before is None or gap.before > snapshot)


def closed_by(gap: Gap, snapshot: Position) -> bool:
    """Whether all changes of a gap are below a whole snapshot at this position."""
    return gap.before is not None and gap.before <= snapshot


def lowest_above(file: Integers, offset: Integers, floor: Position) -> Position | None:
    """Return the lowest of these positions above `floor`, if there is one."""
    higher = above(file, offset, floor.file, floor.offset)
    if not higher.any():
        return None
    lowest = int(file[higher].min())
    return Position(lowest, int(offset[higher & (file == lowest)].min()))


def _behind(gap: Gap, positions: Iterable[Position]) -> Gap:
    higher = [position for position in positions if position > gap.after]
    return replace(gap, before=min(higher)) if higher and gap.before is None else gap


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
    joined = replace(first, end=second.end, before=second.before, met=None)
    return tuple(joined if gap is first else gap for gap in gaps if gap is not second)
