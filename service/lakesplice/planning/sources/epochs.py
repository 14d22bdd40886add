"""Epochs of one topic partition: the epoch in which each of its changes is.

After a failover positions start over: a lower position under a GTID that the partition hasn't met
comes from another server, and begins an epoch. A partition is in the epoch that is recorded for its
records' offsets. If none is recorded, it stays in its epoch, and enters another one with

    a change with a GTID of an epoch that another partition opened, or
    a change at a lower position, or at the highest one again, whose GTID is new to the partition:
    it enters the next epoch that it hasn't entered yet; if there is none, this change opens one.

A change without a GTID at a lower position enters an epoch that waits for the partition, if its
position is in that epoch's binlog. Every other lower position that isn't a repetition
(`planning/sources/position_order.py`) is left to an operator.

A GTID belongs to an epoch if its number

    in the stream that opened it: is at or above the opening one; or is above the highest one met
    before, and its position is below the opening one's. A server writes a stream in order, so on
    the old server it would be above the highest position;

    in other streams: is above all met before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch, epoch_at
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.gtids import GtidStreams, higher_numbers
from lakesplice.planning.sources.position_order import ComparedRows, OrderCheck, check_order

_RESOLVE = (
    "if the source failed over or its binlog was reset, give `lakesplice unpark --new-epoch`; if"
    " it repeats earlier changes, `lakesplice unpark --repeated`"
)


@dataclass(frozen=True, slots=True)
class ChangePositions:
    """Changes of one partition in offset order: the offsets of their records, their positions in
    the binlog as positions of epoch 0, their GTIDs, and before which of them records are missing
    that could not be read (`missing_records.py`).
    """

    record: Integers
    file: Integers
    offset: Integers
    gtid: pa.StringArray
    after_missing: Mask

    def __len__(self) -> int:
        return len(self.record)

    def between(self, start: int, stop: int) -> ChangePositions:
        """Return the changes from `start` up to `stop`."""
        part = slice(start, stop)
        gtid = self.gtid.slice(start, stop - start)
        return ChangePositions(
            self.record[part], self.file[part], self.offset[part], gtid, self.after_missing[part]
        )


@dataclass(frozen=True, slots=True)
class Opening:
    """A change that opens an epoch: the offset of its record, the stream and number of its GTID,
    and its position in the binlog as a position of epoch 0.
    """

    partition: int
    offset: int
    stream: str
    number: int
    position: Position


@dataclass(frozen=True, slots=True)
class EpochPath:
    """What a partition's changes showed, up to `end`; from there on nothing may be applied.

    `epoch` has the epoch of each change before `end`. At `end` there is an `opening`, or something
    unexplained that `detail` describes for an operator, or nothing more. `state` is the partition's
    after the changes before `end`, with its offset unchanged; `entered` maps each epoch that it
    entered to the offset of its first record there; `repetitions` counts changes at lower
    positions.
    """

    epoch: Integers
    end: int
    state: PartitionState
    detail: str = ""
    opening: Opening | None = None
    entered: Offsets = field(default_factory=dict)
    repetitions: int = 0


def follow(
    positions: ChangePositions, partition: int, state: PartitionState, epochs: Sequence[Epoch]
) -> EpochPath:
    """Return the epochs of a partition's changes; `epochs` are those of the table, ascending."""
    walk = _Walk(positions, partition, state, epochs)
    while walk.at < len(positions) and walk.stop is None:
        walk.leg()
    return walk.course()


def epochs_of_late_records(
    positions: ChangePositions, partition: int, epochs: Sequence[Epoch]
) -> Integers:
    """Return the epoch of each late change of a partition, each decided for itself: the epoch
    recorded for its offset, or a later one that its GTID belongs to.

    The first records of an epoch may be among them: the recorded first record is the first that
    could be read. Only the stream that opened the epoch decides; the last numbers of other streams
    are unknown if their records could not be read.
    """
    known = [epoch_at(epochs, partition, Offset(int(at))) for at in positions.record]
    found = np.array(known, np.int64)
    for epoch in epochs if len(positions) else ():
        streams = GtidStreams.of(positions.gtid, epoch.before)
        if epoch.stream in streams.names:
            own = streams.stream == streams.names.index(epoch.stream)
            later = own & _under(epoch, positions, streams) & (found < epoch.number)
            found = np.where(later, epoch.number, found)
    return found


