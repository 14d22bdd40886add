"""An erasure: each write of it fails or is the process's last, and the next call finishes it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lakesplice.errors import StorageError
from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.erasing import erase_keys, found
from tests.support.simulated import (
    Source,
    driver_of,
    folder,
    require_finished,
    require_tidy,
    require_true,
)

WRITES = ("put_new", "writer", "delete")
GONE = [3, 5]


class Life:
    """A source, and a table of it with a change feed, of which two rows are deleted, one of them by
    a change that waits; it was compacted, and its index merged.
    """

    def __init__(self, folder: Path) -> None:
        self.source, self.clock, self.bare = Source(), FixedClock(), LocalStore(folder)
        self.cuts: list[dict[int, Offset]] = []
        for key in (*range(6), 0, 3):
            self.source.topic.append(key % 2, self.source.put(key))
            if key in (2, 5):
                self.cuts.append(self.source.topic.ends)
        self.source.topic.append(1, self.source.delete(5))
        self.cuts.append(self.source.topic.ends)
        for key in (1, 4):
            self.source.topic.append(key % 2, self.source.put(key))
        self.source.topic.append(1, self.source.delete(3))

    def make_table(self) -> None:
        driver = self.driver(self.bare, 1)
        driver.batch(self.cuts[0])
        driver.batch(self.cuts[1])
        driver.table.set_change_feed(on=True)
        driver.batch(self.cuts[2])
        driver.compact()
        driver.merge_runs(2)
        driver.batch()

    def driver(self, lake: Store, generation: int) -> SimulatedDriver:
        return driver_of(
            self.source, lake, generation=generation, seed=generation, clock=self.clock
        )

    def erase(self, lake: Store, generation: int) -> SimulatedDriver:
        driver = self.driver(lake, generation)
        bare = self.bare.within(driver.name.path)
        erase_keys(driver, GONE, bare=bare, seed=generation)
        return driver


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    """A folder with the table, to be copied."""
    with folder() as path:
        Life(path / "lake").make_table()
        yield path / "lake"


@contextmanager
def copied(made: Path) -> Iterator[Life]:
    with folder() as path:
        shutil.copytree(made, path / "lake")
        yield Life(path / "lake")


def writes(made: Path) -> list[Call]:
    with copied(made) as life:
        store = FaultyStore(life.bare)
        life.erase(store, 2)
        return [call for call in store.calls if call.method in WRITES]


@pytest.mark.parametrize("how", [How.CRASH_BEFORE, How.CRASH_AFTER, How.LOST, How.ANSWER_LOST])
def test_after_any_failure_the_next_call_finishes_the_erasure(
    made: Path, how: How, seed: int, request: pytest.FixtureRequest
) -> None:
    """In the gate each way of failing tries every 24th write, nightly every one."""
    every = writes(made)
    assert len(every) > 40
    step = 1 if request.config.getoption("--nightly") else 24
    for call in every[(seed + 2 * list(How).index(how)) % step :: step]:
        with copied(made) as life:
            _broken_off(life, Fault.at(call.number, how))


def _broken_off(life: Life, fault: Fault) -> None:
    with suppress(Crash, StorageError):
        life.erase(FaultyStore(life.bare, [fault]), 2)
    require_true(life.source, life.driver(life.bare, 3).table.store)
    driver = life.erase(life.bare, 4)
    assert found(life.bare.root, driver.table.manifest, GONE) == {}
    require_tidy(driver.table.store)
    driver.compact()
    require_finished(life.source, driver)
    stored = Table(driver.table.store).read(include_deleted=True)
    assert sorted(stored["id"].to_pylist()) == [0, 1, 2, 4]


def test_a_reader_at_any_moment_sees_the_table_whole(made: Path) -> None:
    with copied(made) as life:
        table = life.bare.within("shop/goods")

        def look(call: Call) -> None:
            if call.method in WRITES:
                require_true(life.source, table)

        life.erase(FaultyStore(life.bare, before_call=look), 2)
