"""Tables without a key: each inserted row is stored once, however often its change arrives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.config import Settings
from lakesplice.errors import ConfigurationError
from lakesplice.model.choices import NotInserts
from lakesplice.model.names import APPENDED, SOURCE_POSITION, TableName
from lakesplice.model.parking import ParkCode
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import integer, varchar
from lakesplice.testing.shop.database import Row
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.command_line import CommandLine
from tests.support.service_settings import settings_of

CLICKS = TableSpec("clicks", (varchar("page"), integer("n")), ())
SAME = ("home", 1)


class Scene:
    """A table of clicks without a key, its topic of two partitions and its driver."""

    def __init__(self, folder: Path, not_inserts: NotInserts = NotInserts.PARK) -> None:
        self.database = Database((CLICKS,))
        self.topic = SimulatedTopic(self.database.topic("clicks"), 2)
        self.driver = SimulatedDriver(
            LocalStore(folder),
            self.topic,
            FixedClock(),
            SeededEntropy(1),
            key=APPENDED,
            not_inserts=not_inserts,
        )
        self.folder = folder
        self.store = LocalStore(folder / self.driver.name.path)

    def restart(self) -> None:
        """Start another driver, as after a command that took the table's generation."""
        generation = Table(self.store).snapshot.manifest.generation
        self.driver = SimulatedDriver(
            LocalStore(self.folder),
            self.topic,
            FixedClock(),
            SeededEntropy(2),
            key=APPENDED,
            not_inserts=NotInserts.PARK,
            generation=generation,
        )

    def click(self, *rows: Row) -> list[Event]:
        self.database.insert("clicks", rows)
        return self.database.drain()

    def take(self, events: Iterable[Event], partition: int = 0) -> None:
        self.topic.append(partition, list(events))
        self.driver.batch()

    @property
    def table(self) -> pa.Table:
        return Table(self.store).read()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        found = self.table.select(["page", "n"]).to_pylist()
        return sorted(tuple(row.values()) for row in found)


def without_gtid(events: Iterable[Event]) -> list[Event]:
    """Return events as a server without GTIDs would have them sent."""
    sent = []
    for event in events:
        record = json.loads(event.value or b"")
        record["payload"]["source"]["gtid"] = None
        sent.append(event._replace(value=json.dumps(record).encode()))
    return sent


