"""Order of late records: dead letters, behind which later records were applied.

A late change is applied by its position. That is right only if its position lies where the record
lies: above all that its partition had read before it, and not above what it read behind it. If the
source failed over among the records that could not be read, positions of two servers are compared,
and nothing else shows it. So each dead letter is stored with what was read around it:

    before  the state of its partition before it. The record is judged as if it were read then: it
            rises, or repeats what was met, or its lower position isn't explained. It is in another
            epoch only if the stream that opened that one says so: of the other streams, records
            that could not be read are unknown.

    behind  the first higher position that was read after it. Whatever is read later is above that
            one, or was met before.

Dead letters with the same position behind them form a group: nothing orders them but each other. So
those of a group are applied in the order of their offsets, each only above the one before it, and
each is a bound for those that stay. Behind the last group nothing was read yet: there a replay
moves the partition's highest position.

A record that repeats what was met before is applied at its position, too, as when it is read. One
that repeats a record which was applied late has no effect. Letters of older versions, and those
that were read again, have nothing stored: they are applied if the partition has entered no epoch
since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch, epoch_at
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.sources.epochs import ChangePositions, epochs_of_late_records, follow

UNPROVEN = (
    "its position doesn't lie between those read before and after it in its partition, so the"
    " source may have failed over there; drop it, and let `lakesplice verify --repair` mend the"
    " row, or reload the table"
)


@dataclass(frozen=True, slots=True)
class ReadAround:
    """What was read around a record that became a dead letter: the state of its partition `before`
    it, and the first higher position that was read `behind` it, None as long as there is none.
    """

    before: PartitionState
    behind: Position | None = None


@dataclass(frozen=True, slots=True)
class LateChange:
    """A late record that is applied at a new highest position of its group, which has `behind`
    behind it; its GTID, and the state of its partition after it. `entered` is an epoch that it
    begins.
    """

    offset: Offset
    position: Position
    gtid: str | None
    behind: Position | None
    after: PartitionState
    entered: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LateRecords:
    """What is known of the late records of a partition: what was read `around` them, by offset, and
    by group the state that the last applied one has `reached`. `places` are positions and GTIDs of
    those that were applied.
    """

    around: Mapping[int, ReadAround] = field(default_factory=dict)
    reached: Mapping[Position | None, PartitionState] = field(default_factory=dict)
    places: frozenset[tuple[Position, str | None]] = frozenset()

    def with_applied(self, applied: Sequence[LateChange]) -> LateRecords:
        """Return what is known after these were applied."""
        later = {change.behind: change.after for change in applied}
        places = self.places | {(change.position, change.gtid) for change in applied}
        return replace(self, reached={**self.reached, **later}, places=places)


@dataclass(frozen=True, slots=True)
class LatePath:
    """What late changes showed: the epochs of those before `end`, and which of their records are
    `applied` at new highest positions. At `end` there is a record that repeats one which was
    applied late, or one whose order is `unproven`, or nothing more.
    """

    epoch: Sequence[int]
    applied: Sequence[LateChange]
    end: int
    unproven: bool = False


def follow_late(
    positions: ChangePositions, partition: int, epochs: Sequence[Epoch], known: LateRecords
) -> LatePath:
    """Return the path of a partition's late changes, in the order of their offsets."""
    epoch: list[int] = []
    applied: list[LateChange] = []
    for start, stop in _records(positions):
        part = positions.between(start, stop)
        offset = Offset(int(part.record[0]))
        around = known.around.get(offset)
        found = epochs_of_late_records(part, partition, epochs)
        if around is None:
            if _entered_since(epochs, partition, offset):
                return LatePath(epoch, applied, start, unproven=True)
            epoch += found.tolist()
            continue
        recorded = epoch_at(epochs, partition, offset)
        tried = (
            _placed(part, partition, epochs, known, around, at) for at in (recorded, found[-1])
        )
        place = next((one for one in tried if one is not None), None)
        if place is None:
            lifted = _highest(part, found), part.gtid[-1].as_py()
            return LatePath(epoch, applied, start, unproven=lifted not in known.places)
        epoch += [place.position.file >> FILE_BITS] * len(part)
        if place.position > known.reached.get(around.behind, around.before).position:
            applied.append(place)
            known = known.with_applied([place])
    return LatePath(epoch, applied, len(positions))


