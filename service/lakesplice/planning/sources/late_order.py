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
from enum import Enum, auto

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch, entered_epochs, epoch_at
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.sources.epochs import ChangePositions, epochs_of_late_records, follow
from lakesplice.planning.sources.met_gtids import Memory
from lakesplice.planning.sources.position_order import gtid_at

ORDER_UNPROVEN = "order-unproven"
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
    """Late records that are applied, one or several with consecutive offsets, in the group that has
    `behind` behind it: the offset of the last one, the first of their positions that is a new
    highest one of the group, the last one's GTID, and the state of the partition after them. If
    none of them `rises`, they repeat what was met, and `position` is the last one's. `entered` is
    an epoch that they begin.
    """

    offset: Offset
    position: Position
    gtid: str | None
    behind: Position | None
    after: PartitionState
    entered: Offsets = field(default_factory=dict)
    rises: bool = True


@dataclass(frozen=True, slots=True)
class LateRecords:
    """What is known of the late records of a partition: what was read `around` them, by offset, and
    by group the state that the last applied one has `reached`. `places` are positions and GTIDs of
    those that were applied; in the groups `elsewhere` a record repeats what another server has. If
    the last group is `interrupted`, others were read behind its first one, none of them higher.
    """

    around: Mapping[int, ReadAround] = field(default_factory=dict)
    reached: Mapping[Position | None, PartitionState] = field(default_factory=dict)
    places: frozenset[tuple[Position, str | None]] = frozenset()
    interrupted: bool = False
    elsewhere: frozenset[Position | None] = frozenset()

    def with_applied(
        self, applied: Sequence[LateChange], elsewhere: Iterable[Position | None] = ()
    ) -> LateRecords:
        """Return what is known after these were applied."""
        later = {change.behind: change.after for change in applied}
        places = self.places | {(change.position, change.gtid) for change in applied}
        elsewhere = self.elsewhere.union(elsewhere)
        reached = {**self.reached, **later}
        return replace(self, reached=reached, places=places, elsewhere=elsewhere)


@dataclass(frozen=True, slots=True)
class LatePath:
    """What late changes showed: the epochs of those before `end`, and which of their records are
    `applied`. At `end` there is a record that repeats one which was applied late, or one whose
    order is `unproven`, or nothing more. In the groups `elsewhere` a record repeats what another
    server has.
    """

    epoch: Sequence[int]
    applied: Sequence[LateChange]
    end: int
    unproven: bool
    elsewhere: frozenset[Position | None]


def follow_late(
    positions: ChangePositions, partition: int, epochs: Sequence[Epoch], known: LateRecords
) -> LatePath:
    """Return the path of a partition's late changes, in the order of their offsets."""
    epoch: list[int] = []
    applied: list[LateChange] = []
    elsewhere = known.elsewhere | _repeated_elsewhere(positions, partition, epochs, known)

    def stopped(*, unproven: bool) -> LatePath:
        return LatePath(epoch, applied, len(epoch), unproven, elsewhere)

    for start, stop in _records(positions):
        part = positions.between(start, stop)
        offset = Offset(int(part.record[0]))
        around = known.around.get(offset)
        found = epochs_of_late_records(part, partition, epochs)
        if around is None:
            if entered_since(epochs, partition, offset):
                return stopped(unproven=True)
            epoch += found.tolist()
            continue
        recorded = epoch_at(epochs, partition, offset)
        state = known.reached.get(around.behind, around.before)
        if (repeats := _repeats_met(part, recorded, state)) is not Repeats.NOTHING:
            return stopped(unproven=repeats is Repeats.ELSEWHERE)
        tried = (
            _placed(part, partition, epochs, known, around, at) for at in (recorded, found[-1])
        )
        place = next((one for one in tried if one is not None), None)
        if place is None or (place.rises and around.behind in elsewhere):
            lifted = _highest(part, found), part.gtid[-1].as_py()
            return stopped(unproven=lifted not in known.places)
        epoch += [place.position.file >> FILE_BITS] * len(part)
        applied.append(place)
        known = known.with_applied([place])
    return stopped(unproven=False)


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
        if not _may_enter(epoch, partition, epochs, offset, around, known):
            return None
        entered, state = {int(epoch): offset}, state.forgetting()
    course = follow(part, partition, state, known_then(epochs, partition, offset, entered))
    if course.end < len(part):
        return None
    position = _highest(part, course.epoch)
    if around.behind is not None and position > around.behind:
        return None
    after = course.state
    if around.behind is None and known.interrupted:
        after = after.before_missing()
    gtid, rises = part.gtid[-1].as_py(), position > state.position
    return LateChange(offset, position, gtid, around.behind, after, entered, rises=rises)


