"""Each write of a pin, a vacuum and the pin's removal fails, or the process dies there; in the gate
every ninth.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from lakesplice.errors import StorageError, UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.table.upkeep.pins import pin, unpin
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.scenario import ALL_MS
from tests.support.simulated import (
    Source,
    driver_of,
    folder,
    require_finished,
    require_pins,
    require_tidy,
)
from tests.support.traps import require_excused

WRITES = ("put_new", "writer", "delete")
HOWS = (How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST)


class Life:
    """A table that is pinned and vacuumed, and whose pins end by time or by hand."""

    def __init__(self) -> None:
        self.source, self.clock, self.entropy = Source(), FixedClock(), SeededEntropy(99)
        for key in range(4):
            self.source.topic.append(key % 2, self.source.put(key))
        self.ends = self.source.topic.ends
        for key in range(4):
            self.source.topic.append(key % 2, self.source.put(key))

    def driver(self, lake: Store, generation: int) -> SimulatedDriver:
        return driver_of(
            self.source, lake, generation=generation, seed=generation, clock=self.clock
        )

    def pinned(self, driver: SimulatedDriver, name: str, hours: int = 0) -> None:
        table = driver.table
        if table.snapshot is None:
            return
        pin(
            table.store,
            table.snapshot,
            name,
            table.commit,
            entropy=self.entropy,
            retries=table.retries(),
            ends_ms=EpochMs(self.clock.now_ms() + hours * 3_600_000 if hours else 0),
            generation=table.generation,
        )

    def vacuum(self, driver: SimulatedDriver) -> None:
        self.clock.advance(7200)
        table, now_ms = driver.table, self.clock.now_ms()
        if table.snapshot is None:
            return
        Expiry(table.store, table.commit, table.generation).run(table.snapshot, now_ms, now_ms)
        orphans = Orphans(table.store, table.commit, table.generation)
        orphans.sweep(table.snapshot, EpochMs(ALL_MS), at_once=True)

    def removed(self, driver: SimulatedDriver, name: str) -> None:
        table = driver.table
        if table.snapshot is None:
            return
        with suppress(UsageError):  # where the pin failed
            unpin(
                table.store,
                table.snapshot,
                name,
                table.commit,
                retries=table.retries(),
                generation=table.generation,
            )

    def steps(self, lake: Store) -> list[Callable[[], object]]:
        driver = self.driver(lake, 1)
        return [
            lambda: require_excused(driver.attempt(self.ends)),
            lambda: self.pinned(driver, "ends", hours=1),
            lambda: self.pinned(driver, "stays"),
            lambda: self.pinned(driver, "removed"),
            lambda: require_excused(driver.attempt()),
            driver.compact,
            lambda: self.vacuum(driver),
            lambda: self.removed(driver, "removed"),
            lambda: self.vacuum(driver),
        ]


def lived(life: Life, lake: Store) -> None:
    with suppress(Crash):
        for step in life.steps(lake):
            with suppress(StorageError):
                step()


def writes() -> list[Call]:
    with folder() as path:
        store = FaultyStore(LocalStore(path))
        lived(Life(), store)
        return [call for call in store.calls if call.method in WRITES]


@pytest.mark.parametrize("how", HOWS)
def test_after_any_failure_a_pinned_version_is_whole_and_nothing_else_stays(
    how: How, seed: int, request: pytest.FixtureRequest
) -> None:
    every = writes()
    assert len(every) > 25
    step = 1 if request.config.getoption("--nightly") else 9
    for call in every[(seed + HOWS.index(how)) % step :: step]:
        with folder() as path:
            life, bare = Life(), LocalStore(path)
            lived(life, FaultyStore(bare, [Fault.at(call.number, how)]))
            driver = life.driver(bare, 2)
            driver.batch()
            driver.compact()
            require_pins(life.source, driver.table.store)
            life.vacuum(driver)
            require_pins(life.source, driver.table.store)
            names = {one.name for one in driver.table.manifest.retention.pins}
            assert names <= {"stays", "removed"}, "the other one has ended by now"
            require_tidy(driver.table.store)
            require_finished(life.source, driver)


def test_only_pins_keep_files_of_expired_versions() -> None:
    with folder() as path:
        life, bare = Life(), LocalStore(path)
        lived(life, bare)
        store = life.driver(bare, 2).table.store
        (left,) = life.driver(bare, 2).table.manifest.retention.pins
        assert left.name == "stays"
        require_pins(life.source, store)
        require_tidy(store)
