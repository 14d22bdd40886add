"""Each matching topic has a state with a reason, which metrics, status and page show alike."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.config.settings import LakeSettings
from lakesplice.errors import StorageError
from lakesplice.model.driver_status import MissingChanges, TopicState
from lakesplice.model.schema import TableSchema
from lakesplice.table.driver.status import newest_status
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.document import series_per_table
from lakesplice.telemetry.health import Health
from tests.support.clocked import ClockedStore
from tests.support.service_settings import settings_of
from tests.support.topic_conditions import GOODS, Scene
from tests.unit.apps.test_setting_warnings import report


def test_how_fresh_a_table_is_is_known_from_its_first_batch_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=2, a_shop_new=0)
    ago = [scene.clock.now_ms() - minutes * 60_000 for minutes in (10, 2)]
    scene.broker.times_ms[GOODS] = ago
    scene.sources.look()
    labels = {"table": "shop.goods", "view": metric.REAL_TIME}
    assert scene.table().freshness().real_time is None, "there is nothing to read"
    assert scene.metrics.value(metric.FRESHNESS, **labels) is None
    assert scene.reporter.status(running=True).topics == ()
    scene.table().create_or_open(TableSchema())
    scene.sources.peek()
    now = scene.clock.now_ms() / 1000
    assert scene.table().freshness().real_time == now - 900, "the next moment that was asked for"
    assert scene.table("a.shop.new").freshness().real_time == now
    assert scene.table().lag_records == 2
    scene.clock.advance(3600)
    scene.sources.look()
    assert scene.table().freshness().real_time == now - 900, "it never caught up"


def test_how_fresh_a_table_was_outlives_its_driver(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=0)
    scene.sources.look()
    scene.table().create_or_open(TableSchema())
    scene.reporter.tick()
    was = scene.clock.now_ms() / 1000
    again = Scene(tmp_path, generation=2, a_shop_goods=5)
    again.clock.advance(7200)
    again.sources.look()
    assert again.table().freshness().real_time == was
    assert again.table().lag_records == 5


def test_every_topic_that_matches_has_a_state(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3, a_shop_new=0, a_shop_left=1, a_shop_ignored=1)
    scene.broker.ends |= {"a.other.goods": 1, "a.shop.long": 1, "a.x.": 1, "b.shop.none": 1}
    (tmp_path / "shop").mkdir()
    scene.sources.look()
    scene.table("a.other.goods").create_or_open(TableSchema())
    states = {topic: one.state.value for topic, one in scene.sources.conditions().items()}
    assert states == {
        "a.other.goods": "running",
        "a.shop.goods": "refused",
        "a.shop.new": "waiting",
        "a.shop.left": "excluded",
        "a.shop.ignored": "excluded",
        "a.shop.long": "resting",
        "a.x.": "refused",
    }
    assert "too long" in scene.standing("a.shop.long").reason
    assert "must end in database.table" in scene.standing("a.x.").reason
    assert "create_table" in scene.standing("a.shop.ignored").reason
    scene.reporter.tick()
    tables = {one.topic: one.table for one in scene.reporter.status(running=True).topics}
    assert (tables["a.shop.left"], tables["a.x."]) == ("shop.left", "")
    assert tables["a.shop.goods"] == "", "it is another topic's"


def test_a_pattern_that_matches_nothing_is_said_once_with_topics_that_there_are(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, "shop", a_shop_goods=3, a_shop_orders=1)
    with capture_logs() as logged:
        for _ in range(3):
            scene.sources.look()
            scene.reporter.tick()
            scene.clock.advance(20)
    (said,) = [one for one in logged if one["event"] == "no-topic-matches"]
    assert (said["log_level"], said["pattern"], said["such_as"]) == (
        "warning",
        "shop",
        ["a.shop.goods", "a.shop.orders"],
    )
    status = newest_status(scene.lake)
    assert status is not None
    assert (status.topics, status.other_topics) == ((), ("a.shop.goods", "a.shop.orders"))


def test_states_of_topics_agree_everywhere_and_survive_a_restart(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3, a_shop_new=0)
    scene.sources.look()
    scene.fail(StorageError("the disk is full"))
    scene.reporter.tick()
    began = scene.clock.now_ms()
    status = newest_status(scene.lake)
    assert status is not None
    goods, new = status.topics
    assert (goods.topic, goods.table, goods.since_ms) == (GOODS, "shop.goods", began)
    assert (goods.standing.state, goods.standing.reason) == ("resting", "the disk is full")
    assert new.standing.state is TopicState.WAITING
    assert scene.health.troubles() == {GOODS: "resting: the disk is full"}
    assert not scene.health.why_unready()
    assert 'state="resting",table="shop.goods"' in scene.metrics.page().decode()
    again = Scene(tmp_path, generation=2, a_shop_goods=3)
    again.clock.advance(3600)
    again.sources.look()
    again.fail(StorageError("the disk is full"))
    again.reporter.tick()
    status = newest_status(scene.lake)
    assert status is not None
    assert [topic.since_ms for topic in status.topics] == [began], "the topic that went is gone"


def test_a_setting_that_changes_values_is_shown_for_a_day_over_restarts(tmp_path: Path) -> None:
    def shown(scene: Scene) -> list[str]:
        scene.reporter.tick()
        status = newest_status(scene.lake)
        assert status is not None
        names = [one.name for one in status.topics[0].suspect_settings]
        page = scene.metrics.page().decode()
        labels = f'setting="time.mode",table="shop.goods",topic="{GOODS}"'
        assert (labels in page) == bool(names)
        assert not scene.health.troubles()
        return names

    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    assert shown(scene) == []
    scene.clock.advance(3)
    scene.table().setting_warnings.look_at([report("time.mode: cuts values")])
    assert shown(scene) == ["time.mode"], "at once, not when the document is due"
    again = Scene(tmp_path, generation=2, a_shop_goods=3)
    again.clock.advance(3600)
    again.sources.look()
    assert shown(again) == ["time.mode"]
    again.clock.advance(86_400)
    assert shown(again) == []


def test_changes_that_are_missing_are_shown_for_a_day_over_restarts(tmp_path: Path) -> None:
    def shown(scene: Scene) -> MissingChanges | None:
        scene.reporter.tick()
        status = newest_status(scene.lake)
        assert status is not None
        return status.topics[0].missing_changes

    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    scene.table().create_or_open(TableSchema())
    assert shown(scene) is None
    scene.clock.advance(11)
    found = MissingChanges(2, scene.clock.now_ms())
    scene.driver.activity.add_missing_changes("shop.goods", found)
    assert shown(scene) == found
    again = Scene(tmp_path, generation=2, a_shop_goods=3)
    again.clock.advance(3600)
    again.sources.look()
    assert shown(again) == found
    again.clock.advance(86_400)
    assert shown(again) is None


def test_the_series_of_a_table_end_with_its_topic(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=0, a_shop_new=0)
    scene.sources.look()
    scene.table().create_or_open(TableSchema())
    assert 'table="shop.goods"' in scene.metrics.page().decode()
    del scene.broker.ends[GOODS]
    scene.sources.look()
    scene.reporter.tick()
    page = scene.metrics.page().decode()
    assert 'table="shop.goods"' not in page
    assert 'table="shop.new"' in page
    scene.broker.ends[GOODS] = 0
    scene.sources.look()
    assert scene.table().snapshot is not None, "a topic that comes back has its table again"


def test_a_table_has_as_many_series_as_the_document_says(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=0)
    scene.sources.look()
    scene.table().create_or_open(TableSchema())
    for once_done in (metric.LAST_VACUUM, metric.VERIFICATION_AGE):
        scene.metrics.since(once_done, 1.0, table="shop.goods")
    scene.reporter.tick()
    page = scene.metrics.page().decode().splitlines()
    assert len([line for line in page if 'table="shop.goods"' in line]) == series_per_table()


def test_a_connector_that_stands_still_is_distinguished_from_a_source_that_does(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, r"(a|b|c)\..*", a_shop_goods=1, b_shop_new=1, c_shop_things=0)
    now = scene.clock.now_ms()
    scene.broker.ends |= {"__debezium-heartbeat.a": 9, "__debezium-heartbeat.c": 9}
    scene.broker.times_ms = {
        GOODS: [now - 7_200_000],
        "__debezium-heartbeat.a": [now - 4_000],
        "b.shop.new": [now - 7_200_000],
        "__debezium-heartbeat.c": [now - 3_600_000],
    }
    scene.sources.look()
    page = scene.metrics.page().decode().splitlines()
    ages = [line for line in page if line.startswith("lakesplice_connector_event_age_seconds{")]
    assert [line.partition("{")[2].partition("}")[0] for line in ages] == [
        'connector="a",heartbeats="yes"', 'connector="b",heartbeats="no"',
        'connector="c",heartbeats="yes"',
    ]  # fmt: skip
    del scene.broker.ends["c.shop.things"]
    scene.sources.peek()
    assert 'connector="c"' not in scene.metrics.page().decode()


def test_a_record_from_the_future_hides_no_connector_that_stands_still(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=1)
    beats, began = "__debezium-heartbeat.a", scene.clock.now_ms()
    scene.broker.ends[beats] = 1
    scene.broker.times_ms[beats] = [began + 1_800_000]
    for silent_for, more in ((0, 0), (60, 1), (60, 0), (3_600, 0)):
        scene.clock.advance(silent_for)
        scene.broker.ends[beats] += more
        scene.sources.look()
    (seen,) = scene.driver.activity.connectors
    assert seen.wrote_ms == began + 60_000, "when its topic was last seen to grow"


def test_a_store_whose_clock_differs_is_shown(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=1)
    scene.sources.look()
    scene.reporter.tick()
    ahead = time.time() - scene.clock.now_ms() / 1000
    shown = scene.metrics.value(metric.CLOCK_DIFFERENCE)
    assert shown == scene.driver.activity.clock_difference == pytest.approx(ahead, abs=60)


@pytest.mark.parametrize(("address", "found"), [("", -7_200), ("s3://bucket/lake", 0)])
def test_a_jump_of_the_clock_is_found_where_the_store_has_the_same_clock(
    tmp_path: Path, address: str, found: float
) -> None:
    scene = Scene(tmp_path, a_shop_goods=1)
    settings = settings_of(tmp_path)
    if address:
        settings = settings.model_copy(update={"lake": LakeSettings(root=address)})
    driver = replace(scene.driver, lake=ClockedStore(tmp_path, scene.clock), settings=settings)
    reporter = StatusReporter(driver, [scene.sources], Health(60.0))
    scene.sources.look()

    def compared(seconds: float) -> float | None:
        scene.clock.jump_to(scene.clock.now_ms() + round(seconds * 1000))
        scene.clock.advance(120)
        reporter.tick()
        return driver.activity.clock_difference

    with capture_logs() as logged:
        assert [compared(0), compared(7_200), compared(0), compared(-7_200)] == [0, found, found, 0]
    said = [one["event"] for one in logged if one["event"].startswith("clocks")]
    assert said == (["clocks-differ", "clocks-agree"] if found else [])


def test_a_broker_that_was_away_is_asked_again_when_connectors_wrote(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=1)
    now = scene.clock.now_ms()
    scene.broker.times_ms[GOODS] = [now - 5_000]
    scene.sources.look()
    scene.broker.tells_no_times = True
    scene.sources.peek()
    scene.broker.tells_no_times = False
    scene.broker.times_ms[GOODS] = [now - 1_000]
    scene.sources.peek()
    (seen,) = scene.driver.activity.connectors
    assert (seen.name, seen.has_heartbeats, seen.wrote_ms) == ("a", False, now - 1_000)
