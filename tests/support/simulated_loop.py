"""The whole service except Spark and Kafka, in one thread: the loop, its batches and its compactor.

    service = SimulatedService(folder)
    service.run([lambda: service.put(0, 1), service.break_query])

Each time the loop waits, one step of the scenario happens and the clock advances. When no steps are
left, the loop runs on for a while and is then stopped. If a driver crashes, another one takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import structlog

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.loop import QueryLoop
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.sources.group_offsets import GroupOffsets
from lakesplice.apps.service.sources.topic_selection import TopicSelection
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import AllTables, ServiceTable, ServiceTables
from lakesplice.apps.service.topic_reading import TopicReading
from lakesplice.apps.service.upkeep.compactor import Compactor
from lakesplice.config import Settings
from lakesplice.errors import StorageError
from lakesplice.spark.jobs.rewrites import RewriteTask
from lakesplice.spark.kafka.query import QueryPlan
from lakesplice.storage.local import LocalStore
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.layout import generation_path
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.compact import Compacted, compact_files
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.registry import Metrics
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Crash, FaultyStore
from tests.support.simulated import SMALL, Source, driver_of, require_true, rows_of
from tests.support.simulated_kafka import LookedAtBroker, SimulatedGroup, Step
from tests.support.simulated_query import SimulatedQuery
from tests.support.simulated_service import Job
from tests.support.traps import Trap

OFFSETS_PER_BATCH_MAX = 4
DELTAS_MAX = 3
TICK_SECONDS = 4.0
# Longer than the longest pause after failures, and several looks at the broker.
QUIET_TICKS = 60
TICKS_MAX = 1000
TURNS_MAX = 100


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
            "topic_pattern": r"shop\..*",
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
            schema_topics=self.schema_topics(),
        )
        session: Any = SimpleNamespace(
            sparkContext=SimpleNamespace(
                defaultParallelism=2, setLocalProperty=lambda _name, _value: None
            )
        )
        self.current = ServiceTables(driver)
        kinds, its = [(driver, self.current)], driver.for_histories(self.schema_topics())
        if its is not None:
            kinds.append((its, ServiceTables(its, others=self.current)))
        self.tables = AllTables([held for _, held in kinds])
        self.compactor = Compactor(driver, self.tables, session, _rewrite)
        # Upkeep has tests of its own; it needs Spark, and a store that never fails.
        no_upkeep: Any = SimpleNamespace(is_due=lambda _table: False)
        self.compactor._upkeep = no_upkeep
        self.health = Health(120.0)
        self.stopping = _Stopping(self.tick)
        self.readings = [self._reading(its, held, session) for its, held in kinds]
        self.reporter = StatusReporter(driver, [one.sources for one in self.readings], self.health)
        self.loop = QueryLoop(
            driver,
            session,
            self.readings,
            self.health,
            self.stopping,
            self.reporter,
            group=None if self.group is None else GroupOffsets(driver, self.tables, self.group),
        )

    def schema_topics(self) -> SchemaTopics | None:
        """What reads topics of schema changes, anew for each kind of tables; there are none."""
        return None

    def _reading(self, driver: Driver, tables: ServiceTables, session: Any) -> TopicReading:
        catalogue: Any = self.broker
        drops = TableDrops(driver, tables, catalogue)
        runners = [
            BatchRunner(
                driver, tables, catalogue, lambda: 2, self._hold_back, drops, run_job=self.job
            )
            for _ in range(2)
        ]
        sources = TopicSelection(driver, tables, catalogue)
        pair = runners[0], runners[1]
        return TopicReading(driver, session, sources, drops, pair, self._open_query)

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
        table = self.current.get(self.sources[at].topic.name)
        assert table is not None
        return table

    def history_of(self, at: int) -> ServiceTable | None:
        """The history table beside it, if the settings say that there is one."""
        tables = [reading.sources.tables for reading in self.readings[1:]]
        return next((held.get(self.sources[at].topic.name) for held in tables), None)

    def require_all_arrived(self) -> None:
        """Each table has all that was sent; each view is true, and nothing due is left waiting.
        The rows that a history table shows as current are those of the table beside it.
        """
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
            history = self.history_of(at)
            if history is not None:
                assert history.parked is None, history.parked
                assert history.next_offsets(source.topic.ends) == source.topic.ends
                assert current_rows(history.store) == rows_of(table.store)

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
        held = [
            (topic, runner._tables)
            for other in beside
            for topic in other.topics
            if other.runner._tables is runner._tables
        ]
        assert not query.topics & {topic for topic, _ in held}, "a topic is read twice for a table"
        self.queries.append(query)
        return query


def current_rows(history: Store) -> list[dict[str, Any]]:
    """The rows that a history table shows as current, in the form of `rows_of`."""
    names = [column.name for column in SMALL.columns]
    found = Table(history).read_history(names, current=True)
    rows: list[dict[str, Any]] = found.select(names).sort_by("id").to_pylist()
    return rows


def _rewrite(_session: Any, tasks: Sequence[RewriteTask]) -> list[Compacted]:
    return [
        compact_files(one.store, one.manifest, one.paths, one.rewriter, one.entropy)
        for one in tasks
    ]
