"""Where a parked table continues: an operator's options, and the resulting state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.sources.operator_directions import LowerPositions, moved, onward

HIGH = Position(7, 100)
SOURCE = SourceState(
    "t",
    "id",
    {0: PartitionState(Offset(40), HIGH, {"0": 9}), 1: PartitionState(Offset(50), HIGH, {"1": 3})},
)
FELL_BACK = ParkReason(ParkCode.POSITIONS_FELL_BACK, "", "t", 0, Offset(40))


def test_a_new_epoch_begins_in_every_partition_where_it_continues() -> None:
    after = onward(SOURCE, FELL_BACK, {1: Offset(45)}, LowerPositions.NEW_EPOCH)
    (epoch,) = after.epochs
    assert (epoch.number, epoch.stream, epoch.entered) == (1, "", {0: 40, 1: 45})
    assert epoch.before == {"0": 9, "1": 3}
    assert [e.number for e in onward(after, FELL_BACK, {}, LowerPositions.NEW_EPOCH).epochs] == [
        1,
        2,
    ]


def test_a_new_epoch_begins_behind_what_a_partition_reads_again_by_itself() -> None:
    back = moved(SOURCE, {1: Offset(45)})
    (epoch,) = onward(back, FELL_BACK, {}, LowerPositions.NEW_EPOCH).epochs
    assert epoch.entered == {0: 40, 1: 50}


def test_a_new_epoch_does_not_begin_before_records_that_were_skipped() -> None:
    skipped = moved(moved(SOURCE, {1: Offset(60)}), {1: Offset(55)})
    (epoch,) = onward(skipped, FELL_BACK, {}, LowerPositions.NEW_EPOCH).epochs
    assert epoch.entered == {0: 40, 1: 60}
    for inside in (45, 55):
        with pytest.raises(UsageError, match=r"reset --offset.*1:50-60"):
            onward(skipped, FELL_BACK, {1: Offset(inside)}, LowerPositions.NEW_EPOCH)


def test_a_repetition_is_the_parked_partition_s_alone() -> None:
    after = onward(SOURCE, FELL_BACK, {}, LowerPositions.REPEATED)
    assert [state.repeating for state in after.partitions.values()] == [True, False]


def test_what_is_read_again_is_known_and_what_is_passed_over_makes_a_snapshot_no_whole() -> None:
    back = onward(SOURCE, FELL_BACK, {0: Offset(10)}, None).partitions[0]
    assert (back.next_offset, back.met_until, back.lossy) == (10, 40, False)
    on = onward(SOURCE, FELL_BACK, {0: Offset(41)}, None).partitions[0]
    assert (on.next_offset, on.met_until, on.lossy) == (41, 0, True)


def test_directions_that_do_not_fit_the_parked_table_are_refused() -> None:
    with pytest.raises(UsageError, match="no such partition"):
        onward(SOURCE, FELL_BACK, {2: Offset(0)}, None)
    other = replace(FELL_BACK, code=ParkCode.NO_KEY)
    with pytest.raises(UsageError, match="no position fell back"):
        onward(SOURCE, other, {}, LowerPositions.NEW_EPOCH)
    with pytest.raises(UsageError, match="binlog"):
        onward(replace(SOURCE, ordering=Ordering.KAFKA), FELL_BACK, {}, LowerPositions.REPEATED)
