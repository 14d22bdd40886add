"""Records that are read later than others behind them, since an operator returned to them: those of
gaps, and dead letters whose offsets are read again.

Their positions mean something only where they lie. So what was read around them is kept
(`planning/sources/late_order.py`), and they are judged as if they had been read then. One that
isn't proven to lie there is `unproven`. One whose surroundings aren't known is applied only if the
partition has entered no epoch since. All other records below `PartitionState.met_until` were
applied before, and have no effect.

Behind the last records nothing was read yet: what is applied there moves the partition's highest
position.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.offsets import Offset
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch, entered_epochs, epoch_at, in_epoch
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath, follow
from lakesplice.planning.sources.gaps import around, lowest_above
from lakesplice.planning.sources.gtids import GtidStreams
from lakesplice.planning.sources.late_order import (
    LateChange,
    LateRecords,
    ReadAround,
    entered_since,
    follow_late,
    known_then,
    last_reached,
    raised,
)
from lakesplice.planning.sources.met_gtids import Memory
from lakesplice.planning.sources.position_order import gtid_at


@dataclass(frozen=True, slots=True)
class Waiting:
    """The records of one partition that later ones were read before: the `gaps`, and by offset what
    was read around each of the dead letters, None where that isn't known.

    `began` is where it is read from now on, and `applied` what was applied of them since.
    """

    gaps: tuple[Gap, ...] = ()
    letters: Mapping[int, ReadAround | None] = field(default_factory=dict)
    began: int = 0
    applied: tuple[LateChange, ...] = ()

    @classmethod
    def of(
        cls, source: SourceState, partition: int, letters: Mapping[int, ReadAround | None]
    ) -> Waiting:
        """Return those of a partition, if it is read again; else nothing."""
        state = source.partitions.get(partition)
        if state is None or state.met_until <= state.next_offset:
            return cls()
        gaps = (
            gap
            for gap in source.gaps
            if gap.partition == partition and gap.topic_id == source.topic_id
        )
        return cls(
            tuple(replace(gap, before=_behind(gap.after, gap.before, state)) for gap in gaps),
            {
                at: None
                if one is None
                else ReadAround(one.before, _behind(one.before.position, one.behind, state))
                for at, one in letters.items()
            },
            state.next_offset,
        )

    def __bool__(self) -> bool:
        return bool(self.gaps or self.letters)

    def around(self, offset: int) -> ReadAround | None:
        """Return what was read around a record; None if that isn't known."""
        if offset in self.letters:
            return self.letters[offset]
        gap = self._gap(offset)
        found = None if gap is None else around(gap)
        if gap is None or found is None:
            return None
        is_cut = gap.start < self.began
        before = found.before.before_missing() if is_cut else found.before
        return ReadAround(replace(before, next_offset=Offset(offset)), found.behind)

    def around_each(
        self, records: Iterable[RecordIndex], offsets: Integers
    ) -> dict[RecordIndex, ReadAround]:
        """Return what was read around those of the records at `offsets` where that is known."""
        found = ((record, self.around(int(offsets[record]))) for record in records)
        return {record: one for record, one in found if one is not None}

    def _gap(self, offset: int) -> Gap | None:
        return next((gap for gap in self.gaps if gap.holds(offset)), None)

    def with_applied(self, applied: Iterable[LateChange]) -> Waiting:
        """Return them after records were applied. What was applied between two of them is kept as
        its first and its last change.
        """
        kept = list(self.applied)
        for change in applied:
            if (
                len(kept) > 1
                and _alike(kept[-1], kept[-2], change)
                and not self._between(kept[-2].offset, change.offset)
            ):
                kept.pop()
            kept.append(change)
        return replace(self, applied=tuple(kept))

    def _between(self, first: int, last: int) -> bool:
        starts = (gap.start for gap in self.gaps)
        return any(first < at <= last for at in (*self.letters, *starts))


def _behind(reached: Position, behind: Position | None, state: PartitionState) -> Position | None:
    """Whatever is read or applied next is behind the last ones. If one were still among them
    although the partition went on, nothing may rise there.
    """
    return reached if behind is None and state.position != reached else behind


def _alike(*changes: LateChange) -> bool:
    return len({(change.behind, change.rises) for change in changes}) == 1


