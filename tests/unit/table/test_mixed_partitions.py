"""Partitions with changes of several kinds in one batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Ordering
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import (
    CommitContribution,
    CommitOutcome,
    commit_contribution,
)
from tests.support.simulated import Source, driver_of

Met = tuple[FormatName | None, Ordering | None]
DEBEZIUM: Met = (FormatName.DEBEZIUM, Ordering.BINLOG)
MAXWELL: Met = (FormatName.MAXWELL, Ordering.BINLOG)
TIMED: Met = (FormatName.DEBEZIUM, Ordering.COMMIT)
NOTHING: Met = (None, None)


def report(partition: int, met: Met, state: PartitionState) -> PartitionReport:
    written_in, ordering = met
    return PartitionReport(
        partition=partition, state=state, stopped=False, format=written_in, ordering=ordering
    )


@pytest.mark.parametrize(
    ("first", "second", "parks"),
    [
        (DEBEZIUM, MAXWELL, True),
        (DEBEZIUM, TIMED, True),
        (DEBEZIUM, DEBEZIUM, False),
        (NOTHING, MAXWELL, False),
    ],
)
def test_changes_of_two_kinds_park_the_table(
    tmp_path: Path, first: Met, second: Met, parks: bool
) -> None:
    source = Source()
    source.topic.append(0, source.put(1))
    source.topic.append(1, source.put(2))
    table = (driver := driver_of(source, LocalStore(tmp_path))).table
    driver.batch()
    states = table.source.partitions
    reports = [report(at, met, states[at]) for at, met in enumerate((first, second))]
    ends = {at: state.next_offset for at, state in states.items()}
    version = table.version
    assert (
        commit_contribution(table, CommitContribution(version, ends, ends, reports, [], []))
        is CommitOutcome.DONE
    )
    if not parks:
        assert (table.parked, table.version) == (None, version)
        return
    assert table.parked is not None
    assert table.parked.code is ParkCode.FORMAT_CHANGED
    assert table.source.partitions == states