def open_epoch(
    source: SourceState, openings: Sequence[Opening], states: Mapping[int, PartitionState]
) -> Epoch:
    """Return the next epoch, opened by one of the openings (at least one).

    `states` are the partitions' states before them. If several partitions opened it in one batch,
    the lowest number of the first one's stream is used, so that the others are in the epoch, too.
    """
    stream = min(openings, key=lambda opening: opening.partition).stream
    same = (opening for opening in openings if opening.stream == stream)
    opening = min(same, key=lambda opening: (opening.number, opening.position))
    old = states.get(opening.partition)
    others = {
        partition: state
        for partition, state in {**source.partitions, **states}.items()
        if old is None or not _is_of_new_server(state, old, stream)
    }
    met = _met(replace(source, partitions={}), others)
    return Epoch(_next_number(source), stream, opening.number, opening.position, met)


def declare_epoch(source: SourceState, entered: Offsets) -> Epoch:
    """Return an epoch that every partition enters at one of these offsets, since an operator said
    so.
    """
    return Epoch(_next_number(source), before=_met(source, {}), entered=dict(entered))


def _is_of_new_server(state: PartitionState, old: PartitionState, stream: str) -> bool:
    """Whether what a partition read last is from the server that opens an epoch, though nothing of
    it falls: it has later numbers at lower positions than another partition, `old`, had before the
    opening. A server writes a stream in order; with several streams this proves nothing.
    """
    if [*old.gtids] != [stream] or [*state.gtids] != [stream]:
        return False
    same_epoch = state.position.file >> FILE_BITS == old.position.file >> FILE_BITS
    later = state.gtids[stream] > old.gtids[stream]
    return same_epoch and later and state.position < old.position


def _next_number(source: SourceState) -> int:
    return 1 + max((epoch.number for epoch in source.epochs), default=0)


def _met(source: SourceState, states: Mapping[int, PartitionState]) -> dict[str, int]:
    met: dict[str, int] = {}
    for state in {**source.partitions, **states}.values():
        met = higher_numbers(met, state.gtids)
    return met


