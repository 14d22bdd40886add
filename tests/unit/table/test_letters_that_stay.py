"""Dead letters that a replay leaves: what is known of them, and the purge floor below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.model.position import BEFORE_ALL
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import DeadLetterSelection
from lakesplice.table.ingest.dead_letter_replay import DeadLetterCounts, OpenDeadLetters
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.simulated import Source, driver_of, rows_of


class Scene:
    """A source of one partition of which some records can't be read, and a driver."""

    def __init__(self, folder: Path) -> None:
        self.source = Source()
        self.source.topic = SimulatedTopic(self.source.topic.name)
        self.driver: SimulatedDriver = driver_of(self.source, LocalStore(folder))

    def take(self, *events: Event) -> None:
        self.source.topic.append(0, events)
        self.driver.batch()

    def box(self) -> OpenDeadLetters:
        table = self.driver.table
        assert table.snapshot is not None
        entropy = SeededEntropy(1_000 + table.version)
        return OpenDeadLetters(table.store, table.snapshot, table.commit, 1, FixedClock(), entropy)

    @property
    def reading(self) -> RecordReading:
        return RecordReading(table=self.driver.name)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def unreadable(event: Event) -> Event:
    return event._replace(value=b"{")


def test_letters_that_stay_are_above_the_position_that_they_were_above(scene: Scene) -> None:
    scene.take(*scene.source.put(1))
    reached = scene.driver.table.source.partitions[0].position
    scene.take(unreadable(scene.source.put(2)[0]))
    scene.take(*scene.source.put(3))
    later = scene.driver.table.source.partitions[0].position
    scene.take(unreadable(scene.source.put(4)[0]))
    assert BEFORE_ALL < reached < later
    assert scene.box().replay(DeadLetterSelection(), scene.reading) == DeadLetterCounts(0, 2)
    left = scene.driver.table.manifest.dead_letters
    assert [(ref.rows, ref.position) for ref in left] == [(1, reached), (1, later)]
    assert purge_bound(scene.driver.table.manifest) == reached
    first = frozenset([PartitionOffset(0, Offset(1))])
    assert scene.box().drop(DeadLetterSelection(first)) == DeadLetterCounts(1)
    assert purge_bound(scene.driver.table.manifest) == later
    assert scene.box().drop(DeadLetterSelection()) == DeadLetterCounts(1)
    assert rows_of(scene.driver.table.store)
