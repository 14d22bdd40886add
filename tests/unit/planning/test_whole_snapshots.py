"""When a snapshot of the whole table counts as complete, by what is known of its partitions.

`tests/unit/table/test_resnapshots.py` shows what follows from it.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.model.offsets import Offset
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState, SnapshotState, SourceState
from lakesplice.planning.sources.snapshots import NewestSnapshot, snapshot_after


def at(epoch: int, offset: int) -> Position:
    return Position.of(epoch, 3, offset, 0, 1)


HERE, THERE, ELSEWHERE = at(1, 500), at(1, 600), at(0, 500)
BEFORE = SourceState(
    "t", "id", {0: PartitionState(Offset(4), at(1, 400)), 1: PartitionState(Offset(2), at(0, 90))}
)
AFTER = {0: PartitionState(Offset(9), HERE), 1: PartitionState(Offset(9), at(1, 600))}
MET = {0: NewestSnapshot(HERE, ended=True, renewing=True)}
BEYOND = replace(BEFORE, partitions={**BEFORE.partitions, 1: PartitionState(Offset(3), HERE)})
UNAWARE = {**BEFORE.partitions, 1: PartitionState(Offset(2), ELSEWHERE)}


def test_a_snapshot_is_complete_once_each_partition_has_its_end_or_a_later_change() -> None:
    found, whole = snapshot_after(BEFORE, AFTER, MET)
    assert (found.snapshot, whole) == (None, HERE)
    behind = {**MET, 1: NewestSnapshot(at(1, 300), fell=True)}
    assert snapshot_after(BEFORE, AFTER, behind)[1] == HERE, "that was before this snapshot"
    unread = {**AFTER, 1: BEFORE.partitions[1]}
    found, whole = snapshot_after(BEFORE, unread, MET)
    assert (found.snapshot, whole) == (SnapshotState(HERE, frozenset({0})), None)
    unended = {0: replace(MET[0], ended=False)}
    later = {at: replace(state, position=THERE) for at, state in AFTER.items()}
    found, whole = snapshot_after(BEFORE, later, unended)
    assert (found.snapshot, whole) == (SnapshotState(HERE), None), "its last row may never come"


@pytest.mark.parametrize(
    ("before", "met"),
    [
        (BEFORE, {**MET, 1: NewestSnapshot(ELSEWHERE, renewing=True)}),
        (replace(BEFORE, snapshot=SnapshotState(ELSEWHERE)), MET),
        (replace(BEFORE, partitions=UNAWARE), MET),
        (BEYOND, {**MET, 1: NewestSnapshot(at(1, 300), fell=True)}),
    ],
    ids=["in this batch", "before", "as its first rows", "begun again below"],
)
def test_a_snapshot_of_which_a_partition_has_rows_at_another_place_is_not_complete(
    before: SourceState, met: dict[int, NewestSnapshot]
) -> None:
    """The partition hadn't noticed the failover, and rows of a snapshot have no GTIDs; or the
    connector broke off the snapshot and went back.
    """
    found, whole = snapshot_after(before, AFTER, met)
    assert (found.snapshot, whole) == (None, None)
