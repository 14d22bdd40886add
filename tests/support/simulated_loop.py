"""The whole service except Spark and Kafka, in one thread: the loop, its batches and its compactor.

    service = SimulatedService(folder)
    service.run([lambda: service.put(0, 1), service.break_query])

Each time the loop waits, one step of the scenario happens and the clock advances. When no steps are
left, the loop runs on for a while and is then stopped. If a driver crashes, another one takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.loop import QueryLoop
from lakesplice.apps.service.sources.group_offsets import GroupOffsets
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.config import Settings
from lakesplice.errors import CredentialsRefused, RetryableError, SourceUnavailable, StorageError
from lakesplice.model.offsets import Offset
from lakesplice.spark.jobs.rewrites import RewriteTask
from lakesplice.spark.kafka.consumer_group import GroupOffset, TopicPartition
from lakesplice.spark.kafka.query import QueryPlan
from lakesplice.spark.kafka.topics import Topic
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.layout import generation_path
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.compact import Compacted, compact_files
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Crash, FaultyStore
from tests.support.simulated import Source, driver_of, require_true, rows_of
from tests.support.simulated_service import Broker, Job
from tests.support.traps import Trap

Step = Callable[[], object]

OFFSETS_PER_BATCH_MAX = 4
DELTAS_MAX = 3
TICK_SECONDS = 4.0
# Longer than the longest pause after failures, and several looks at the broker.
QUIET_TICKS = 60
TICKS_MAX = 1000
TURNS_MAX = 100


class LookedAtBroker(Broker):
    """A broker that can be away, and lets the test act just after it has answered."""

    def __init__(self, sources: Iterable[Source]) -> None:
        super().__init__(sources)
        self.away = False
        self.refuses = False
        self.unreadable: set[str] = set()
        self.answered: Step = lambda: None
        self.listed: Step = lambda: None

    def matching(self, _pattern: str) -> list[str]:
        if self.away:
            raise SourceUnavailable("the broker does not answer")
        if self.refuses:
            raise CredentialsRefused("Kafka refuses the connection")
        listed, self.listed = self.listed, lambda: None
        listed()
        return sorted(self.topics)

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        if self.away:
            raise SourceUnavailable("the broker does not answer")
        found = super().describe(names)
        answered, self.answered = self.answered, lambda: None
        answered()
        return {
            name: replace(topic, is_readable=name not in self.unreadable)
            for name, topic in found.items()
        }

    def newest_ms(self, _topics: Iterable[Topic]) -> dict[str, int]:
        return {}

    def since_in_each(
        self, topics: Iterable[Topic], _moment_ms: int
    ) -> dict[str, dict[int, Offset]]:
        return {topic.name: dict(topic.latest) for topic in topics}


class SimulatedGroup:
    """A consumer group; `refusal` is why the broker refuses it, empty if it doesn't."""

    def __init__(self) -> None:
        self.name = "the-group"
        self.entries: dict[TopicPartition, GroupOffset] = {}
        self.refusal = ""

    def set(self, topic: str, at: int, offset: int) -> None:
        """What Kafka's own tools do."""
        self.entries[topic, at] = GroupOffset(Offset(offset), is_ours=False)

    def offsets(self) -> dict[TopicPartition, GroupOffset]:
        self._check()
        return dict(self.entries)

    def write(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._check()
        for where, offset in offsets.items():
            self.entries[where] = GroupOffset(offset, is_ours=True)

    def _check(self) -> None:
        if self.refusal:
            raise SourceUnavailable(self.refusal)


class SimulatedQuery:
    """A query of the simulated service: a batch is run when it is waited for. `is_stopped` once it
    was told to stop, `is_drained` if no batch could begin any more by then.
    """

    def __init__(self, service: SimulatedService, plan: QueryPlan, runner: BatchRunner) -> None:
        self._service = service
        self.runner = runner
        self._once = plan.trigger_seconds is None
        self._most = plan.offsets_per_batch_max
        self._at = {topic: dict(offsets) for topic, offsets in plan.starts.items()}
        self._batches = 0
        self.topics = frozenset(plan.starts)
        self.is_stopped = self.is_drained = False

    def wait(self, seconds: float) -> bool:
        """Run a batch, if there is anything to read."""
        service = self._service
        service.tick(seconds)
        if service.query_fails:
            service.query_fails = False
            raise RetryableError("the streaming query failed", cause="told to")
        if self.run_batch():
            return False
        return self._once

    def run_batch(self) -> bool:
        """Run a batch; False if there is nothing to read."""
        service = self._service
        ends = self._ends()
        if ends != self._at:
            frame: Any = (service.broker, self._at, ends)
            try:
                self.runner(frame, self._batches, self._at, ends)
            except AssertionError:
                raise
            except Exception as error:
                raise RetryableError("the streaming query failed", cause=repr(error)) from error
            self._at, self._batches = ends, self._batches + 1
            return True
        return False

    def stop(self) -> None:
        """End; it may fail once if the test says so."""
        self.is_stopped, self.is_drained = True, self.runner._ending.is_set()
        if self._service.stop_fails:
            self._service.stop_fails = False
            raise RetryableError("the query did not stop", cause="told to")

    def _ends(self) -> dict[str, dict[int, Offset]]:
        """So many records of each partition; or, as Spark limits a batch, so many in all, in
        proportion to what each partition has, and one at least.
        """
        topics = self._service.broker.topics
        if not self._service.limits_whole_batches:
            return {
                topic: {
                    n: Offset(min(topics[topic].ends[n], here + self._most))
                    for n, here in at.items()
                }
                for topic, at in self._at.items()
            }
        ends = {topic: {n: topics[topic].ends[n] for n in at} for topic, at in self._at.items()}
        sizes = {(t, n): end - self._at[t][n] for t, of in ends.items() for n, end in of.items()}
        total = sum(sizes.values())
        if total <= self._most:
            return ends
        return {
            topic: {
                number: Offset(
                    self._at[topic][number] + min(size, max(1, self._most * size // total))
                )
                if (size := sizes[topic, number])
                else end
                for number, end in of.items()
            }
            for topic, of in ends.items()
        }


class _Stopping(threading.Event):
    """Waiting takes no time but the simulated clock's."""

    def __init__(self, tick: Callable[[float], None]) -> None:
        super().__init__()
        self._tick = tick
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        self._tick(timeout or 0.0)
        return self.is_set()


class SimulatedService:
    """One table for each database, as whatever driver is alive brings them on; `tables` are the
    settings of that name.
    """

    def __init__(
        self,
        folder: Path,
        databases: Sequence[str] = ("one", "two", "three"),
        tables: Sequence[Mapping[str, Any]] = (),
        group: SimulatedGroup | None = None,
    ) -> None:
        self.group = group
        self.folder, self.lake = folder, LocalStore(folder)
        self.sources = [Source(at, database=name) for at, name in enumerate(databases)]
        self.broker, self.job, self.trap = LookedAtBroker(self.sources), Job(), Trap()
        self.clock = FixedClock()
        self._tables_settings = list(tables)
        self.query_fails = self.stop_fails = self.limits_whole_batches = False
        self.lives = self.writers = self.ticks = 0
        self.queries: list[SimulatedQuery]
        self._steps: list[Step] = []
        self._quiet = 0
        self.metrics: Metrics
        self.start_anew()

    def start_anew(self) -> None:
        """Let another driver take over; what the one before held is lost."""
        self.lives += 1
        self.queries = []
        self.trap.disarm()
        assert self.lake.put_new(generation_path(self.lives), b"")
        kafka = {
            "bootstrap_servers": "127.0.0.1:1",
            "topic_pattern": ".*",
            "offsets_per_batch_max": OFFSETS_PER_BATCH_MAX,
            "topic_poll_seconds": 2 * TICK_SECONDS,
        }
        compaction = {"deltas_max": DELTAS_MAX, "back_pressure_deltas": 8, "ratio_max": 100}
        settings = Settings.model_validate(
            {
                "kafka": kafka,
                "lake": {"root": str(self.folder)},
                "compaction": compaction,
                "tables": self._tables_settings,
            }
        )
        self.metrics = Metrics()
        driver = self.driver = Driver(
            settings,
            FaultyStore(self.lake, self.trap.faults()),
            self.clock,
            SeededEntropy(self.lives),
            Generation(self.lake, self.lives),
            self.metrics,
            structlog.get_logger(),
        )
        catalogue: Any = self.broker
        session: Any = SimpleNamespace(
            sparkContext=SimpleNamespace(
                defaultParallelism=2, setLocalProperty=lambda _name, _value: None
            )
        )
        self.tables = ServiceTables(driver)
        self.compactor = Compactor(driver, self.tables, session, _rewrite)
        # Upkeep has tests of its own; it needs Spark, and a store that never fails.
        no_upkeep: Any = SimpleNamespace(is_due=lambda _table: False)
        self.compactor._upkeep = no_upkeep
        drops, sources = (
            TableDrops(driver, self.tables, catalogue),
            TopicSelection(driver, self.tables, catalogue),
        )
        runners = [
            BatchRunner(
                driver, self.tables, catalogue, lambda: 2, self._hold_back, drops, run_job=self.job
            )
            for _ in range(2)
        ]
        self.health = Health(120.0)
        self.stopping = _Stopping(self.tick)
        self.reporter = StatusReporter(driver, self.tables, sources, self.health)
        self.loop = QueryLoop(
            driver,
            session,
            sources,
            (runners[0], runners[1]),
            self.health,
            self.stopping,
            self.tables,
            drops,
            self.reporter,
            self._open_query,
            group=None if self.group is None else GroupOffsets(driver, self.tables, self.group),
        )

    def run(self, steps: Sequence[Step] = (), *, once: bool = False) -> None:
        """Run the loop while these things happen and a while longer, and end it."""
        self._steps, self._quiet, self.ticks = list(steps), QUIET_TICKS, 0
        self.stopping.clear()
        while not self.stopping.is_set():
            try:
                self.loop.run(lambda: None, once=once)
                break
            except Crash:
                self.start_anew()
        self.loop.drain(0)
        self._compact()

    def tick(self, _seconds: float) -> None:
        """Let the next thing happen."""
        self.ticks += 1
        assert self.ticks < TICKS_MAX, "the loop does not end"
        self.clock.advance(TICK_SECONDS)
        if self._steps:
            self._steps.pop(0)()
            return
        self.trap.disarm()
        self._quiet -= 1
        if self._quiet <= 0:
            self.stopping.set()

    # What can happen

    def put(self, at: int, *keys: int) -> None:
        """A source changes rows."""
        source = self.sources[at]
        for key in keys:
            source.topic.append(key % 2, source.put(key))

    def run_a_batch(self) -> None:
        """The query that was started last runs a batch, beside whatever the loop does."""
        self.queries[-1].run_batch()

    def break_query(self) -> None:
        """The next wait for a query finds it failed."""
        self.query_fails = True

    def break_stop(self) -> None:
        """The query fails, and then doesn't stop."""
        self.query_fails = self.stop_fails = True

    def fail_tasks_of(self, at: int) -> None:
        """From now on the tasks of a table fail, so that it rests."""
        self.job.errors = {self.sources[at].topic.name: StorageError("the disk is full")}

    def mend_tasks(self) -> None:
        """No task fails any more."""
        self.job.errors = {}

    def fence_during_a_job(self, at: int) -> None:
        """A driver that this one hasn't heard of commits to a table while a batch's job runs."""

        def commit() -> None:
            self.job.meanwhile = lambda: None
            seed, newer = 1000, self.lives + 1
            driver_of(
                self.sources[at], self.lake, generation=newer, seed=seed, clock=self.clock
            ).batch()

        self.job.meanwhile = commit

    def broker_goes(self) -> None:
        """The broker doesn't answer, until it comes back."""
        self.broker.away = True

    def broker_comes(self) -> None:
        """The broker answers again."""
        self.broker.away = False

    def write_beside(self, at: int) -> None:
        """Somebody else brings a table further: the running query then stands elsewhere."""
        self.writers += 1
        seed = 1000 + self.writers
        driver_of(
            self.sources[at], self.lake, generation=self.lives, seed=seed, clock=self.clock
        ).batch()

    def write_beside_during_a_job(self, at: int) -> None:
        """The same while a batch's job runs."""

        def write() -> None:
            self.job.meanwhile = lambda: None
            self.write_beside(at)

        self.job.meanwhile = write

    def write_beside_once_broker_answered(self, at: int) -> None:
        """The same just after the broker was asked."""
        self.broker.answered = partial(self.write_beside, at)

    # What must be so

    def table(self, at: int) -> ServiceTable:
        """The table of a source, as the living driver holds it."""
        table = self.tables.get(self.sources[at].topic.name)
        assert table is not None
        return table

    def require_all_arrived(self) -> None:
        """Each table has all that was sent; each view is true, and nothing due is left waiting."""
        for at, source in enumerate(self.sources):
            table = self.table(at)
            assert table.parked is None, table.parked
            assert table.next_offsets(source.topic.ends) == source.topic.ends
            if table.snapshot is None:
                continue
            require_true(source, table.store)
            assert len(table.manifest.deltas) < DELTAS_MAX
            if not table.manifest.deltas:
                assert rows_of(table.store, View.READ_OPTIMISED) == rows_of(table.store)

    def _hold_back(self, tables: Sequence[ServiceTable]) -> bool:
        """Compaction's threads have had time since the last batch."""
        self._compact()
        return self.compactor.hold_back(tables)

    def _compact(self) -> None:
        """What a thread of the compactor does, without its pauses."""
        for _ in range(TURNS_MAX):
            if not self.compactor._turn():
                return
        raise AssertionError("compaction does not end")

    def _open_query(self, _session: Any, plan: QueryPlan, runner: BatchRunner) -> SimulatedQuery:
        query = SimulatedQuery(self, plan, runner)
        beside = [other for other in self.queries if not other.is_stopped]
        assert all(other.runner is not runner for other in beside), "a lane has one query at a time"
        assert not any(other.topics & query.topics for other in beside), "a topic is read twice"
        self.queries.append(query)
        return query


def _rewrite(_session: Any, tasks: Sequence[RewriteTask]) -> list[Compacted]:
    return [
        compact_files(one.store, one.manifest, one.paths, one.rewriter, one.entropy)
        for one in tasks
    ]
