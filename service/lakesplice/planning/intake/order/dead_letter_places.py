"""Where dead letters lie: what was read before and behind each (`planning/sources/late_order.py`).

It is found when the records are read, since nothing else shows it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.change import above
from lakesplice.model.offsets import Offset
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.proven_records import ProvenRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.returned_records import Waiting
from lakesplice.planning.intake.order.states_before import states_before
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.gaps import lowest_above, read_until
from lakesplice.planning.sources.late_order import ReadAround


def around_each(
    records: Sequence[RecordIndex],
    offsets: Integers,
    proven: ProvenRecords,
    course: EpochPath,
    missing: MissingRecords,
    partition: int,
    *,
    waiting: Waiting,
) -> dict[RecordIndex, ReadAround]:
    """Return what was read around the records, as far as it is known: these are read for the first
    time, or were `waiting`. `course` is the path of the changes that are applied.
    """
    return waiting.around_each(records, offsets) | read_around(
        records,
        offsets,
        proven.order,
        course,
        missing=missing,
        partition=partition,
        state=proven.state,
        epochs=proven.epochs,
        first=proven.first,
    )


def read_around(
    records: Sequence[RecordIndex],
    offsets: Integers,
    order: RecordOrder,
    course: EpochPath,
    *,
    missing: MissingRecords,
    partition: int,
    state: PartitionState,
    epochs: Sequence[Epoch],
    first: int = 0,
) -> dict[RecordIndex, ReadAround]:
    """Return what was read around the records, as far as these are read for the first time.

    `state` and `epochs` are those before all changes of `order` from the `first` on, `course` is
    the path of the changes that are applied of them.
    """
    new = [record for record in records if offsets[record] >= read_until(state)]
    places = [int(at) for at in np.searchsorted(order.rows[: course.end], new)]
    positions = order.positions.between(first, len(order.positions))
    found_states = states_before(
        positions, partition, state, epochs, [at - first for at in places if at >= first]
    )
    states = {at + first: before for at, before in found_states.items()}
    file = order.positions.file[: course.end] + (course.epoch << FILE_BITS)
    offset = order.positions.offset[: course.end]
    falls = bool(above(file[:-1], offset[:-1], file[1:], offset[1:]).any())
    behind = {
        at: _lowest_behind(file[at:], offset[at:], before.position, falls=falls)
        for at, before in states.items()
    }
    found: dict[RecordIndex, ReadAround] = {}
    for record, at in zip(new, places, strict=True):
        at_record = Offset(int(offsets[record]))
        before = replace(states[at], highest=None, lossy=False, next_offset=at_record)
        if missing.behind(order.rows[:at], record):
            before = before.forgetting()
        found[record] = ReadAround(before, behind[at])
    return found


def _lowest_behind(
    file: Integers, offset: Integers, position: Position, *, falls: bool
) -> Position | None:
    """Return the lowest of some positions above another one, if there is one. Unless one of them
    `falls` below that before it, the first one usually is.
    """
    if len(file) and not falls:
        first = Position(int(file[0]), int(offset[0]))
        if first > position:
            return first
    return lowest_above(file, offset, position)
