"""The part of a snapshot that a partition has read, combined from several runs of records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.model.position import Position
from lakesplice.planning.sources.snapshots import NewestSnapshot

MET = NewestSnapshot(Position(1, 5))


@pytest.mark.parametrize("lossy_first", [True, False])
def test_a_snapshot_is_whole_if_all_of_its_records_were_read(lossy_first: bool) -> None:
    lossy = replace(MET, whole=False)
    runs = (lossy, MET) if lossy_first else (MET, lossy)
    assert not runs[0].then(runs[1]).whole
    assert MET.then(MET).whole


@pytest.mark.parametrize("marked", [replace(MET, ended=True), replace(MET, renewing=True)])
def test_what_one_run_showed_holds_for_both(marked: NewestSnapshot) -> None:
    assert MET.then(marked) == marked.then(MET) == marked


def test_only_the_newer_of_two_snapshots_counts() -> None:
    older = NewestSnapshot(Position(1, 4), ended=True, renewing=True, whole=False)
    assert older.then(MET) == MET
    assert MET.then(older) == replace(MET, fell=True)
    assert replace(older, fell=True).then(MET) == MET, "the newer one came after that"
