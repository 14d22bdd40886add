"""The service's own batches, with their tasks run in this process: what is committed, what is
passed over, and why the query has to start again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import structlog

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables, unborn_source
from lakesplice.config import Settings
from lakesplice.errors import FencedError, StorageError
from lakesplice.model.manifest import ParkCode
from lakesplice.spark.plan import BatchPlan, TaskError, TopicRead, TopicResult
from lakesplice.spark.topics import Topic
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.protocol.layout import generation_path
from lakesplice.table.protocol.ports import Store
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedTopic, run_plan
from tests.support.simulated import Source, driver_of, require_true

Offsets = dict[str, dict[int, int]]
DATABASES = ("one", "two", "three")


class Broker:
    """The topics of some sources, as a catalogue describes them."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.topics: dict[str, SimulatedTopic] = {one.topic.name: one.topic for one in sources}

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        found = [self.topics[name] for name in names if name in self.topics]
        return {t.name: Topic(t.name, t.topic_id, dict.fromkeys(t.ends, 0), t.ends) for t in found}


@dataclass
class Job:
    """Runs the tasks on the records of a batch; `deadly` topics kill it, others answer `errors`."""

    ends: Offsets = field(default_factory=dict)
    deadly: set[str] = field(default_factory=set)
    errors: dict[str, Exception] = field(default_factory=dict)
    runs: list[tuple[str, ...]] = field(default_factory=list)
    began: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event | None = None
    meanwhile: Callable[[], object] = lambda: None

    def __call__(self, frame: Any, plan: BatchPlan) -> dict[str, TopicResult]:
        broker, starts, ends = frame
        names = tuple(topic.topic for topic in plan.topics)
        self.runs.append(names)
        self.began.set()
        if self.may_end is not None:
            assert self.may_end.wait(60)
        if self.deadly & set(names):
            raise RuntimeError("\nTraceback\n  in a worker\nValueError: it died\n")
        records = [r for n in names for r in broker.topics[n].read(starts[n], ends[n])]
        results = run_plan(plan, records, RunCache())
        self.meanwhile()
        for name, error in self.errors.items():
            failed = TopicRead(name, (), (), 0.0, TaskError.of(error))
            results[name] = TopicResult(name, [failed], [])
        return results


