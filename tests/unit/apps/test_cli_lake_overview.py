"""The output of `lakesplice tables`: a lake's tables, its topics, and problems."""

from __future__ import annotations

import io
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakesplice import Table
from lakesplice.apps.cli.tables.showing.lake_overview import print_overview
from lakesplice.apps.lake_listing import listing
from lakesplice.model.driver_status import (
    DriverStatus,
    FreshnessGoal,
    MirrorStatus,
    MissingChanges,
    SuspectSetting,
    TopicCondition,
    TopicState,
    TopicStatus,
)
from lakesplice.model.moments import EpochMs
from lakesplice.model.progress.verified import ComparisonOutcome, LastResult
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.last_results import keep_result
from lakesplice.table.driver.status import StatusPublisher, newest_status
from lakesplice.table.protocol.layout import generation_path, release_path
from tests.support.command_line import CommandLine
from tests.support.indexed import IndexedTable
from tests.support.made import GENERATION


def test_tables_lists_a_lake_with_what_is_parked_and_what_cannot_be_read(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    broken = lake / "shop" / "broken" / "_delta_log"
    broken.mkdir(parents=True)
    (broken / f"{0:020d}.json").write_text("{")
    rows = {row["table"]: row for row in lakesplice.rows("tables", lake)}
    assert rows.keys() == {"shop.broken", "shop.items", "shop.no_key"}
    facts = rows["shop.items"]
    assert (facts["version"], facts["deltas"], facts["waiting"]) == (3, 1, 2)
    assert (facts["rows"], facts["physical_rows"]) == (9, 10), "one is deleted, by a waiting change"
    assert facts["state"] == "running"
    assert (rows["shop.no_key"]["state"], rows["shop.no_key"]["code"]) == ("parked", "no-key")
    assert rows["shop.broken"]["state"] == "unreadable"
    out = lakesplice("tables", lake).out
    assert "parked (no-key): the table has no primary key (at record 0:7)" in out
    assert rows["shop.no_key"]["record"] == "0:7"


@pytest.mark.slow
def test_a_table_that_no_topic_feeds_does_not_count_as_running(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    for name in ("mine", "disputed"):
        Table.create(lake / "shop" / name, rows, key=["id"])
    publish(
        lake,
        topic(
            "a.shop.disputed",
            "shop.disputed",
            TopicCondition(TopicState.PARKED, "why", "fed-by-hand"),
        ),
    )
    states = {row["table"]: row["state"] for row in lakesplice.rows("tables", lake)}
    assert states == {
        "shop.mine": "by hand",
        "shop.disputed": "parked",
        "shop.items": "unread",
        "shop.no_key": "parked",
    }
    out = lakesplice("tables", lake).out
    assert "shop.items: unread: no topic that the service knows feeds the table" in out
    assert "shop.mine: " not in out
    assert "by hand" in lakesplice("status", lake).out


def test_tables_shows_which_differed_from_their_database(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    moment = EpochMs(now_ms() - 7_500_000)
    found = [
        LastResult("shop/items", "a", moment, ComparisonOutcome.EQUAL),
        LastResult("shop/items", "b", moment, ComparisonOutcome.DIFFERENT, different=1_204),
        LastResult("shop/no_key", "c", moment, ComparisonOutcome.NOT_COMPARED, "why"),
    ]
    for result in (replace(found[1], different=7), *found):
        keep_result(LocalStore(lake), result)
    rows = {row["table"]: row["verified"] for row in lakesplice.rows("tables", lake)}
    assert (rows["shop.items"]["outcome"], rows["shop.items"]["different"]) == ("different", 1_204)
    assert (rows["shop.no_key"]["outcome"], rows["shop.no_key"]["reason"]) == (
        "not compared",
        "why",
    )
    out = " ".join(lakesplice("tables", lake).out.split())
    assert "shop.items: 1,204 rows differed from the database 2h5m ago" in out
    assert "differs" in out


def publish(lake: Path, *topics: TopicStatus, **other: Any) -> None:
    """Publish what a driver says of its topics a moment ago."""
    facts = {"written_ms": now_ms(), "running": True, "pattern": "a\\..*", **other}
    store = LocalStore(lake)
    before = newest_status(store)
    number = 1 if before is None else before.generation + 1
    StatusPublisher(store, number).publish(DriverStatus(number, topics=topics, **facts))


def now_ms() -> int:
    return round(time.time() * 1000)


def topic(name: str, table: str, standing: TopicCondition, **facts: Any) -> TopicStatus:
    return TopicStatus(name, table, standing, EpochMs(now_ms() - 7_500_000), **facts)


@pytest.mark.slow
def test_tables_tells_of_a_mirror_that_fails_and_not_of_one_that_follows(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    since = EpochMs(now_ms() - 7_500_000)
    failing = MirrorStatus(0, since, "the Iceberg catalog doesn't answer", since)
    standing = TopicCondition(TopicState.RUNNING)
    publish(lake, topic("a.items", "shop.items", standing, mirror=failing))
    found = {row["table"]: row["mirror"] for row in lakesplice.rows("tables", lake)}
    assert found["shop.no_key"] is None
    assert (found["shop.items"]["state"], found["shop.items"]["version"]) == ("failing", 0)
    assert found["shop.items"]["behind_seconds"] >= 7_500
    out = " ".join(lakesplice("tables", lake).out.split())
    told = "behind for 2h5m: the Iceberg catalog doesn't answer"
    assert "shop.items: its Iceberg mirror shows version 0 of" in out
    assert told in out
    assert "mirror doesn't follow: the Iceberg catalog" in lakesplice("status", lake).out
    publish(lake, topic("a.items", "shop.items", standing, mirror=MirrorStatus(0)))
    assert lakesplice.rows("tables", lake)[0]["mirror"]["state"] == "current"
    assert "mirror" not in lakesplice("tables", lake).out


def test_tables_tells_of_changes_that_are_missing_before_others(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    missing = MissingChanges(1_200, EpochMs(now_ms() - 7_500_000))
    standing = TopicCondition(TopicState.RUNNING)
    publish(lake, topic("a.items", "shop.items", standing, missing_changes=missing))
    found = {row["table"]: row["missing_changes"] for row in lakesplice.rows("tables", lake)}
    assert found["shop.no_key"] is None
    assert found["shop.items"]["changes"] == 1_200
    out = " ".join(lakesplice("tables", lake).out.split())
    assert "before 1,200 others, the last one found 2h5m ago; `lakesplice verify` says" in out
    assert any(line.endswith(" missing") for line in lakesplice("tables", lake).out.splitlines())


LONG = "the store refuses " + "again and " * 40 + "so mend its folder"


@pytest.mark.slow
def test_tables_shows_what_the_driver_says_of_every_topic(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, parked: IndexedTable
) -> None:
    goal = FreshnessGoal(5_000, 10_000)
    well = {"lag_records": 1234, "real_time_ms": now_ms() - 7_500_000, "goal": goal}
    publish(
        lake,
        topic("a.shop.items", "shop.items", TopicCondition(TopicState.RUNNING), **well),
        topic("a.shop.no_key", "shop.no_key", TopicCondition(TopicState.RUNNING)),
        topic(
            "a.shop.stuck",
            "shop.stuck",
            TopicCondition(TopicState.RESTING, LONG, "", EpochMs(now_ms())),
        ),
        topic("a.x.", "", TopicCondition(TopicState.REFUSED, "a topic must end in database.table")),
        topic("a.shop.new", "shop.new", TopicCondition(TopicState.WAITING), goal=goal),
    )
    rows = {row["topic"]: row for row in lakesplice.rows("tables", lake)}
    facts = rows["a.shop.items"]
    assert (facts["table"], facts["state"], facts["lag"]) == ("shop.items", "running", 1234)
    assert 7_500 <= facts["freshness_seconds"] < 7_560
    assert facts["freshness_goal_seconds"] == 5_000
    assert facts["lateness"] == facts["freshness_seconds"] / 5_000
    assert rows["a.shop.no_key"]["lateness"] is None, "nobody knows how old it is"
    assert rows["a.shop.no_key"]["state"] == "parked", "the manifest knows it better"
    stuck = rows["a.shop.stuck"]
    assert (stuck["state"], stuck["detail"], "rows" in stuck) == ("resting", LONG, False)
    assert stuck["retry"] > stuck["since"]
    assert (rows["a.x."]["table"], rows["a.x."]["state"]) == (None, "refused")
    out = lakesplice("tables", lake).out
    assert f"shop.stuck: resting: {LONG} (for 2h5m)" in out.splitlines()
    assert "a.x.: refused: a topic must end in database.table (for 2h5m)" in out
    (line,) = [line for line in out.splitlines() if line.startswith("shop.items")]
    assert line.split() == ["shop.items", "running", "9", "1,234", "2h5m", "2", "0", "late"]
    for command in ("tables", "status"):
        shown = lakesplice(command, lake).out.splitlines()
        (line,) = [line for line in shown if "no batch yet" in line]
        assert line.startswith("shop.new"), command


def test_tables_fits_a_terminal_of_80_columns_and_cuts_no_reason(
    lakesplice: CommandLine, lake: Path, items: IndexedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    setting = SuspectSetting("value.converter.x", "NULL is 0", EpochMs(now_ms()))
    well = {
        "lag_records": 12_345_678,
        "real_time_ms": now_ms() - 100_000_000,
        "suspect_settings": (setting,),
        "goal": FreshnessGoal(60, 60),
    }
    stuck = TopicCondition(TopicState.RESTING, LONG)
    name = "warehouse.a_table_with_a_rather_long_name"
    publish(lake, topic("a.shop.items", "shop.items", TopicCondition(TopicState.RUNNING), **well))
    publish(lake, topic("a", name, stuck, **well))
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    status = newest_status(LocalStore(lake))
    with monkeypatch.context() as patched:
        patched.setattr("sys.stdout", screen)
        now = EpochMs(now_ms())
        print_overview(listing(LocalStore(lake), status, now), status, now, "lake")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue()).splitlines()
    assert max(map(len, lines)) <= 80
    assert LONG in " ".join(line.strip() for line in lines)


def test_tables_shows_each_setting_that_changes_values_once_with_its_tables(
    lakesplice: CommandLine, lake: Path, items: IndexedTable
) -> None:
    assert "note" not in lakesplice("tables", lake).out
    well = TopicCondition(TopicState.RUNNING)
    nulls = SuspectSetting(
        "x.replace.null", "NULL arrives as 0; set it to false", EpochMs(now_ms())
    )
    times = SuspectSetting("time.mode", "cut", EpochMs(now_ms() - 7_500_000))
    publish(
        lake,
        topic("a.shop.items", "shop.items", well, suspect_settings=(nulls, times)),
        *(topic(f"a.shop.{n}", f"shop.{n}", well, suspect_settings=(nulls,)) for n in range(4)),
        topic("a.shop.well", "shop.well", well),
    )
    rows = {row["table"]: row for row in lakesplice.rows("tables", lake)}
    assert rows["shop.well"]["suspect_settings"] == []
    (one, other) = rows["shop.items"]["suspect_settings"]
    assert (one["name"], one["detail"]) == (nulls.name, nulls.detail)
    assert other["seen"] < one["seen"]
    lines = lakesplice("tables", lake).out.splitlines()
    noted = [line.split()[0] for line in lines if line.endswith(" settings")]
    assert noted == ["shop.0", "shop.1", "shop.2", "shop.3", "shop.items"]
    assert "setting time.mode: cut (shop.items; 2h5m ago)" in lines
    said = [line for line in lines if line.startswith("setting x.replace.null: NULL arrives as 0")]
    assert len(said) == 1
    assert "(shop.0, shop.1, shop.2, 2 more; " in said[0]


def test_tables_says_that_nothing_matches_and_that_no_driver_runs(
    lakesplice: CommandLine, lake: Path, items: IndexedTable
) -> None:
    publish(lake, pattern="shop", other_topics=("a.shop.items",))
    said = lakesplice("tables", lake).err
    assert "no topic matches kafka.topic_pattern shop; the broker has a.shop.items" in said
    publish(lake, written_ms=now_ms() - 7_200_000)
    assert "the driver last reported 2h ago" in lakesplice("tables", lake).err
    publish(lake, written_ms=now_ms() - 7_200_000, running=False)
    assert "the last one ended 2h ago" in lakesplice("tables", lake).err


def test_a_driver_that_can_not_report_is_not_taken_for_none(
    lakesplice: CommandLine, lake: Path, items: IndexedTable
) -> None:
    publish(lake, written_ms=now_ms() - 7_200_000, running=False)
    store = LocalStore(lake)
    store.put_new(generation_path(GENERATION + 1), b"{}")
    for command in ("tables", "status"):
        ended = lakesplice(command, lake)
        said = ended.out + ended.err
        assert f"{GENERATION + 1} has " in said
        assert "can't write to the lake" in said
        assert "2h ago" in said or command == "status"
        assert "no service runs" not in said
        assert "no driver" not in said
    store.put_new(release_path(GENERATION + 1), b"")
    assert "the last one ended 2h ago" in lakesplice("tables", lake).err
    assert "no driver has run for 2h" in lakesplice("status", lake).out


def test_an_empty_lake_has_no_tables_and_a_missing_one_is_an_error(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    assert "no tables" in lakesplice("tables", tmp_path).err
    ended = lakesplice("tables", tmp_path / "absent")
    assert ended.code == 1
    assert "there is no lake here" in ended.err
