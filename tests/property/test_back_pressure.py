"""However slow compaction is, the number of waiting changes is bounded, and ingest always
continues.

A step is one trigger of ingest. As the service does before each batch, the driver checks whether
ingest must wait. The compactor needs a number of steps from its plan to its commit.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.planning.upkeep.compaction import (
    CompactionPolicy,
    TableBacklog,
    backlog,
    ingest_must_wait,
    pressure,
)
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Splice
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import Source, driver_of, memory_folder, require_finished

RANGES = 2
TRIGGER_SECONDS = 1.0
# Nothing but the number of deltas makes the table due.
POLICY = CompactionPolicy(
    bytes_max=1 << 40, age_seconds_max=1e9, ratio_max=1e9, changes_per_page_min=1e9
)


class Run:
    """A table under steady load with a slow compactor."""

    def __init__(self, folder: Path, policy: CompactionPolicy, waiting_max: int) -> None:
        self.source, self.clock = Source(), FixedClock()
        self.policy, self.waiting_max = policy, waiting_max
        self.driver: SimulatedDriver = driver_of(self.source, LocalStore(folder), clock=self.clock)
        self.planned: Splice | None = None
        self.left = 0
        self.most = self.waited = self.compactions = 0

    def ingest(self, rows: int) -> None:
        for key in range(rows):
            self.source.topic.append(key % 2, self.source.put(key))
        if ingest_must_wait(self.backlog, self.waiting_max):
            self.waited += 1
        else:
            self.driver.batch()
        self.most = max(self.most, len(self.driver.table.manifest.deltas))

    def compact(self, slowness: int) -> None:
        if self.planned is None:
            now_ms = self.clock.now_ms()
            if pressure(self.backlog, self.policy, now_ms).score >= 1:
                self.planned, self.left = self.driver.plan_compaction(), slowness
            return
        self.left -= 1
        if self.left <= 0:
            assert isinstance(self.driver.table.commit(self.planned), Committed)
            self.compactions += 1
            self.planned = None

    @property
    def backlog(self) -> TableBacklog:
        return backlog(self.driver.table.manifest, ROWS_PER_PAGE)


def run(steps: int, slowness: int, deltas_max: int, waiting_max: int) -> Run:
    folder = Path(tempfile.mkdtemp(dir=memory_folder()))
    try:
        policy = replace(POLICY, deltas_max=deltas_max)
        table = Run(folder, policy.due_by(waiting_max), waiting_max)
        for _ in range(steps):
            table.ingest(4)
            table.compact(slowness)
            table.clock.advance(TRIGGER_SECONDS)
        for _ in range(2 * slowness + 2):
            table.compact(slowness)
        assert not ingest_must_wait(table.backlog, waiting_max)
        table.driver.batch()
        table.driver.compact()
        require_finished(table.source, table.driver)
        return table
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
@settings(max_examples=examples(8))
@given(slowness=st.integers(1, 12), deltas_max=st.integers(1, 30), waiting_max=st.integers(2, 8))
def test_however_slow_compaction_is_what_waits_is_bounded_and_ingest_continues(
    slowness: int, deltas_max: int, waiting_max: int
) -> None:
    table = run(30, slowness, deltas_max, waiting_max)
    # A batch that was let through adds a delta a range at most.
    assert table.most < waiting_max + RANGES
    assert table.compactions > 0


@pytest.mark.slow
def test_ingest_that_waits_is_no_more_than_compaction_is_slow() -> None:
    table = run(36, slowness=10, deltas_max=4, waiting_max=8)
    assert table.waited > 0
    # Each round takes the plan's step and ten more; what came meanwhile goes in with the next.
    assert table.compactions >= 36 // 12


@pytest.mark.slow
def test_ingest_does_not_wait_while_compaction_keeps_up() -> None:
    table = run(25, slowness=1, deltas_max=4, waiting_max=20)
    assert table.waited == 0
    assert table.most <= 4 + 3 * RANGES


@pytest.mark.parametrize("deltas_max", [20, 10_000])
def test_a_table_whose_ingest_waits_is_due_whatever_the_policy_says(deltas_max: int) -> None:
    assert CompactionPolicy(deltas_max=deltas_max).due_by(2).deltas_max == 2
    assert CompactionPolicy(deltas_max=1).due_by(2).deltas_max == 1