class Scene:
    """A driver of a table per database, the runner of its batches, and what a query gives it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.sources = [Source(at, database=name) for at, name in enumerate(DATABASES)]
        self.broker, self.job = Broker(self.sources), Job()
        self.fails: Callable[[Call], bool] = lambda _: False
        self.lake = LocalStore(folder)
        kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": ".*"}
        given = {"kafka": kafka, "lake": {"root": str(folder)}, **settings}
        self.metrics = Metrics()
        self.clock = FixedClock()
        self.driver = Driver(
            Settings.model_validate(given),
            self.store(),
            self.clock,
            SeededEntropy(1),
            Generation(self.lake, 1),
            self.metrics,
            structlog.get_logger(),
        )
        self.tables = ServiceTables(self.driver)
        for source in self.sources:
            topic = source.topic
            unborn = unborn_source(topic.name, topic.topic_id, dict.fromkeys(topic.ends, 0))
            self.tables.take_up(topic.name, unborn)
        self.held_back: list[list[str]] = []
        self.hold: Callable[[], bool] = lambda: False
        catalogue: Any = self.broker
        self.runner = BatchRunner(
            self.driver,
            self.tables,
            catalogue,
            lambda: 2,
            self.hold_back,
            TableDrops(self.driver, self.tables, catalogue),
            run_job=self.job,
        )
        self.batches = 0

    def store(self) -> Store:
        return FaultyStore(self.lake, [Fault(self.is_to_fail, How.LOST)])

    def is_to_fail(self, call: Call) -> bool:
        return self.fails(call)

    def hold_back(self, tables: Sequence[ServiceTable]) -> bool:
        self.held_back.append([table.topic for table in tables])
        return self.hold()

    def put(self, *keys: int) -> None:
        for source in self.sources:
            for key in keys:
                source.topic.append(key % 2, source.put(key))

    def stand(self) -> Offsets:
        return {t.topic: t.next_offsets((0, 1)) for t in self.tables.of_topics()}

    @property
    def ends(self) -> Offsets:
        return {one.topic.name: one.topic.ends for one in self.sources}

    def batch(self, starts: Offsets | None = None) -> None:
        starts, ends = starts or self.stand(), self.ends
        frame: Any = (self.broker, starts, ends)
        self.runner(frame, self.batches, starts, ends)
        self.batches += 1

    def table(self, at: int) -> ServiceTable:
        table = self.tables.get(self.sources[at].topic.name)
        assert table is not None
        return table

    def require_true(self, *which: int) -> None:
        """These tables have all there is, the others nothing of the last batch."""
        for at, source in enumerate(self.sources):
            assert (self.table(at).next_offsets((0, 1)) == source.topic.ends) == (at in which)
            if self.table(at).snapshot is not None:
                require_true(source, self.table(at).store)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.put(1, 2, 3)
    return made


def test_a_batch_brings_every_table_to_its_ends_and_is_passed_over_when_repeated(
    scene: Scene,
) -> None:
    starts = scene.stand()
    scene.batch()
    scene.require_true(0, 1, 2)
    assert scene.job.runs == [tuple(sorted(scene.ends))]
    assert scene.held_back == [list(scene.ends)]
    versions = [table.version for table in scene.tables]
    assert scene.runner.restart is None
    scene.batch()
    assert len(scene.job.runs) == 1
    scene.batch(starts)
    assert [table.version for table in scene.tables] == versions
    assert scene.runner.restart == "refused-commit"


def test_only_what_moved_is_in_the_job(scene: Scene) -> None:
    scene.batch()
    moved = scene.sources[1]
    moved.topic.append(0, moved.put(2))
    scene.batch()
    assert scene.job.runs[1:] == [(moved.topic.name,)]
    scene.require_true(0, 1, 2)


def test_between_two_batches_a_runner_drains_and_goes_on_when_it_may(scene: Scene) -> None:
    for seconds in (0, 0.1, -1):
        assert scene.runner.drain(seconds)
    scene.batch()
    assert scene.job.runs == []
    scene.runner.draining.clear()
    scene.batch()
    scene.require_true(0, 1, 2)


def test_a_batch_that_runs_is_waited_for_and_none_begins_after_it(scene: Scene) -> None:
    scene.job.may_end = threading.Event()
    batch = threading.Thread(target=scene.batch)
    batch.start()
    assert scene.job.began.wait(60)
    assert not scene.runner.drain(0)
    scene.job.may_end.set()
    assert scene.runner.drain(60)
    batch.join(60)
    scene.require_true(0, 1, 2)
    scene.put(4)
    scene.batch()
    assert len(scene.job.runs) == 1


def test_a_table_that_stands_elsewhere_is_refused_and_the_others_go_on(scene: Scene) -> None:
    scene.batch()
    scene.put(4, 5)
    starts = scene.stand()
    starts[scene.sources[1].topic.name][0] -= 1
    scene.batch(starts)
    scene.require_true(0, 2)
    assert scene.sources[1].topic.name not in scene.job.runs[-1]
    assert scene.table(1).refused
    assert scene.runner.restart == "refused-commit"
    scene.batch()
    scene.require_true(0, 2)
    scene.table(1).refused = False
    scene.batch()
    scene.require_true(0, 1, 2)


def test_a_topic_that_was_created_again_parks_its_table(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    scene.sources[2].topic.topic_id = "another"
    scene.batch()
    scene.require_true(0, 1)
    parked = scene.table(2).parked
    assert parked is not None
    assert parked.code is ParkCode.TOPIC_RECREATED
    assert scene.runner.restart == "redirect"


def test_the_table_that_kills_the_job_is_found_and_parked_alone(scene: Scene) -> None:
    scene.job.deadly = {scene.sources[1].topic.name}
    scene.batch()
    scene.require_true(0, 2)
    parked = scene.table(1).parked
    assert parked is not None
    assert parked.code is ParkCode.JOB_DIED
    assert parked.detail.endswith("ValueError: it died")
    assert scene.runner.restart == "redirect"


def test_a_job_that_dies_while_the_query_ends_is_blamed_on_nobody(scene: Scene) -> None:
    scene.job.deadly = set(scene.ends)
    scene.job.may_end = threading.Event()
    failed: list[BaseException] = []

    def batch() -> None:
        try:
            scene.batch()
        except RuntimeError as error:
            failed.append(error)

    thread = threading.Thread(target=batch)
    thread.start()
    assert scene.job.began.wait(60)
    assert not scene.runner.drain(0)
    scene.job.may_end.set()
    thread.join(60)
    assert len(failed) == 1
    assert len(scene.job.runs) == 1
    assert all(table.parked is None for table in scene.tables)


def test_tables_whose_schema_grows_run_again_within_the_batch(scene: Scene) -> None:
    scene.batch()
    grown = scene.sources[0]
    grown.add_column("added", 5)
    grown.topic.append(0, grown.put(9))
    scene.put(4)
    scene.batch()
    scene.require_true(0, 1, 2)
    assert scene.job.runs[2:] == [(grown.topic.name,)]
    assert "added" in scene.table(0).schema.names


@pytest.mark.parametrize("error", [StorageError("full", path="x"), ValueError("what?")])
def test_a_table_whose_task_fails_rests_and_the_others_go_on(
    scene: Scene, error: Exception
) -> None:
    scene.job.errors = {scene.sources[0].topic.name: error}
    scene.batch()
    scene.require_true(1, 2)
    assert scene.table(0).rests
    assert scene.table(0).refused
    assert scene.table(0).parked is None
    scene.job.errors = {}
    scene.table(0).refused = False
    scene.batch()
    scene.require_true(0, 1, 2)
    assert not scene.table(0).is_failing


def test_a_commit_that_fails_is_one_tables_own_trouble(scene: Scene) -> None:
    name = scene.table(1).name.path
    scene.fails = lambda call: call.method == "put_new" and call.path.startswith(name)
    scene.batch()
    scene.require_true(0, 2)
    assert scene.table(1).rests


def test_a_driver_that_was_replaced_stops(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    assert scene.lake.put_new(generation_path(2), b"")
    with pytest.raises(FencedError):
        scene.batch()
    assert isinstance(scene.runner.fatal, FencedError)
    assert len(scene.job.runs) == 1


def test_a_driver_that_is_replaced_during_a_batch_stops(scene: Scene) -> None:
    scene.batch()
    scene.put(4)
    first = scene.sources[0]
    successor = driver_of(first, scene.lake, generation=2, seed=7)
    scene.job.meanwhile = successor.batch
    with pytest.raises(FencedError):
        scene.batch()
    assert isinstance(scene.runner.fatal, FencedError)
    require_true(first, successor.table.store)


def test_a_table_that_another_writer_moved_is_read_again_at_once_but_only_once(
    scene: Scene,
) -> None:
    first = scene.sources[0]
    scene.batch()
    for meets in range(2):
        scene.put(4)
        scene.job.meanwhile = driver_of(first, scene.lake, seed=7 + meets).batch
        scene.runner.restart = None
        scene.table(0).refused = False
        scene.batch()
        scene.require_true(0, 1, 2)
        assert scene.table(0).refused
        assert scene.table(0).rests == (meets == 1)
        assert scene.runner.restart == (None if meets else "refused-commit")


def test_a_table_that_parks_for_what_its_batch_brought_is_left_out_by_the_next_query(
    scene: Scene,
) -> None:
    scene.batch()
    spoilt = scene.sources[1]
    unreadable = [event._replace(value=b"{") for key in range(40) for event in spoilt.put(key)]
    spoilt.topic.append(0, unreadable)
    scene.batch()
    parked = scene.table(1).parked
    assert parked is not None
    assert parked.code is ParkCode.DEAD_LETTERS
    assert scene.runner.restart == "redirect"
    scene.require_true(0, 2)


def test_a_batch_that_was_held_back_until_the_query_ended_is_dropped_whole(scene: Scene) -> None:
    def until_the_end() -> bool:
        scene.runner.draining.set()
        return True

    scene.hold = until_the_end
    scene.batch()
    assert scene.job.runs == []
    scene.require_true()
    scene.runner.draining.clear()
    scene.hold = lambda: True
    scene.batch()
    scene.require_true(0, 1, 2)