def _placed(
    part: ChangePositions,
    partition: int,
    epochs: Sequence[Epoch],
    known: LateRecords,
    around: ReadAround,
    epoch: int,
) -> LateChange | None:
    """Return a record as it stands in an epoch; None if it isn't proven to lie there."""
    offset = Offset(int(part.record[0]))
    state = known.reached.get(around.behind, around.before)
    entered = {}
    if epoch > epoch_at(epochs, partition, offset):
        entered, state = {int(epoch): offset}, state.forgetting()
    course = follow(part, partition, state, _known_then(epochs, partition, offset, entered))
    if course.end < len(part):
        return None
    position = _highest(part, course.epoch)
    if around.behind is not None and position > around.behind:
        return None
    gtid = part.gtid[-1].as_py()
    return LateChange(offset, position, gtid, around.behind, course.state, entered)


def states_before(
    positions: ChangePositions,
    partition: int,
    state: PartitionState,
    epochs: Sequence[Epoch],
    places: Iterable[int],
) -> dict[int, PartitionState]:
    """Return the states of a partition before some of its changes, given by their numbers.

    `state` is the one before all of them. At each place it must be known that the changes before it
    can be applied.
    """
    found: dict[int, PartitionState] = {}
    start = 0
    for at in sorted({*places}):
        course = follow(positions.between(start, at), partition, state, epochs)
        entered = course.entered
        epochs = [
            one.entered_by(partition, entered[one.number]) if one.number in entered else one
            for one in epochs
        ]
        state, start = course.state, at
        found[at] = state
    return found


def narrowed(offset: Offset, around: ReadAround, applied: Sequence[LateChange]) -> ReadAround:
    """Return what was read around a dead letter that stays, after others were applied."""
    group = [change for change in applied if change.behind == around.behind]
    earlier = [change for change in group if change.offset < offset]
    later = [change for change in group if change.offset > offset]
    before = max(earlier, key=lambda change: change.offset).after if earlier else around.before
    behind = min(later, key=lambda change: change.offset).position if later else around.behind
    return ReadAround(before, behind)


def raised(
    state: PartitionState, partition: int, epochs: Sequence[Epoch], applied: Sequence[LateChange]
) -> tuple[PartitionState, tuple[Epoch, ...]]:
    """Return the state of a partition and the epochs after late changes were applied behind which
    nothing was read yet.
    """
    last = [change for change in applied if change.behind is None]
    if not last:
        return state, tuple(epochs)
    after = max(last, key=lambda change: change.offset).after
    entered = {number: at for change in last for number, at in change.entered.items()}
    moved = replace(
        state,
        position=after.position,
        gtids=after.gtids,
        met_gtids=after.met_gtids,
        last_transaction=after.last_transaction,
        highest=None if after.position > state.position else state.highest,
    )
    return moved, tuple(
        epoch.entered_by(partition, entered[epoch.number]) if epoch.number in entered else epoch
        for epoch in epochs
    )


def _records(positions: ChangePositions) -> Iterator[tuple[int, int]]:
    """Yield where the changes of each record begin and end."""
    if not len(positions):
        return
    starts = np.flatnonzero(np.diff(positions.record, prepend=-1))
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(positions)], strict=True)


def _highest(part: ChangePositions, epoch: Integers) -> Position:
    files = part.file + (epoch << FILE_BITS)
    return max(map(Position, files.tolist(), part.offset.tolist()))


def _entered_since(epochs: Iterable[Epoch], partition: int, offset: Offset) -> bool:
    return any(epoch.entered.get(partition, offset + 1) > offset for epoch in epochs)


def _known_then(
    epochs: Iterable[Epoch], partition: int, offset: Offset, entered: Offsets
) -> list[Epoch]:
    """Return the epochs that the partition had entered up to a record, or enters with it."""
    passed = [epoch for epoch in epochs if epoch.entered.get(partition, offset + 1) <= offset]
    return passed + [
        epoch.entered_by(partition, offset) for epoch in epochs if epoch.number in entered
    ]
