"""The service without Spark and Kafka: its own batches and tables over simulated topics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.tables import ServiceTable, ServiceTables, initial_source
from lakesplice.config import Settings
from lakesplice.errors import SourceUnavailable
from lakesplice.model.offsets import Offset
from lakesplice.spark.jobs.batch_plan import BatchPlan, TaskError, TopicRead, TopicResult
from lakesplice.spark.kafka.topics import Topic
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.protocol.ports import Store
from lakesplice.telemetry.registry import Metrics
from lakesplice.telemetry.tracing import Tracing
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedTopic, run_plan
from tests.support.simulated import Source, require_true

Offsets = dict[str, dict[int, Offset]]
DATABASES = ("one", "two", "three")


class Broker:
    """The topics of some sources, as a catalogue describes them."""

    def __init__(self, sources: Iterable[Source]) -> None:
        self.topics: dict[str, SimulatedTopic] = {one.topic.name: one.topic for one in sources}

    def describe(
        self, names: Iterable[str], *, without_leader: Collection[str] = ()
    ) -> dict[str, Topic]:
        found = [self.topics[name] for name in names if name in self.topics]
        return {t.name: Topic(t.name, t.topic_id, t.starts, t.ends) for t in found}


@dataclass
class Job:
    """Runs the tasks on the records of a batch; `deadly` topics kill it, others answer `errors`.
    Kafka's refusal of one topic's records kills every job of the batch, whatever its plan:
    `kafka_says` any batch, `refusals` those that have records of the topic.
    """

    ends: Offsets = field(default_factory=dict)
    deadly: set[str] = field(default_factory=set)
    errors: dict[str, Exception] = field(default_factory=dict)
    kafka_says: str = ""
    refusals: dict[str, str] = field(default_factory=dict)
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
        if self.kafka_says:
            raise SourceUnavailable("no records", cause=self.kafka_says)
        for name, words in self.refusals.items():
            if starts.get(name) != ends.get(name):
                raise SourceUnavailable("no records", cause=words)
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

    def __init__(
        self,
        folder: Path,
        tracing: Tracing | None = None,
        schema_topics: SchemaTopics | None = None,
        **settings: Any,
    ) -> None:
        self.sources = [Source(at, database=name) for at, name in enumerate(DATABASES)]
        self.broker, self.job = Broker(self.sources), Job()
        self.fails: Callable[[Call], bool] = lambda _: False
        self.lake = LocalStore(folder)
        kafka = {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": ".*"}
        given = {"kafka": kafka, "lake": {"root": str(folder)}, **settings}
        self.metrics = Metrics()
        self.clock = FixedClock()
        self.driver = Driver(
            settings=Settings.model_validate(given),
            lake=self.store(),
            clock=self.clock,
            entropy=SeededEntropy(1),
            generation=Generation(self.lake, 1),
            metrics=self.metrics,
            log=structlog.get_logger(),
            tracing=tracing or Tracing(),
            schema_topics=schema_topics,
        )
        self.tables = ServiceTables(self.driver)
        for source in self.sources:
            topic = source.topic
            initial = initial_source(
                topic.name, topic.topic_id, dict.fromkeys(topic.ends, Offset(0))
            )
            self.tables.open_topic(topic.name, initial)
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