@dataclass(frozen=True, slots=True)
class ReturnedPath:
    """The `course` of a partition's changes, among them some that are returned to. Of these
    `applied` are those that are applied; `unproven` are the offsets of records that aren't, and
    `repeated` of those that repeat one which was applied late.
    """

    course: EpochPath
    applied: Sequence[LateChange] = ()
    unproven: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()


def follow_returned(
    positions: ChangePositions,
    partition: int,
    state: PartitionState,
    epochs: Sequence[Epoch],
    waiting: Waiting,
) -> ReturnedPath:
    """Return the path of a partition's changes; `epochs` are those of the table, ascending."""
    walk = _Walk(partition, state, epochs, waiting)
    for start, stop, is_waiting in _runs(positions, state.met_until, waiting):
        part = positions.between(start, stop)
        if is_waiting:
            walk.take_late(part)
        elif not walk.take(part):
            break
    return walk.path()


class _Walk:
    """The path through the changes, run by run."""

    def __init__(
        self, partition: int, state: PartitionState, epochs: Sequence[Epoch], waiting: Waiting
    ) -> None:
        self._partition = partition
        self._state = state
        self._epochs = tuple(epochs)
        self._waiting = waiting
        self._known = LateRecords().with_applied(waiting.applied)
        self._courses: list[EpochPath] = []
        self._applied: list[LateChange] = []
        self._unproven: set[int] = set()
        self._repeated: set[int] = set()

    def take(self, part: ChangePositions) -> bool:
        """Take changes that don't wait; return whether all of them could be taken."""
        course = follow(part, self._partition, self._state, self._epochs)
        self._courses.append(course)
        self._state = course.state
        self._enter(course.entered)
        return course.end == len(part)

    def take_late(self, part: ChangePositions) -> None:
        """Take changes that wait, with consecutive offsets."""
        first = int(part.record[0])
        known = self._waiting.around(first)
        if known is None:
            if entered_since(self._epochs, self._partition, Offset(first)):
                self._refuse(part)
            else:
                self.take(part)
            return
        if known.behind is None:
            reached = self._last_reached(known.before)
        else:
            reached = self._known.reached.get(known.behind, known.before)
        if not self._take_at_once(part, reached, known.behind):
            self._take_singly(part, reached, known.behind)

    def _last_reached(self, before: PartitionState) -> PartitionState:
        last = self._known.reached.get(None)
        if last is not None and self._state.met == last.met:
            interrupted = last.met.last is None
            reached = replace(self._state, met_until=0, repeating=False)
        else:
            reached, interrupted = last_reached(self._state, [before])
        self._known = replace(self._known, interrupted=interrupted)
        return reached

    def _take_at_once(
        self, part: ChangePositions, reached: PartitionState, behind: Position | None
    ) -> bool:
        """Take changes if all of them lie where they should; return whether they do."""
        first, last = Offset(int(part.record[0])), Offset(int(part.record[-1]))
        recorded = epoch_at(self._epochs, self._partition, first)
        if recorded != epoch_at(self._epochs, self._partition, last):
            return False
        then = known_then(self._epochs, self._partition, first, {})
        course = follow(part, self._partition, reached, then)
        if course.end < len(part) or course.entered or _repeats(part, reached):
            return False
        file = part.file + (course.epoch << FILE_BITS)
        highest = max(map(Position, file.tolist(), part.offset.tolist()))
        if behind is not None and highest > behind:
            return False
        lowest = lowest_above(file, part.offset, reached.position)
        position, gtid, after = lowest or highest, part.gtid[-1].as_py(), course.state
        if behind is None and self._known.interrupted:
            after = after.before_missing()
        change = LateChange(last, position, gtid, behind, after, rises=lowest is not None)
        self._apply(replace(course, state=self._state, entered={}), [change])
        return True

    def _take_singly(
        self, part: ChangePositions, reached: PartitionState, behind: Position | None
    ) -> None:
        """Take those changes that lie where they should."""
        around_each = dict.fromkeys(part.record.tolist(), ReadAround(reached, behind))
        known = replace(self._known, around=around_each).with_applied(())
        known = replace(known, reached={**known.reached, behind: reached})
        start = 0
        while start < len(part):
            rest = part.between(start, len(part))
            path = follow_late(rest, self._partition, self._epochs, known)
            known = known.with_applied(path.applied, path.elsewhere)
            epoch = np.array(path.epoch, np.int64)
            self._apply(EpochPath(epoch, path.end, self._state), path.applied)
            start += path.end
            if start < len(part):
                stop = int(np.searchsorted(part.record, part.record[start], side="right"))
                self._refuse(part.between(start, stop), unproven=path.unproven)
                start = stop

    def _apply(self, course: EpochPath, applied: Sequence[LateChange]) -> None:
        self._courses.append(course)
        self._applied += applied
        self._known = self._known.with_applied(applied)
        self._state, self._epochs = raised(self._state, self._partition, self._epochs, applied)
        for change in applied:
            if change.behind is None:
                self._courses[-1] = replace(self._courses[-1], entered=change.entered)

    def _refuse(self, part: ChangePositions, *, unproven: bool = True) -> None:
        """Leave out records. Those of a gap that were sent again behind it are missing nowhere."""
        offsets, memory = part.record.tolist(), Memory(self._state.met)
        recorded = [epoch_at(self._epochs, self._partition, Offset(at)) for at in offsets]
        for row, offset in enumerate(offsets):
            gtid = gtid_at(part.gtid, row)
            place = in_epoch(Position(int(part.file[row]), int(part.offset[row])), recorded[row])
            again = (
                gtid is not None
                and offset not in self._waiting.letters
                and memory.is_surely_read(gtid, place, self._state.position)
            )
            (self._unproven if unproven and not again else self._repeated).add(offset)
        self._courses.append(EpochPath(np.array(recorded, np.int64), len(part), self._state))

    def _enter(self, entered: Mapping[int, Offset]) -> None:
        self._epochs = entered_epochs(self._epochs, self._partition, entered)

    def path(self) -> ReturnedPath:
        """Return what was found."""
        none = EpochPath(np.empty(0, np.int64), 0, self._state)
        last = self._courses[-1] if self._courses else none
        course = EpochPath(
            epoch=np.concatenate([none.epoch, *(one.epoch for one in self._courses)]),
            end=sum(one.end for one in self._courses),
            state=self._state,
            detail=last.detail,
            opening=last.opening,
            entered={at: first for one in self._courses for at, first in one.entered.items()},
            repetitions=sum(one.repetitions for one in self._courses),
        )
        unproven, repeated = frozenset(self._unproven), frozenset(self._repeated)
        return ReturnedPath(course, tuple(self._applied), unproven, repeated)