class _Walk:
    """The path through the changes in legs; each leg is in one epoch."""

    def __init__(
        self,
        positions: ChangePositions,
        partition: int,
        state: PartitionState,
        epochs: Sequence[Epoch],
    ) -> None:
        self._positions = positions
        self._partition = partition
        self._state = state
        self._epochs = epochs
        self._epoch = np.zeros(len(positions), np.int64)
        self._entered: dict[int, Offset] = {}
        self._repetitions = 0
        self._detail = ""
        self._opening: Opening | None = None
        self.at = 0
        self.stop: int | None = None
        self._now = (
            epoch_at(epochs, partition, Offset(int(positions.record[0]))) if len(positions) else 0
        )

    def leg(self) -> None:
        """Continue to where the epoch changes, a stop is found, or the changes end."""
        self._now = max(self._now, self._recorded(self.at))
        ahead = self._positions.between(self.at, self._known_until())
        check = self._check(ahead)
        fallen = len(ahead) if check.first_violation is None else check.first_violation
        found = self._next_entry(ahead, fallen)
        if found is None and check.first_violation is None:
            self._advance(len(ahead), check)
            return
        row, epoch = found or (fallen, self._fallen_into(ahead, fallen))
        self._advance(row, self._check(ahead.between(0, row)))
        if epoch is None:
            self._halt(check.detail)
            return
        self._now = epoch
        self._entered[epoch] = Offset(int(self._positions.record[self.at]))
        self._state = self._state.forgetting()

    def course(self) -> EpochPath:
        """Return what was found."""
        end = self.at
        return EpochPath(
            epoch=self._epoch[:end],
            end=end,
            state=self._state,
            detail=self._detail,
            opening=self._opening,
            entered=self._entered,
            repetitions=self._repetitions,
        )

    def _recorded(self, row: int) -> int:
        return epoch_at(self._epochs, self._partition, Offset(int(self._positions.record[row])))

    def _known_until(self) -> int:
        """Return the row at which, as recorded, the next epoch begins, or the end."""
        record = self._positions.record
        first = int(record[self.at])
        known = (epoch.entered.get(self._partition, -1) for epoch in self._epochs)
        later = [int(np.searchsorted(record, offset)) for offset in known if offset > first]
        return min([len(record), *later])

    def _check(self, ahead: ChangePositions) -> OrderCheck:
        state = self._state
        file = ahead.file + (self._now << FILE_BITS)
        known = ahead.record < state.met_until
        if state.repeating:
            high = state.position
            below = above(high.file, high.offset, file, ahead.offset)
            known |= np.logical_and.accumulate(below)
        rows = ComparedRows.of(
            file,
            ahead.offset,
            ahead.gtid,
            state.position,
            state.met,
            known=known,
            after_missing=ahead.after_missing,
        )
        return check_order(rows, state.position, state.met)

    def _advance(self, rows: int, check: OrderCheck) -> None:
        """Take the next rows, to which the check belongs."""
        if rows:
            self._epoch[self.at : self.at + rows] = self._now
            self._repetitions += check.repetitions
            still = self._state.repeating and check.repetitions == rows
            taken = self._positions.gtid.slice(self.at, rows)
            gtids = GtidStreams.of(taken, self._state.gtids).highest(self._state.gtids)
            state = replace(self._state, position=check.high, gtids=gtids, repeating=still)
            self._state = state.having_met(check.met)
        self.at += rows

    def _next_entry(self, ahead: ChangePositions, until: int) -> tuple[int, int] | None:
        """Return the first row up to and including `until` with a GTID of an epoch that isn't
        entered yet, and the newest such epoch.
        """
        waiting = self._waiting()
        stop = min(until + 1, len(ahead))
        if not waiting or not stop:
            return None
        part = ahead.between(0, stop)
        streams = GtidStreams.of(part.gtid, self._state.gtids)
        everything = np.ones(stop, np.bool_)
        new = (streams.stream >= 0) & ~streams.met_before(everything, self._state.gtids)
        new &= part.record >= self._state.met_until
        firsts = [
            (int(rows[0]), -epoch.number)
            for epoch in waiting
            if len(rows := np.flatnonzero(new & _under(epoch, part, streams)))
        ]
        if not firsts:
            return None
        row, negative = min(firsts)
        return row, -negative

    def _waiting(self) -> list[Epoch]:
        return [
            epoch
            for epoch in self._epochs
            if epoch.number > self._now and self._partition not in epoch.entered
        ]

    def _fallen_into(self, ahead: ChangePositions, row: int) -> int | None:
        """Return the epoch that a row at a lower position enters; None if there is none."""
        position = Position(int(ahead.file[row]), int(ahead.offset[row]))
        name = GtidStreams.of(ahead.gtid.slice(row, 1), self._state.gtids).at(0)
        waiting = self._waiting()
        if waiting and (name is not None or position >= waiting[0].position):
            return waiting[0].number
        if name is not None:
            record = int(ahead.record[row])
            self._opening = Opening(self._partition, record, name[0], name[1], position)
        return None

    def _halt(self, detail: str) -> None:
        self.stop = self.at
        self._detail = "" if self._opening else f"{detail}; {_RESOLVE}"


def _under(epoch: Epoch, positions: ChangePositions, streams: GtidStreams) -> Mask:
    """Mark the changes with GTIDs of an epoch."""
    marked = np.zeros(len(positions), np.bool_)
    for at, name in enumerate(streams.names):
        rows = streams.stream == at
        later = streams.number > epoch.before.get(name, -1)
        if name == epoch.stream:
            first = epoch.position
            lower = above(first.file, first.offset, positions.file, positions.offset)
            later &= (streams.number >= epoch.first) | lower
        marked |= rows & later
    return marked
