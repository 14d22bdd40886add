"""One batch: check the topics, run the job, commit each table that has records in it.

A table that can't continue is parked or refused here, and the others continue. Nothing is decided
by time. A crash at any point leaves the tables at offsets from which the next start continues.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from pyspark.sql import DataFrame

from lakesplice.apps.service.activity import Batch
from lakesplice.apps.service.batching.batch_selection import BatchSelection, TopicSpan, by_table
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.job import BatchJob, RunJob
from lakesplice.apps.service.batching.restart import Restart, RestartReason
from lakesplice.apps.service.batching.table_commits import PartOutcome, TableCommits
from lakesplice.apps.service.batching.table_failures import TableFailures
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import FencedError
from lakesplice.model.moments import EpochSeconds, epoch_seconds
from lakesplice.spark.jobs.batch import run_batch
from lakesplice.spark.kafka.dead_letter_topic import DeadLetterTopic
from lakesplice.spark.kafka.query import TopicOffsets
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.logs import log_context
from lakesplice.telemetry.tracing import Span as TracedSpan

_COMMIT_THREADS = 8


class BatchRunner:
    """Runs the batches of one lane's queries, one query after another.

    `fatal` is the error that must stop the service. `hold_back` is called with the tables of each
    batch before its job; it blocks while compaction has to catch up, and returns whether it had to.
    A batch that began is finished even if the query is to end: what the parking of another table
    requires waits for it. `cores` returns how many tasks run at once, since executors of a cluster
    join and leave. `drops` are handled between queries. `run_job` runs a batch's tasks; errors as
    in `run_batch`.
    """

    def __init__(
        self,
        driver: Driver,
        tables: ServiceTables,
        catalogue: TopicCatalogue,
        cores: Callable[[], int],
        hold_back: Callable[[Sequence[ServiceTable]], bool],
        drops: TableDrops,
        dead_letters: DeadLetterTopic | None = None,
        run_job: RunJob = run_batch,
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._catalogue = catalogue
        self._hold_back = hold_back
        self._busy = threading.Lock()
        self._ending = threading.Event()
        self._lane = ""
        self._restart = Restart()
        self._selection = BatchSelection(driver, tables, drops, self._restart)
        self._job = BatchJob(driver, catalogue, cores, self._ending.is_set, run_job, self._restart)
        failures = TableFailures(driver)
        self._commits = TableCommits(driver, drops, dead_letters, self._restart, failures)
        self.fatal: BaseException | None = None

    @property
    def restart(self) -> RestartReason | None:
        """Why the query must end and another one start, if it must."""
        return self._restart.reason

    def begin(self, lane: str = "") -> None:
        """A query of a lane starts from the tables' offsets; its batches may run.

        Called when a query starts, not when the one before ends: if one failed to stop, its end
        must not keep the next query from running batches.
        """
        self._lane = lane
        self._restart.clear()
        self._ending.clear()

    def __call__(
        self, frame: DataFrame, batch_id: int, starts: TopicOffsets, ends: TopicOffsets
    ) -> None:
        """Run one batch. Raises only what must end the query; the failure of one table doesn't."""
        with self._busy:
            if self._ending.is_set():
                return
            clock = self._driver.clock
            began_ms, began = clock.now_ms(), clock.monotonic()
            try:
                with (
                    log_context(lane=self._lane, batch=batch_id),
                    self._driver.tracing.span("batch", lane=self._lane, batch=batch_id) as span,
                ):
                    self._run(frame, starts, ends, span)
            except FencedError as error:
                self.fatal = error
                raise
            except Exception:
                self._driver.metrics.add(metric.BATCHES, result="failed")
                seconds = clock.monotonic() - began
                self._driver.activity.add_batch(Batch(began_ms, seconds, None, None, "failed"))
                raise

    def end(self) -> None:
        """Let no further batch begin; returns at once."""
        self._ending.set()

    def drain(self, seconds: float) -> bool:
        """Let no further batch begin and wait for the running one; True if none runs any more."""
        self.end()
        if not self._busy.acquire(timeout=max(0.0, seconds)):
            return False
        self._busy.release()
        return True

    def _run(
        self, frame: DataFrame, starts: TopicOffsets, ends: TopicOffsets, span: TracedSpan
    ) -> None:
        driver, started = self._driver, self._driver.clock.now_ms()
        began = driver.clock.monotonic()
        with driver.metrics.timed(metric.BATCH_SECONDS, phase="whole"):
            driver.generation.check()
            with driver.metrics.timed(metric.BATCH_SECONDS, phase="plan"):
                topics = self._catalogue.describe(
                    {*ends, *self._schema_topics}, without_leader=ends
                )
                spans = self._selection.choose(topics, starts, ends)
            held_back = self._hold_back([span.table for span in spans.values()])
            if held_back and self._ending.is_set():
                return  # held back for too long: the query ends, and the next one begins here
            committed = self._commit_all(frame, spans)
        self._show(topics, ends, epoch_seconds(started))
        result = "ok" if committed == len(spans) else "partial"
        driver.metrics.add(metric.BATCHES, result=result)
        driver.caught_up()
        if spans:
            records = sum(span.records for span in spans.values())
            seconds = driver.clock.monotonic() - began
            driver.activity.add_batch(Batch(started, seconds, records, len(spans), result))
            span.note(tables=len(spans), offsets=records, result=result)
            driver.log.info(
                "batch",
                tables=len(spans),
                offsets=records,
                result=result,
                seconds=round(seconds, 3),
            )

    @property
    def _schema_topics(self) -> tuple[str, ...]:
        schema_topics = self._driver.schema_topics
        return () if schema_topics is None else schema_topics.names

    def _commit_all(self, frame: DataFrame, spans: Mapping[str, TopicSpan]) -> int:
        """Run the job and commit each table; repeat it for tables whose schema was extended. Return
        how many topics' parts were committed.
        """
        driver, pending, committed = self._driver, dict(spans), 0
        while pending:
            versions = {name: span.table.version for name, span in pending.items()}
            with (
                driver.metrics.timed(metric.BATCH_SECONDS, phase="job"),
                driver.tracing.span("job", tables=len(pending)),
            ):
                results = self._job.results(frame, pending)
            driver.kill_point("after-job")
            with (
                driver.metrics.timed(metric.BATCH_SECONDS, phase="commit"),
                ThreadPoolExecutor(_COMMIT_THREADS, "commit") as pool,
            ):
                answers = [
                    pool.submit(copy_context().run, self._commits.commit, parts, versions, results)
                    for parts in by_table(pending)
                ]
                outcomes = {k: v for answer in answers for k, v in answer.result().items()}
            committed += sum(out is PartOutcome.COMMITTED for out in outcomes.values())
            again = [name for name, out in outcomes.items() if out is PartOutcome.RUN_AGAIN]
            pending = {name: pending[name] for name in again}
        return committed

    def _show(self, topics: Mapping[str, Topic], ends: TopicOffsets, moment: EpochSeconds) -> None:
        """Set lag and freshness; `moment` is when the ends of the topics were read."""
        for name in ends:
            table, topic = self._tables.get(name), topics.get(name)
            if table is not None and topic is not None and not topic.leaderless:
                table.note_topic_ends(topic, moment)
