"""Insert-only tables with a TRUNCATE and with a new snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.choices import NotInserts
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL
from lakesplice.planning.intake.line import RecordReading
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import DeadLetterSelection, dead_letters_of
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.ledgers import ledger
from tests.support.simulated import truncate_at


class Scene:
    """A ledger of which rows never change, its topic, and a driver."""

    def __init__(self, folder: Path) -> None:
        self.database = Database([ledger()], server="inserts", database="only")
        self.topic = SimulatedTopic(self.database.topic("ledger"))
        self.folder = folder
        self.seed = 0

    def driver(self, policy: NotInserts | None = NotInserts.PARK) -> SimulatedDriver:
        self.seed += 1
        return SimulatedDriver(
            LocalStore(self.folder),
            self.topic,
            FixedClock(),
            SeededEntropy(self.seed),
            not_inserts=policy,
        )

    def insert(self, start: int, stop: int) -> list[Event]:
        rows = [(key, f"row {key}", key, key * 10, key * 1_000) for key in range(start, stop)]
        self.database.insert("ledger", rows)
        return self.database.drain()

    def truncated(self, stop: int) -> Event:
        """Empty the ledger of its keys; the event that tells of it."""
        self.database.delete("ledger", [(key,) for key in range(stop)])
        event = self.database.drain()[0]
        return truncate_at(event)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def keys(driver: SimulatedDriver, view: View = View.REAL_TIME) -> list[int]:
    return sorted(Table(driver.table.store).read(view)["id"].to_pylist())


def test_a_new_snapshot_takes_no_row_of_which_it_brings_a_repetition(scene: Scene) -> None:
    driver = scene.driver()
    scene.topic.append(0, scene.insert(0, 12))
    driver.batch()
    scene.insert(12, 15)
    scene.topic.append(0, scene.database.snapshot())
    scene.topic.append(0, scene.insert(15, 17))
    driver.batch()
    assert driver.table.parked is None
    assert driver.table.source.fence == BEFORE_ALL
    for view in View:
        assert keys(driver, view) == list(range(17))


@pytest.mark.slow
def test_a_truncate_parks_the_table_and_empties_it_once_rows_may_change(scene: Scene) -> None:
    driver = scene.driver()
    scene.topic.append(0, scene.insert(0, 6))
    driver.batch()
    scene.topic.append(0, [scene.truncated(6), *scene.insert(2, 9)])
    driver.batch()
    parked = driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.NOT_AN_INSERT
    assert parked.offset == 6
    assert keys(driver) == list(range(6))
    driver = scene.driver(None)
    unparked(driver)
    driver.batch()
    assert keys(driver) == list(range(2, 9))


@pytest.mark.slow
def test_a_truncate_that_became_a_letter_leaves_the_rows_until_it_is_replayed(
    scene: Scene,
) -> None:
    driver = scene.driver(NotInserts.DEAD_LETTER)
    scene.topic.append(0, scene.insert(0, 6))
    driver.batch()
    scene.topic.append(0, [scene.truncated(6), *scene.insert(6, 9)])
    driver.batch()
    assert driver.table.parked is None
    assert keys(driver) == list(range(9))
    manifest = driver.table.manifest
    (letter,) = dead_letters_of(driver.table.store, manifest.dead_letters)
    assert (letter.reason, letter.offset) == ("not-an-insert", 6)
    assert letter.detail == "the table is insert-only and was truncated"
    driver = scene.driver(None)
    assert replayed(driver) == DeadLetterCounts(1)
    assert driver.table.source.fence > BEFORE_ALL
    assert keys(driver) == list(range(6, 9))
    driver.compact()
    assert keys(driver, View.READ_OPTIMISED) == list(range(6, 9))
    scene.topic.append(0, scene.insert(0, 3))
    driver.batch()
    assert keys(driver) == [0, 1, 2, 6, 7, 8]


def unparked(driver: SimulatedDriver) -> None:
    driver.table.commit(Redirect(1, driver.table.version))


def replayed(driver: SimulatedDriver) -> DeadLetterCounts:
    table = driver.table
    assert table.snapshot is not None
    box = OpenDeadLetters(
        table.store, table.snapshot, table.commit, 1, FixedClock(), SeededEntropy(99)
    )
    return box.replay(DeadLetterSelection(), RecordReading(table=driver.name))
