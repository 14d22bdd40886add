"""Commands that change a table and the driver that may be running."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakesplice.apps.commands import Direction, redirect
from lakesplice.errors import RetryableError, TableNotFoundError, UsageError
from lakesplice.model.manifest import ParkCode, ParkReason
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from lakesplice.table.generation import (
    LEASE_SECONDS,
    Generation,
    claim_generation,
    newest_generation,
)
from lakesplice.table.intents import Redirect
from lakesplice.table.ports import Store
from lakesplice.table.snapshot import Snapshot
from tests.support.made import GENERATION, MadeTable

REASON = ParkReason(ParkCode.NO_KEY, "no key")


class Time:
    """A clock that moves only when somebody waits, and then lets others act."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.seconds = 0.0
        self._meanwhile = meanwhile

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        self._meanwhile()


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "lake")


@pytest.fixture
def table(lake: LocalStore) -> MadeTable:
    return MadeTable(lake.root / "shop" / "orders", TableSchema())


def driver(lake: LocalStore) -> Generation:
    generation = claim_generation(lake, Time(), lambda _: True)
    assert generation is not None
    generation.beat()
    return generation


def park(_: Store, snapshot: Snapshot) -> Direction:
    return Direction(parked=REASON)


def test_a_command_commits_under_a_generation_of_its_own_and_gives_it_back(
    lake: LocalStore, table: MadeTable
) -> None:
    time = Time()
    for generation in (1, 2, 3):
        snapshot = redirect(table.store.root, park, clock=time, wait=time.wait)
        assert snapshot.manifest.parked == REASON
        assert snapshot.manifest.generation == generation
    assert time.seconds == 0


def test_a_driver_lends_the_lake_to_a_command_that_asks(lake: LocalStore, table: MadeTable) -> None:
    alive = driver(lake)

    def beat() -> None:
        alive.beat()
        if alive.asked:
            alive.release()

    time = Time(meanwhile=beat)
    snapshot = redirect(table.store.root, park, clock=time, wait=time.wait)
    assert snapshot.manifest.generation == alive.number + 1
    assert time.seconds < LEASE_SECONDS


def test_a_command_refuses_while_a_driver_lives_that_lends_nothing(
    lake: LocalStore, table: MadeTable
) -> None:
    alive = driver(lake)
    time = Time(meanwhile=alive.beat)
    with pytest.raises(UsageError, match="a driver of this lake is running"):
        redirect(table.store.root, park, clock=time, wait=time.wait)
    assert newest_generation(lake) == alive.number
    alive.check()


def test_a_command_takes_over_from_a_driver_that_died(lake: LocalStore, table: MadeTable) -> None:
    dead = driver(lake)
    time = Time()
    snapshot = redirect(table.store.root, park, clock=time, wait=time.wait)
    assert snapshot.manifest.generation == dead.number + 1
    assert time.seconds == 10


def test_a_table_that_changed_meanwhile_is_left_as_it_is(
    lake: LocalStore, table: MadeTable
) -> None:
    def interfere(_: Store, snapshot: Snapshot) -> Direction:
        table._commit(Redirect(GENERATION, snapshot.version))
        return Direction(parked=REASON)

    time = Time()
    with pytest.raises(RetryableError, match="the table changed meanwhile"):
        redirect(table.store.root, interfere, clock=time, wait=time.wait)
    assert table.snapshot.version == 1


def test_a_decision_that_fails_changes_nothing_and_blocks_nobody(
    lake: LocalStore, table: MadeTable
) -> None:
    def refuse(_: Store, snapshot: Snapshot) -> Direction:
        raise UsageError("no")

    time = Time()
    with pytest.raises(UsageError, match="no"):
        redirect(table.store.root, refuse, clock=time, wait=time.wait)
    assert redirect(table.store.root, park, clock=time, wait=time.wait).version == 1
    assert time.seconds == 0


def test_a_path_that_is_no_table_takes_no_generation(lake: LocalStore, table: MadeTable) -> None:
    with pytest.raises(TableNotFoundError):
        redirect(lake.root, park)
    assert newest_generation(lake) == 0
