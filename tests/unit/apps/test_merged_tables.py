"""Several topics of one table: which ones the service reads, and what commands do to them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import structlog

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTables, initial_source
from lakesplice.apps.table_commands.command_table import CommandTable
from lakesplice.apps.table_commands.work import DROP, PARK, REPLAY, UNPARK, execute
from lakesplice.config import Settings
from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.schema import TableSchema
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.intents import Sweep
from lakesplice.table.reading.table import Table
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of
from tests.support.shards import Scene, filled

ROUTE = {"match": r"/shop_(\d+)\.goods/", "to": "shop.goods"}
KEY = {"shape": {"key": ["database_name"]}}


def settings(root: Path, *tables: Mapping[str, Any]) -> Settings:
    return settings_of(root, tables=tables)


def tables(root: Path, *entries: Mapping[str, Any]) -> ServiceTables:
    lake, log, entropy = LocalStore(root), structlog.get_logger(), SeededEntropy(1)
    generation = Generation(lake, 1)
    found = settings(root, *entries)
    return ServiceTables(Driver(found, lake, FixedClock(), entropy, generation, Metrics(), log))


def open_topic(held: ServiceTables, *topics: str) -> None:
    for topic in topics:
        held.open_topic(topic, initial_source(topic, f"id of {topic}", {0: Offset(0)}))


def test_topics_that_meet_are_one_table_when_the_key_tells_them_apart(tmp_path: Path) -> None:
    held = tables(tmp_path, {**ROUTE, **KEY})
    open_topic(held, "a.shop_0.goods", "b.shop_1.goods", "b.shop_2.goods")
    assert [str(table.name) for table in held] == ["shop.goods"]
    assert [table.topic for table in held.of_topics()] == [
        "a.shop_0.goods",
        "b.shop_1.goods",
        "b.shop_2.goods",
    ]


def test_topics_that_meet_otherwise_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    held = tables(tmp_path, ROUTE)
    open_topic(held, "a.shop_0.goods")
    with pytest.raises(UsageError, match=r"shape: \{key: \[database_name\]\}"):
        open_topic(held, "a.shop_1.goods")
    held = tables(tmp_path, {**ROUTE, **KEY})
    open_topic(held, "a.shop_0.goods")
    with pytest.raises(UsageError, match=r"add to shape\.key what differs, such as topic"):
        open_topic(held, "b.shop_0.goods")


def test_a_table_that_was_made_without_the_shard_takes_no_further_topic(tmp_path: Path) -> None:
    held = tables(tmp_path, ROUTE)
    open_topic(held, "a.shop_0.goods")
    next(iter(held)).create_or_open(TableSchema())
    held = tables(tmp_path, {**ROUTE, **KEY})
    with pytest.raises(UsageError, match="reset --anew"):
        open_topic(held, "a.shop_1.goods")


@pytest.mark.slow
def test_the_parked_topic_of_a_table_is_named_and_the_other_continues(tmp_path: Path) -> None:
    scene = filled(Scene(tmp_path))
    topics = [shard.topic.name for shard in scene.shards]
    for shard in scene.shards:
        shard.driver.table.park(ParkReason(ParkCode.JOB_DIED, "of old age"))
    with pytest.raises(UsageError, match="--topic"):
        command(scene, UNPARK, offsets=[], stated=None)
    command(scene, UNPARK, offsets=[(0, 0)], stated=None, topic=topics[1])
    assert scene.second.driver.table.parked is None
    assert scene.second.driver.table.next_offsets([0]) == {0: 0}
    assert scene.first.driver.table.parked is not None
    command(scene, UNPARK, offsets=[], stated=None)
    scene.settle()
    with pytest.raises(UsageError, match="no such topic"):
        command(scene, UNPARK, offsets=[], stated=None, topic="elsewhere")


@pytest.mark.slow
def test_an_operator_parks_one_topic_of_a_table_or_all(tmp_path: Path) -> None:
    scene = filled(Scene(tmp_path))
    topics = [shard.topic.name for shard in scene.shards]
    command(scene, PARK, why="a probe", topic=topics[0])
    for shard in scene.shards:
        # Any commit shows the driver what the command did.
        shard.driver.table.commit(Sweep(shard.driver.table.generation))
    parked = [shard.driver.table.parked for shard in scene.shards]
    assert [why and why.code for why in parked] == [ParkCode.BY_HAND, None]
    with pytest.raises(ParkedTableError, match="parked already"):
        command(scene, PARK, why="a probe", topic=topics[0])
    command(scene, UNPARK, offsets=[], stated=None, topic=topics[0])
    command(scene, PARK, why="a probe", topic="")
    manifest = Table(scene.first.driver.table.store).snapshot.manifest
    assert [manifest.parked_for(topic) is not None for topic in topics] == [True, True]
    command(scene, UNPARK, offsets=[], stated=None)
    assert not Table(scene.first.driver.table.store).snapshot.manifest.parkings


@pytest.mark.slow
def test_dead_letters_belong_to_their_topic(tmp_path: Path) -> None:
    scene = filled(Scene(tmp_path))
    for shard in scene.shards:
        shard.put(50)
        lost = shard.topic.events(0)[-1]
        shard.topic.append(0, [lost._replace(value=b"{")])
    scene.settle()
    assert [ref.topic for ref in scene.first.driver.table.manifest.dead_letters] == [
        shard.topic.name for shard in scene.shards
    ]
    place = [0, scene.first.topic.ends[0] - 1]
    with pytest.raises(UsageError, match="--topic"):
        command(scene, DROP, places=[place], reasons=[], why="lost")
    told = command(
        scene, DROP, places=[place], reasons=[], why="lost", topic=scene.first.topic.name
    )
    assert told == "1 dead letters dropped"
    told = command(scene, REPLAY, places=[], reasons=[])
    assert told == "0 dead letters replayed, 1 still can't be read and are kept"
    left = Table(scene.store).snapshot.manifest.dead_letters
    assert [(ref.topic, ref.rows) for ref in left] == [(scene.second.topic.name, 1)]
    scene.settle()


def command(scene: Scene, name: str, **arguments: Any) -> str:
    table = scene.first.driver.table
    assert table.snapshot is not None
    place = CommandTable(
        table.store,
        table.snapshot,
        1,
        FixedClock(),
        SeededEntropy(1_000 + table.version),
        table.commit,
        {},
        settings=settings(scene.lake.root, {**ROUTE, **KEY}),
    )
    return execute(name, place, arguments).text
