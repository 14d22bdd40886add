"""A reader of the model of a replicated source (`failovers.py`) that knows the times of changes, so
that it notices GTIDs that begin again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.formats.events.values.fences import Fence, Fences
from lakesplice.formats.events.values.refusals import DeadLetters
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.repeated_numbers import first_repeated_number, newest_moment
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.operator_directions import LowerPositions, onward
from tests.support.failovers import (
    Reader,
    World,
    compactions,
    failovers,
    histories,
    losses,
    restarts,
    returns,
)

_PARKED = ParkReason(ParkCode.POSITIONS_FELL_BACK, "")


class ClockedReader(Reader):
    """Where its table parks, an operator says that an epoch begins, and the table continues."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.parked = 0
        self._stops: dict[int, int] = {}

    def batch(self, ends: dict[int, int]) -> None:
        until = dict(ends)
        while True:
            try:
                super().batch(until)
                break
            except _Stopped:
                until |= self._stops
        if until != ends:
            self.parked += 1
            self.source = onward(self.source, _PARKED, {}, LowerPositions.NEW_EPOCH)
            self.batch(ends)

    def records_first(self, courses: dict[int, EpochPath]) -> bool:
        if self._stops:
            raise _Stopped
        return False

    def course(self, partition: int, end: int) -> EpochPath:
        course = super().course(partition, end)
        self._stops.pop(partition, None)
        records, state = self.records(partition, end), self.source.partitions[partition]
        if not records:
            return course
        offsets = np.array([offset for offset, _ in records], np.int64)
        times = [self.world.moments[sent.number] for _, sent in records]
        fences = {
            at: Fence(sent.place, sent.gtid, moment=moment)
            for at, ((_, sent), moment) in enumerate(zip(records, times, strict=True))
        }
        decoded = Decoded((), DeadLetters(), (), {}, fences=Fences.of(fences))
        order = RecordOrder.of(offsets, decoded, MissingRecords.among(offsets, state))
        repeated = first_repeated_number(order, course, state)
        if repeated is not None:
            self._stops[partition] = int(offsets[repeated[0]])
        newest = newest_moment(order, course, RecordIndex(len(records)), state)
        return replace(course, state=replace(course.state, newest_us=newest))


class _Stopped(Exception):
    """Partitions have to stop before the end of the batch."""


resets = st.just(("begin again",))
steps = histories(restarts, failovers, compactions, losses, returns, resets)
"""Histories in which GTIDs and binlogs may begin again."""
