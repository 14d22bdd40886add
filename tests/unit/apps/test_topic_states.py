"""Each matching topic has a state with a reason; a resting table isn't written to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.table_failures import TableFailures
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import CorruptFileError, LakespliceError, SourceUnavailable, StorageError
from lakesplice.model.driver_status import TopicCondition, TopicState
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Ordering, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.spark.jobs.batch_plan import TaskError
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.document import series_per_table
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from tests.support.service_settings import settings_of
from tests.unit.apps.test_schema_topics import told_late
from tests.unit.apps.test_setting_warnings import report

GOODS = "a.shop.goods"


@dataclass
class Broker:
    """Topics of one partition, by name their next offset; answers as `TopicCatalogue`.

    `times_ms` says when the records of a topic were written; those of others, in 1970.
    """

    ends: dict[str, int] = field(default_factory=dict)
    times_ms: dict[str, list[int]] = field(default_factory=dict)
    tells_no_times: bool = False

    @property
    def catalogue(self) -> TopicCatalogue:
        """The broker as what it answers as."""
        return cast(TopicCatalogue, self)

    def matching(self, pattern: str) -> list[str]:
        return sorted(name for name in self.ends if re.fullmatch(pattern, name))

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        return {
            name: Topic(name, f"id of {name}", {0: Offset(0)}, {0: Offset(self.ends[name])})
            for name in names
            if name in self.ends
        }

    def newest_ms(self, topics: Iterable[Topic]) -> dict[str, int]:
        if self.tells_no_times:
            raise SourceUnavailable("the broker does not answer")
        return {t.name: self.times_ms[t.name][-1] for t in topics if t.name in self.times_ms}

    def since_in_each(
        self, topics: Iterable[Topic], moment_ms: int
    ) -> dict[str, dict[int, Offset]]:
        written = {t.name: self.times_ms.get(t.name, [0] * self.ends[t.name]) for t in topics}
        return {
            name: {0: Offset(sum(at < moment_ms for at in times))}
            for name, times in written.items()
        }


class Scene:
    """A driver without Spark over a lake on the disk, and the broker that it asks."""

    def __init__(
        self,
        root: Path,
        pattern: str = r"a\..*",
        generation: int = 1,
        schema_topics: SchemaTopics | None = None,
        **topics: int,
    ) -> None:
        settings = settings_of(
            root,
            topic_pattern=pattern,
            tables=[
                {"match": "shop.left", "read": False},
                {"match": "shop.long", "to": f"shop.{'x' * 256}"},
                {"match": "shop.ignored", "schema_changes": {"create_table": "ignore"}},
                {"match": "other.goods", "to": "shop.goods"},
            ],
        )
        self.root, self.clock, self.metrics = root, FixedClock(), Metrics()
        self.lake = LocalStore(root)
        self.broker = Broker({name.replace("_", "."): end for name, end in topics.items()})
        self.driver = Driver(
            settings,
            self.lake,
            self.clock,
            SeededEntropy(1),
            Generation(self.lake, generation),
            self.metrics,
            structlog.get_logger(),
            schema_topics=schema_topics,
        )
        self.tables = ServiceTables(self.driver)
        self.sources = TopicSelection(self.driver, self.tables, self.broker.catalogue)
        self.failures = TableFailures(self.driver)
        self.health = Health(60.0)
        self.reporter = StatusReporter(self.driver, self.tables, self.sources, self.health)

    def standing(self, topic: str = GOODS) -> TopicCondition:
        return self.sources.conditions()[topic]

    def table(self, topic: str = GOODS) -> ServiceTable:
        table = self.tables.get(topic)
        assert table is not None
        return table

    def fail(self, error: Exception) -> None:
        self.failures.failed(self.table(), TaskError.of(error))

    def files(self) -> set[Path]:
        return {path for path in self.root.rglob("*") if path.is_file()}


def test_how_fresh_a_table_is_is_known_from_its_first_batch_on(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=2, a_shop_new=0)
    ago = [scene.clock.now_ms() - minutes * 60_000 for minutes in (10, 2)]
    scene.broker.times_ms[GOODS] = ago
    scene.sources.look()
    labels = {"table": "shop.goods", "view": metric.REAL_TIME}
    assert scene.table().freshness().real_time is None, "there is nothing to read"
    assert scene.metrics.value(metric.FRESHNESS, **labels) is None
    assert scene.reporter.status(running=True).topics == ()
    scene.table().be_born(TableSchema())
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
    scene.table().be_born(TableSchema())
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
    scene.table("a.other.goods").be_born(TableSchema())
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


def test_a_table_whose_log_takes_no_file_rests_on_and_writes_none(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    scene.fail(StorageError("the disk is full"))
    in_the_way = tmp_path / "shop" / "goods"
    in_the_way.parent.mkdir()
    in_the_way.write_text("no folder")
    files = scene.files()
    for _ in range(600):
        scene.clock.advance(0.5)
        assert not scene.sources.any_due()
        assert not scene.sources.look().starts, "nor is it read, so that nothing else is written"
        assert scene.files() == files
    assert scene.standing().state is TopicState.RESTING
    assert "shop/goods" in scene.standing().reason or "folder" in scene.standing().reason
    in_the_way.unlink()
    scene.clock.advance(60)
    assert scene.sources.any_due()
    assert scene.sources.look().starts == {GOODS: {0: 0}}
    assert not scene.sources.any_due(), "it is read again: nothing is to be restarted for it"
    assert not scene.files() - {tmp_path / "_lakesplice" / "tmp"}


def test_a_table_that_cannot_be_parked_yet_reads_nothing_on_and_is_parked_once_it_can(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    in_the_way = tmp_path / "shop"
    in_the_way.write_text("no folder")
    scene.table().park(ParkReason(ParkCode.NO_KEY, "it has no key", GOODS))
    scene.table().forget_failures()
    assert (scene.standing().state, scene.standing().code) == (TopicState.PARKED, "no-key")
    assert "it has no key" in scene.standing().reason
    assert "can't be written" in scene.standing().reason
    for _ in range(100):
        scene.clock.advance(1)
        assert not scene.sources.any_due()
        assert not scene.sources.look().starts
    in_the_way.unlink()
    scene.clock.advance(60)
    assert not scene.sources.any_due(), "no query is to be restarted for a table that is parked"
    (parked,) = open_snapshot(scene.lake.within("shop/goods")).manifest.parkings
    assert parked.detail == scene.standing().reason == "it has no key"
    assert not scene.sources.look().starts


def test_a_drop_that_cannot_be_followed_yet_lets_its_table_rest(tmp_path: Path) -> None:
    told = told_late("DROP TABLE x")
    told.tell("CREATE TABLE x (id int)", 25)
    told.look()
    scene = Scene(tmp_path, r"db\..*", schema_topics=told.topics)
    scene.broker.ends["db.shop.x"] = 3
    scene.sources.look()
    table = scene.table("db.shop.x")
    table.be_born(TableSchema())
    reached = {0: PartitionState(Offset(2), Position.of(0, 3, 30, 0, 1))}
    source = replace(table.source, ordering=Ordering.BINLOG, partitions=reached)
    table.commit(Redirect(table.generation, table.version, source))
    drops = TableDrops(scene.driver, scene.tables, scene.broker.catalogue)
    assert drops.any_due()
    temporary = tmp_path / "_lakesplice" / "tmp"
    temporary.rmdir()
    temporary.write_text("no folder: nothing can be put into the lake")
    assert drops.handle_all(), "what could be read is asked again"
    assert table.rests
    assert not drops.any_due()
    assert scene.sources.look().starts == {}
    temporary.unlink()
    scene.clock.advance(60)
    assert drops.any_due()
    assert not drops.handle_all()
    assert not drops.any_due()
    assert scene.standing("db.shop.x").state is TopicState.RUNNING


def test_an_unreadable_log_is_opened_again_once_it_is_repaired(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    damaged = tmp_path / "shop" / "goods" / "_delta_log" / f"{0:020d}.json"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    with capture_logs() as logged:
        assert not scene.sources.look().starts
        scene.clock.advance(1)
        assert not scene.sources.any_due()
    assert [one["event"] for one in logged] == ["table-not-opened"], "said once"
    assert scene.standing().state is TopicState.RESTING
    damaged.unlink()
    assert not scene.sources.any_due(), "its pause isn't over"
    scene.clock.advance(60)
    assert scene.sources.any_due()
    assert scene.sources.look().starts == {GOODS: {0: 0}}


def test_failures_park_or_rest_a_table_by_what_they_are(tmp_path: Path) -> None:
    def after(*errors: Exception) -> TopicCondition:
        scene = Scene(tmp_path / str(len(list(tmp_path.iterdir()))), a_shop_goods=3)
        scene.root.mkdir()
        scene.sources.look()
        for error in errors:
            scene.fail(error)
        return scene.standing()

    away = StorageError("away")
    assert after(*[away] * 9).state is TopicState.RESTING
    assert after(CorruptFileError("damaged")).code == ParkCode.CORRUPT
    defect = LakespliceError("no idea")
    assert after(defect, away, defect).state is TopicState.RESTING
    assert after(defect, away, defect, ValueError()).code == ParkCode.JOB_DIED


def test_a_lost_race_is_followed_at_once_and_the_next_after_a_pause(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=3)
    scene.sources.look()
    assert scene.failures.overtaken(scene.table(), "offsets")
    assert not scene.table().rests
    assert not scene.failures.overtaken(scene.table(), "offsets")
    assert scene.standing().state is TopicState.RESTING
    scene.failures.went_well(scene.table())
    assert scene.failures.overtaken(scene.table(), "offsets")


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


def test_the_series_of_a_table_end_with_its_topic(tmp_path: Path) -> None:
    scene = Scene(tmp_path, a_shop_goods=0, a_shop_new=0)
    scene.sources.look()
    scene.table().be_born(TableSchema())
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
    scene.table().be_born(TableSchema())
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
