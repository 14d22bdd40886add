"""Where dead letters lie: what was read before and behind each (`planning/sources/late_order.py`).

It is found when the records are read, since nothing else shows it later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.model.offsets import Offset
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.gaps import lowest_above, read_until
from lakesplice.planning.sources.late_order import ReadAround, states_before


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
) -> dict[RecordIndex, ReadAround]:
    """Return what was read around the records, as far as these are read for the first time.

    `state` and `epochs` are those before all records at `offsets`, `course` the path of the changes
    that are applied of them.
    """
    new = [record for record in records if offsets[record] >= read_until(state)]
    places = [int(at) for at in np.searchsorted(order.rows[: course.end], new)]
    states = states_before(order.positions, partition, state, epochs, places)
    file = order.positions.file[: course.end] + (course.epoch << FILE_BITS)
    offset = order.positions.offset[: course.end]
    behind: dict[int, Position | None] = {
        at: lowest_above(file[at:], offset[at:], before.position) for at, before in states.items()
    }
    found: dict[RecordIndex, ReadAround] = {}
    for record, at in zip(new, places, strict=True):
        at_record = Offset(int(offsets[record]))
        before = replace(states[at], highest=None, lossy=False, next_offset=at_record)
        if missing.behind(order.rows[:at], record):
            before = before.forgetting()
        found[record] = ReadAround(before, behind[at])
    return found
