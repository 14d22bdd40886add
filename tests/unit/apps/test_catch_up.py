"""When a lake is known to have all changes up to a place in the source's binlog."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakesplice.apps.bootstrap.shadow_check import ShadowCatchUp
from lakesplice.apps.verifying.catch_up import CatchUp
from lakesplice.model.driver_status import DriverStatus, TopicCondition, TopicState, TopicStatus
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.storage.source.binlog_places import BinlogPlace
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.table.driver.status import StatusPublisher
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.debezium import compact, envelope_schema, image, key_schema, payload, with_schema

PLACE = BinlogPlace("binlog.000003", 500)
TABLE = TableName("db", "items")
ITEMS, MARKS, OTHERS = "shop.db.items", "shop.db.marks", "other.db2.marks"


class Lake:
    """A lake of some tables, whose topics have two partitions each."""

    def __init__(self, folder: Path) -> None:
        self.store: AnyStore = open_store(folder / "lake")
        self.clock = FixedClock()
        self.catch_up = CatchUp(self.store, self.clock, 3.0, TABLE)
        self._publisher = StatusPublisher(self.store, 1)
        self._tables: dict[str, tuple[SimulatedTopic, SimulatedDriver]] = {}

    def has(self, topic: str, partition: int, pos: int) -> None:
        """Let a table have a change at a position."""
        if topic not in self._tables:
            made = SimulatedTopic(topic, 2)
            driver = SimulatedDriver(self.store, made, self.clock, SeededEntropy(1))
            self._tables[topic] = made, driver
        made, driver = self._tables[topic]
        content = payload(
            "c", None, image(pos), pos=pos, db=topic.split(".")[1], table=topic.split(".")[2]
        )
        key = compact(with_schema({"id": pos}, key_schema()))
        value = compact(with_schema(content, envelope_schema()))
        made.append(partition, [Event(topic, key, value, (), 0)])
        driver.batch()

    def says(self, topic: str, complete_ms: int | None, table: str = str(TABLE)) -> None:
        """Let the driver say up to when a topic's table is complete."""
        moment = None if complete_ms is None else EpochMs(complete_ms)
        standing = TopicCondition(TopicState.RUNNING)
        status = TopicStatus(topic, table, standing, EpochMs(0), real_time_ms=moment)
        self._publisher.publish(DriverStatus(1, EpochMs(0), True, ".*", (status,)))

    @property
    def is_past(self) -> bool:
        store = self.store.within("db/items")
        return self.catch_up.is_past(open_snapshot(store).manifest, ITEMS, PLACE)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path)
    made.has(ITEMS, 0, 100)
    return made


@pytest.mark.slow
def test_a_change_from_beyond_in_each_partition_shows_it(lake: Lake) -> None:
    assert not lake.is_past
    lake.has(ITEMS, 0, 501)
    assert not lake.is_past, "the other partition may be behind"
    lake.has(ITEMS, 1, 502)
    assert lake.is_past


@pytest.mark.slow
def test_so_does_a_change_elsewhere_once_the_driver_has_all_of_the_topic(lake: Lake) -> None:
    lake.has(MARKS, 0, 501)
    assert not lake.is_past, "the table may be behind"
    seen = lake.clock.now_ms()
    lake.says(ITEMS, None)
    assert not lake.is_past
    lake.says(ITEMS, seen - 60_000)
    assert not lake.is_past, "it was complete before the other change"
    lake.says(MARKS, seen + 60_000)
    assert not lake.is_past, "another topic's table is complete"
    lake.says(ITEMS, seen + 60_000, "db.items_history")
    assert not lake.is_past, "another table of the topic is complete"
    lake.says(ITEMS, seen + 60_000)
    assert lake.is_past


@pytest.mark.slow
def test_a_change_of_another_connector_or_from_before_the_place_shows_nothing(lake: Lake) -> None:
    lake.has(OTHERS, 0, 501)
    lake.has(MARKS, 0, 499)
    lake.says(ITEMS, lake.clock.now_ms() + 60_000)
    assert not lake.is_past


def test_waiting_for_it_has_an_end(lake: Lake) -> None:
    assert not lake.catch_up.wait(lake.store.within("db/items"), ITEMS, PLACE)
    assert 3.0 <= lake.clock.monotonic() < 6.0


class FedShadow:
    """A shadow, here the table itself, that each feeding brings one of these steps further."""

    def __init__(self, lake: Lake, *steps: Callable[[], None]) -> None:
        self._lake, self._steps, self.fed = lake, list(steps), 0

    def is_past(self) -> bool:
        lake = self._lake
        catch_up = ShadowCatchUp(lake.store, lake.clock, 3.0, TABLE, feed=self._feed)
        return catch_up.wait(lake.store.within("db/items"), ITEMS, PLACE)

    def _feed(self) -> None:
        self.fed += 1
        if self._steps:
            self._steps.pop(0)()


@pytest.mark.parametrize("topic", [ITEMS, MARKS])
def test_a_shadow_is_fed_once_more_after_any_change_from_beyond_was_seen(
    lake: Lake, topic: str
) -> None:
    lake.has(topic, 0, 501)
    shadow = FedShadow(lake)
    assert shadow.is_past()
    assert (shadow.fed, lake.clock.monotonic()) == (1, 0.0)


@pytest.mark.slow
def test_a_change_that_the_feeding_brings_proves_nothing_until_the_shadow_is_fed_again(
    lake: Lake,
) -> None:
    shadow = FedShadow(lake, lambda: lake.has(ITEMS, 0, 499), lambda: lake.has(MARKS, 0, 501))
    assert shadow.is_past()
    assert shadow.fed == 3


def test_a_shadow_needs_no_further_feeding_once_each_partition_is_beyond(lake: Lake) -> None:
    def bring_all() -> None:
        lake.has(ITEMS, 0, 501)
        lake.has(ITEMS, 1, 502)

    shadow = FedShadow(lake, bring_all)
    assert shadow.is_past()
    assert shadow.fed == 1


def test_waiting_for_a_shadow_has_an_end(lake: Lake) -> None:
    shadow = FedShadow(lake)
    assert not shadow.is_past()
    assert 3.0 <= lake.clock.monotonic() < 6.0
    assert shadow.fed == 4
