"""`lakesplice pin`, `pins` and `unpin`: all tables of a lake or none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import lakesplice
from lakesplice.apps.cli.tables.showing.lake_overview import print_overview
from lakesplice.apps.requested_versions import offsets_of
from lakesplice.errors import UsageError
from lakesplice.model.driver_status import DriverStatus, TopicCondition, TopicState, TopicStatus
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.lake_pins import delete_lake_pin
from lakesplice.table.driver.status import StatusPublisher
from tests.support.by_hand import COLUMNS, created, given
from tests.support.command_line import CommandLine
from tests.support.simulated import Source, driver_of


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table that a topic feeds, and one fed by hand."""
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(1))
    driver.batch()
    created(LocalStore(tmp_path / "shop" / "notes"), [{"id": 1, "n": 0}])
    return tmp_path


@pytest.mark.slow
def test_a_pin_of_a_lake_keeps_what_every_table_had(cli: CommandLine, lake: Path) -> None:
    said = cli("pin", lake, "march", "--expires", "30d")
    assert said.out.startswith("2 tables pinned as march; the pin ends at ")
    notes = lakesplice.Table.open(lake / "shop" / "notes")
    notes.upsert(given([{"id": 1, "n": 5}], COLUMNS.names))
    pinned = lakesplice.Table.open(lake / "shop" / "notes", pin="march")
    assert pinned.read()["n"].to_pylist() == [0]
    read = cli("read", lake / "shop" / "notes", "--pin", "march", "--format", "json")
    assert json.loads(read.out)["n"] == 0
    (row,) = cli.rows("pins", lake)
    assert (row["name"], row["state"], row["tables"]) == ("march", "complete", 2)
    assert row["versions"] == {"shop/goods": 1, "shop/notes": 0}
    assert "there is a pin of this name" in cli("pin", lake, "march").err
    assert cli("unpin", lake, "march").out == "2 tables aren't pinned as march any more\n"
    assert cli.rows("pins", lake) == []
    assert "no such pin" in cli("unpin", lake, "march").err


def test_some_tables_are_chosen_by_patterns(cli: CommandLine, lake: Path) -> None:
    assert cli("pin", lake, "some", "--tables", "*.no*").out == "1 tables pinned as some\n"
    assert "no such pin" in cli("read", lake / "shop" / "goods", "--pin", "some").err
    assert "no such table" in cli("pin", lake, "none", "--tables", "x.*").err


def test_an_interrupted_pin_is_not_read_and_is_completed_by_another_call(
    cli: CommandLine, lake: Path
) -> None:
    cli("pin", lake, "p")
    delete_lake_pin(LocalStore(lake), "p")  # as if the command had died before its last step
    with pytest.raises(UsageError, match="isn't complete"):
        lakesplice.Table.open(lake / "shop" / "notes", pin="p")
    assert [row["state"] for row in cli.rows("pins", lake)] == ["incomplete"]
    assert cli("pin", lake, "p").code == 0
    assert [row["state"] for row in cli.rows("pins", lake)] == ["complete"]


def test_one_version_is_asked_for_in_one_way(lake: Path) -> None:
    with pytest.raises(UsageError, match="give one of these"):
        lakesplice.Table.open(lake / "shop" / "notes", version=0, pin="p")
    goods = lakesplice.Table.open(lake / "shop" / "goods")
    again = lakesplice.Table.open(lake / "shop" / "goods", at_offsets=dict(goods.offsets))
    assert again.version == goods.version
    text = ",".join(f"{at}:{offset}" for at, offset in goods.offsets.items())
    assert offsets_of(text) == dict(goods.offsets)
    assert offsets_of("a.b:0:7, a.c:1:8") == {"a.b": {0: 7}, "a.c": {1: 8}}
    with pytest.raises(UsageError, match="write offsets as"):
        offsets_of("0-7")


def test_a_lake_is_as_complete_as_its_oldest_table(cli: CommandLine, lake: Path) -> None:
    assert cli("complete", lake).out == "not known\n"
    topics = tuple(
        TopicStatus(
            f"shop.shop.{table}",
            f"shop.{table}",
            TopicCondition(TopicState.RUNNING),
            EpochMs(0),
            real_time_ms=EpochMs(moment),
        )
        for table, moment in (("goods", 5_000), ("other", 7))
    )
    status = DriverStatus(1, EpochMs(0), True, ".*", topics)
    StatusPublisher(LocalStore(lake), 1).publish(status)
    said = cli("complete", lake)
    assert (said.out, said.err) == ("1970-01-01T00:00:05.000+00:00 (shop.goods)\n", "")
    driver = driver_of(Source(), LocalStore(lake), generation=2)
    driver.table.continue_at(lambda source: moved(source, {0: Offset(9)}), "a test")
    found = lakesplice.completeness(lake, ["*.goods"])
    assert found.until == datetime.fromtimestamp(5, UTC)
    assert (found.oldest, found.with_gaps) == (("shop.goods",), ("shop.goods",))
    assert "shop.goods" in cli("complete", lake).err
    assert cli("complete", lake, "--tables", "*.none").code == 1


def test_all_tables_are_complete_up_to_the_oldest_moment_of_any() -> None:
    def topic(table: str, moment: int | None) -> TopicStatus:
        condition = TopicCondition(TopicState.RUNNING)
        return TopicStatus(
            f"t.{table}",
            table,
            condition,
            EpochMs(0),
            real_time_ms=None if moment is None else EpochMs(moment),
        )

    def until(*topics: TopicStatus) -> int | None:
        return DriverStatus(1, EpochMs(0), True, ".*", topics).complete_until({"shop.a", "shop.b"})

    assert until(topic("shop.a", 7), topic("shop.b", 5), topic("shop.c", 1)) == 5
    assert until(topic("shop.a", 7), topic("shop.b", None)) is None
    assert until() is None


def test_the_overview_says_up_to_when_all_tables_are_complete(
    capsys: pytest.CaptureFixture[str],
) -> None:
    condition = TopicCondition(TopicState.RUNNING)
    topics = (TopicStatus("t", "shop.a", condition, EpochMs(0), real_time_ms=EpochMs(1_000)),)
    row = {"table": "shop.a", "state": "running", "suspect_settings": (), "topics": []}
    print_overview(
        [row], DriverStatus(1, EpochMs(2_000), True, ".*", topics), EpochMs(2_000), "lake"
    )
    assert "all tables are complete up to 1970-01-01T00:00:01" in capsys.readouterr().err
