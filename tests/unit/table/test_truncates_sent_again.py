"""A TRUNCATE that a connector sends again from another server, on the whole way into a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.planning.intake.line import RecordReading
from lakesplice.storage.local import LocalStore
from lakesplice.table.explaining.key_story import explain_key
from lakesplice.table.explaining.record_values import RecordOutcome
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.fates import access_to
from tests.support.versions import HistoryWorld

# Of the TRUNCATE's partition, and of the other one.
HERE, THERE = 0, 1
STATEMENTS = (("put", HERE), ("put", THERE), ("truncate", 0), ("put", THERE), ("put", HERE))


class RowsWorld(HistoryWorld):
    """Its table is one of current rows."""

    def start(self) -> SimulatedDriver:
        lake, clock, entropy = LocalStore(self.path), FixedClock(), SeededEntropy(1)
        self.driver = SimulatedDriver(lake, self.topic, clock, entropy, ranges=2, read_tasks=2)
        return self.driver


def sent_again(path: Path, *, at_once: bool = False) -> RowsWorld:
    """The TRUNCATE's partition shows the failover, and the other one doesn't."""
    world = RowsWorld(path)
    for statement in STATEMENTS:
        world.servers.commit([statement])
    world.send(5)
    world.batch(0 if at_once else 100)
    world.happen(("fail over", 2, 0))
    world.servers.commit([("put", HERE)])
    world.send(1)
    world.batch(0 if at_once else 100)
    world.happen(("repeat", 6))
    world.send(6)
    world.batch()
    assert len(world.driver.table.source.epochs) == 1
    return world


@pytest.mark.slow
def test_rows_after_it_stay_and_those_before_it_dont_come_back(tmp_path: Path) -> None:
    world = sent_again(tmp_path)
    assert sorted(world.table.read()["id"].to_pylist()) == [HERE, THERE]
    store = world.driver.table.store
    access = access_to(world.topic, RecordReading(table=world.driver.name))
    story = explain_key(store, open_snapshot(store), HERE, access=access)
    told = [fate for fate in story.records if fate.outcome is RecordOutcome.BELOW_FENCE]
    first_again = world.topic.ends[0] - 4
    assert [(fate.offset, fate.by) for fate in told] == [
        (first_again, world.driver.table.source.fence)
    ]


def test_all_that_is_read_in_one_batch_is_judged_in_the_same_way(tmp_path: Path) -> None:
    world = sent_again(tmp_path, at_once=True)
    assert sorted(world.table.read()["id"].to_pylist()) == [HERE, THERE]
