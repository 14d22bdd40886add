"""Finds changes whose GTIDs were met before, but which nobody can have sent before.

A change at a lower position under a GTID that was met counts as one that the connector sends again,
and has no effect (`planning/sources/met_gtids.py`). But a source may give numbers out a second
time: after RESET MASTER its binlog files and its GTIDs begin again from 1, and a server that takes
over before it has all of the former one's transactions counts on from an earlier number. Times tell
the two apart: what is sent again isn't newer than all that was read.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.moments import EpochUs
from lakesplice.model.position import FILE_BITS, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.sources.epochs import EpochPath
from lakesplice.planning.sources.position_order import not_above_high

SLACK_US, SLACK_AFTER_MISSING_US = 5_000_000, 60_000_000
"""How much newer a change may be that is sent again. Another version of the connector may send its
times with another precision. If records were missing, it need not have been read: clocks of servers
differ, and a change's time is when its statement began.
"""
_RESOLVE = (
    "if the source's binlog was reset, or a server took over that lacked transactions, give"
    " `lakesplice unpark --new-epoch` and compare the table with `lakesplice verify`; if it repeats"
    " earlier changes, `lakesplice unpark --repeated`"
)
_NO_TIME = int(np.iinfo(np.int64).min)


def first_repeated_number(
    order: RecordOrder, course: EpochPath, state: PartitionState
) -> tuple[RecordIndex, str] | None:
    """Return the first record that counts as sent again but is newer than all that was read before
    it, and why it can't be applied. `state` is the partition's before the records.

    It is None while an operator has said that changes are repeated, and without times.
    """
    falls = _falls(order, course, state)
    new = order.positions.record[: course.end] >= state.met_until
    suspect = falls & new & order.positions.gtid.is_valid().to_numpy(False)[: course.end]
    if state.repeating or not suspect.any():
        return None
    times = _times(order)[: course.end]
    before = np.concatenate(([_before(state)], np.where(falls, _NO_TIME, times)))
    newest = np.maximum.accumulate(before)[:-1]
    sure = state.met.read.whole and not order.positions.after_missing.any()
    slack = SLACK_US if sure else SLACK_AFTER_MISSING_US
    later = suspect & (newest != _NO_TIME) & (times > newest + slack)
    if not later.any():
        return None
    at = int(np.flatnonzero(later)[0])
    position = Position(int(order.positions.file[at]), int(order.positions.offset[at]))
    why = (
        f"the change at {position} under GTID {order.positions.gtid[at]} is of"
        f" {_text(times[at])}, but its GTID was met before, and all that was read is older, up to"
        f" {_text(newest[at])}; {_RESOLVE}"
    )
    return RecordIndex(int(order.rows[at])), why


def newest_moment(
    order: RecordOrder, course: EpochPath, limit: RecordIndex, state: PartitionState
) -> EpochUs | None:
    """Return the newest time of the changes before the record `limit` that aren't sent again, or
    the one that `state` has, which is the partition's before them.
    """
    count = min(course.end, int(np.searchsorted(order.rows, limit)))
    risen = _times(order)[:count][~_falls(order, course, state)[:count]]
    newest = max(_before(state), int(risen.max()) if len(risen) else _NO_TIME)
    return None if newest == _NO_TIME else EpochUs(newest)


def _before(state: PartitionState) -> int:
    return _NO_TIME if state.newest_us is None else state.newest_us


def _falls(order: RecordOrder, course: EpochPath, state: PartitionState) -> Mask:
    """Mark the changes below the highest position before them."""
    file = order.positions.file[: course.end] + (course.epoch << FILE_BITS)
    below, _ = not_above_high(file, order.positions.offset[: course.end], state.position)
    return below


def _times(order: RecordOrder) -> Integers:
    """Return the changes' times at the source in their order."""
    parts = [part.source_ts.cast(pa.int64()) for part in order.parts]
    times = [pc.fill_null(part, _NO_TIME).to_numpy() for part in parts]
    return np.concatenate(times)[order.order]


def _text(moment: int) -> str:
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(moment)))