def test_equal_rows_are_rows_each(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.take(scene.click(SAME, SAME))
    scene.take(scene.click(SAME, ("cart", 2)))
    assert scene.rows == [("cart", 2), SAME, SAME, SAME]
    places = scene.table[SOURCE_POSITION].to_pylist()
    assert len(set(places)) == 4


@pytest.mark.slow
def test_rows_that_a_connector_repeats_are_not_appended_again(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    first = scene.click(SAME, ("cart", 2))
    scene.take(first)
    scene.take([*first, *scene.click(SAME)])
    scene.take(first, partition=1)
    assert scene.rows == [("cart", 2), SAME, SAME]


def test_rows_of_a_snapshot_are_recognised_by_their_records(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.database.load("clicks", [SAME, SAME, ("cart", 2)])
    scene.take(scene.database.snapshot())
    assert scene.rows == [("cart", 2), SAME, SAME]
    places = scene.table[SOURCE_POSITION].to_pylist()
    assert sorted(places) == ["kafka:0:0", "kafka:0:1", "kafka:0:2"]


@pytest.mark.parametrize("policy", NotInserts)
def test_an_update_contradicts_what_the_table_is_said_to_be(
    tmp_path: Path, policy: NotInserts
) -> None:
    scene = Scene(tmp_path, policy)
    scene.take(scene.click(SAME))
    ((key, _),) = scene.database.rows("clicks").items()
    scene.database.update("clicks", [key], lambda row: (row[0], 9))
    scene.take(scene.database.drain())
    manifest = Table(scene.store).snapshot.manifest
    if policy is NotInserts.PARK:
        assert manifest.parked is not None
        assert manifest.parked.code is ParkCode.NOT_AN_INSERT
    else:
        assert sum(letters.rows for letters in manifest.dead_letters) == 1
    assert scene.rows == [SAME]


def test_a_source_with_a_column_of_that_name_parks(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.database.add_column("clicks", varchar(SOURCE_POSITION))
    scene.take(scene.click(("home", 1, "here")))
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.UNSUPPORTED
    assert SOURCE_POSITION in parked.detail


def settings(**entry: Any) -> Settings:
    return settings_of("lake", tables=[{"match": "shop.clicks", **entry}])


def test_the_mode_is_the_key() -> None:
    clicks = TableName("shop", "clicks")
    assert settings(mode="append").key(clicks) == APPENDED
    assert settings(mode="append").not_inserts(clicks) is NotInserts.PARK
    assert settings(mode="upsert", key=["n"]).key(clicks) == ("n",)
    for wrong in ({"mode": "append", "key": ["n"]}, {"key": [SOURCE_POSITION]}):
        with pytest.raises((ValueError, ConfigurationError), match="mode"):
            settings(**wrong)


@pytest.mark.slow
def test_rows_appended_by_two_servers_at_one_place_are_distinguished_by_their_shard(
    tmp_path: Path,
) -> None:
    shape = Shape(metadata=(("db", MetadataContent.DATABASE_NAME),), key=("db",))
    beside: SimulatedDriver | None = None
    for number in (0, 1):
        database = Database((CLICKS,), server=f"s{number}", database=f"shop_{number}")
        topic = SimulatedTopic(database.topic("clicks"), 1)
        database.insert("clicks", [SAME, ("cart", 2)])
        topic.append(0, database.drain())
        driver = SimulatedDriver(
            LocalStore(tmp_path),
            topic,
            FixedClock(),
            SeededEntropy(1 + number),
            key=APPENDED,
            not_inserts=NotInserts.PARK,
            shape=shape,
            beside=beside,
        )
        driver.batch()
        beside = beside or driver
    rows = Table(LocalStore(tmp_path / "shop_0" / "clicks")).read().to_pylist()
    assert sorted((row["db"], row["page"]) for row in rows) == [
        ("shop_0", "cart"),
        ("shop_0", "home"),
        ("shop_1", "cart"),
        ("shop_1", "home"),
    ]
    assert len({row[SOURCE_POSITION] for row in rows}) == 2


@pytest.mark.slow
def test_a_row_at_a_place_of_the_binlog_before_a_reset_is_another_row(
    tmp_path: Path, lakesplice: CommandLine
) -> None:
    scene = Scene(tmp_path)
    scene.take(without_gtid(scene.click(SAME, ("cart", 2))))
    scene.database = Database((CLICKS,))  # after RESET MASTER, at the same places
    first = without_gtid(scene.click(("away", 5), ("cart", 6)))
    scene.take(first)
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.POSITIONS_FELL_BACK
    assert lakesplice("unpark", tmp_path / scene.driver.name.path, "--new-epoch").code == 0
    scene.restart()
    scene.driver.batch()
    scene.take([*without_gtid(scene.click(("late", 4))), *first])
    assert scene.rows == [("away", 5), ("cart", 2), ("cart", 6), SAME, ("late", 4)]
    places = [place.split(":", 1) for place in scene.table[SOURCE_POSITION].to_pylist()]
    assert Counter(epoch for epoch, _ in places) == {"": 2, "epoch-1": 3}
    assert len({place for _, place in places}) == 3


def test_a_further_snapshot_parks_instead_of_doubling_rows(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.database.load("clicks", [SAME, SAME, ("cart", 2)])
    snapshot = scene.database.snapshot()
    scene.take(snapshot[:2])
    scene.take([*snapshot[2:], *scene.click(("pay", 3))])
    before = scene.rows
    assert ("pay", 3) in before
    scene.click(("never sent", 4))
    scene.take(scene.database.snapshot())
    parked = scene.driver.table.parked
    assert parked is not None
    assert parked.code is ParkCode.NOT_AN_INSERT
    assert "a second snapshot" in parked.detail
    assert scene.rows == before


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_further_snapshot_is_noticed_wherever_batches_end(tmp_path: Path, cut: int) -> None:
    scene = Scene(tmp_path)
    scene.database.load("clicks", [SAME, ("cart", 2)])
    events = [*scene.database.snapshot(), *scene.click(("pay", 3))]
    scene.click(("never sent", 4))
    events += scene.database.snapshot()
    scene.take(events[:cut])
    scene.topic.append(0, events[cut:])
    scene.driver.attempt()  # the fourth event is of the second snapshot, and parks the table
    assert scene.driver.table.parked is not None
    assert scene.rows == [("cart", 2), SAME, ("pay", 3)]
