"""New topics: the policy decides whether they get a table, and none of their records is lost."""

from __future__ import annotations

from pathlib import Path

import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.new_topics import NewTopics
from lakesplice.apps.service.tables import ServiceTables, initial_source
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.intents import Redirect
from lakesplice.telemetry.catalogue import TABLES_NOT_MADE
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of

GOODS, OTHER = "a.shop.goods", "a.other.goods"


class Scene:
    """A driver that was just started over a lake, by a policy for tables of `shop`."""

    def __init__(self, lake: LocalStore, create_table: str) -> None:
        entry = {"match": "shop.*", "schema_changes": {"create_table": create_table}}
        settings = settings_of(lake.root, tables=[entry])
        self.metrics = Metrics()
        log, entropy = structlog.get_logger(), SeededEntropy(1)
        driver = Driver(
            settings, lake, FixedClock(), entropy, Generation(lake, 1), self.metrics, log
        )
        self.tables = ServiceTables(driver)
        self.newcomers = NewTopics(driver, self.tables)

    def open_topic(self, topic: str = GOODS) -> ParkCode | None:
        """Take the topic's table up, and say why it is parked."""
        table = self.tables.open_topic(topic, initial_source(topic, "id", {0: Offset(0)}))
        self.newcomers.park_if_refused(table)
        return None if table.parked is None else table.parked.code


def test_a_topic_without_a_table_is_left_out_and_said_once(tmp_path: Path) -> None:
    scene = Scene(LocalStore(tmp_path), "ignore")
    with capture_logs() as logged:
        assert [scene.newcomers.leaves_out(GOODS) for _ in range(3)] == [True] * 3
        assert not scene.newcomers.leaves_out(OTHER), "no policy of its own"
        assert not scene.newcomers.leaves_out("nothing"), "which is told elsewhere"
    assert [(entry["event"], entry["topic"]) for entry in logged] == [("table-not-made", GOODS)]
    assert scene.metrics.value(TABLES_NOT_MADE) == 1
    assert not len(scene.tables)


def test_a_table_that_is_there_continues_whatever_becomes_of_new_ones(tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    assert Scene(lake, "exception").open_topic() is ParkCode.NEW_TABLE
    for behaviour in ("ignore", "exception"):
        assert not Scene(lake, behaviour).newcomers.leaves_out(GOODS)


def test_a_new_table_waits_until_it_is_unparked(tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    scene = Scene(lake, "exception")
    assert scene.open_topic(OTHER) is None
    assert scene.open_topic() is ParkCode.NEW_TABLE
    table = scene.tables.get(GOODS)
    assert table is not None
    table.commit(Redirect(table.generation, table.version, parked=None))
    assert Scene(lake, "exception").open_topic() is None
    assert table.next_offsets({0}) == {0: 0}


def test_tables_are_made_by_default(tmp_path: Path) -> None:
    for behaviour in ("evolve", "try_evolve", "lenient"):
        scene = Scene(LocalStore(tmp_path), behaviour)
        assert not scene.newcomers.leaves_out(GOODS)
        assert scene.open_topic() is None