def _repeats(part: ChangePositions, reached: PartitionState) -> bool:
    """Whether one of the changes isn't later than all that was met before."""
    met = reached.met.highest
    streams = GtidStreams.of(part.gtid, met)
    newest = np.array([met.get(name, -1) for name in streams.names] + [-1], np.int64)
    return bool(streams.from_sets) or bool(np.any(streams.number < newest[streams.stream]))


def _runs(
    positions: ChangePositions, met_until: int, waiting: Waiting
) -> Iterator[tuple[int, int, bool]]:
    """Yield where runs of changes begin and end, and whether they wait: these have consecutive
    offsets, and are in one gap, or are one dead letter.
    """
    record = positions.record
    again = int(np.searchsorted(record, met_until))
    bounds: Collection[int] = {0, again}
    marked = np.zeros(len(record), np.bool_)
    for gap in waiting.gaps:
        ends = [int(at) for at in np.searchsorted(record[:again], [gap.start, gap.end or 0])]
        if ends[0] < ends[1]:
            marked[ends[0] : ends[1]] = True
            holes = ends[0] + 1 + np.flatnonzero(np.diff(record[ends[0] : ends[1]]) > 1)
            bounds = {*bounds, *ends, *holes.tolist()}
    for offset in waiting.letters:
        start, stop = (
            int(np.searchsorted(record[:again], offset, side)) for side in ("left", "right")
        )
        if start < stop:
            marked[start:stop] = True
            bounds = {*bounds, start, stop}
    edges = sorted({*bounds, len(record)})
    for first, last in pairwise(edges):
        yield first, last, bool(marked[first])