def _may_enter(
    number: int,
    partition: int,
    epochs: Iterable[Epoch],
    offset: Offset,
    around: ReadAround,
    known: LateRecords,
) -> bool:
    """Whether an epoch may begin with a record: all records behind it are known to be in it."""
    first = next(epoch.entered.get(partition) for epoch in epochs if epoch.number == number)
    if first is None:
        return around.behind is None and not known.interrupted
    between = range(offset + 1, first)
    return len(between) < len(known.around) and all(at in known.around for at in between)


class Repeats(Enum):
    """What a late record repeats: `NOTHING` that was met before; something that no row lacks, so it
    has no effect (`HERE`); or something that another server has `ELSEWHERE`, at a higher position.
    """

    NOTHING = auto()
    HERE = auto()
    ELSEWHERE = auto()


def _repeated_elsewhere(
    positions: ChangePositions, partition: int, epochs: Sequence[Epoch], known: LateRecords
) -> set[Position | None]:
    """Return the groups in which a record repeats what another server has elsewhere. Others that
    rise there may come from the same server.
    """
    found: set[Position | None] = set()
    for start, stop in _records(positions):
        part = positions.between(start, stop)
        offset = Offset(int(part.record[0]))
        if around := known.around.get(offset):
            recorded = epoch_at(epochs, partition, offset)
            if _repeats_met(part, recorded, around.before) is Repeats.ELSEWHERE:
                found.add(around.behind)
    return found


def _repeats_met(part: ChangePositions, epoch: int, state: PartitionState) -> Repeats:
    """Return what a record repeats, if it is read in this state.

    If the connector went on to a third server, records behind this one may have been read at lower
    positions, although they are later: while it couldn't be read, nothing showed that. So it isn't
    applied beside them.
    """
    gtid = gtid_at(part.gtid, len(part) - 1)
    if gtid is None:
        return Repeats.NOTHING
    position = _highest(part, np.full(len(part), epoch))
    if position > state.position:
        newest = state.met.highest.get(gtid.stream, -1)
        return Repeats.ELSEWHERE if gtid.number < newest else Repeats.NOTHING
    surely = Memory(state.met).is_surely_read(gtid, position, state.position)
    return Repeats.HERE if surely else Repeats.NOTHING


def last_reached(
    state: PartitionState, before: Iterable[PartitionState]
) -> tuple[PartitionState, bool]:
    """Return the state from which the last group continues, and whether it is interrupted.

    `state` is the partition's, `before` are the states before the group's records. What was read
    since isn't in the order in which the source wrote it.
    """
    state = replace(state, met_until=0, repeating=False)
    known = [one.met for one in before]
    if all(state.met in (met, met.before_missing()) for met in known):
        return (state.having_met(known[0]) if known else state), False
    return state.before_missing(), True


def narrowed(offset: Offset, around: ReadAround, applied: Sequence[LateChange]) -> ReadAround:
    """Return what was read around a record that waits, after others were applied."""
    group = [change for change in applied if change.behind == around.behind]
    earlier = [change for change in group if change.offset < offset]
    later = [change for change in group if change.offset > offset and change.rises]
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
    return moved, entered_epochs(epochs, partition, entered)


def _records(positions: ChangePositions) -> Iterator[tuple[int, int]]:
    """Yield where the changes of each record begin and end."""
    if not len(positions):
        return
    starts = np.flatnonzero(np.diff(positions.record, prepend=-1))
    yield from zip(starts.tolist(), [*starts[1:].tolist(), len(positions)], strict=True)


def _highest(part: ChangePositions, epoch: Integers) -> Position:
    files = part.file + (epoch << FILE_BITS)
    return max(map(Position, files.tolist(), part.offset.tolist()))


def entered_since(epochs: Iterable[Epoch], partition: int, offset: Offset) -> bool:
    """Whether a partition entered an epoch behind a record."""
    return any(epoch.entered.get(partition, offset + 1) > offset for epoch in epochs)


def known_then(
    epochs: Iterable[Epoch], partition: int, offset: Offset, entered: Offsets
) -> list[Epoch]:
    """Return the epochs that the partition had entered up to a record, or enters with it."""
    passed = [epoch for epoch in epochs if epoch.entered.get(partition, offset + 1) <= offset]
    return passed + [
        epoch.entered_by(partition, offset) for epoch in epochs if epoch.number in entered
    ]
