"""One batch: check the topics, run the job, commit each table it touched.

A table that cannot go on is parked or refused here and the others go on. Nothing here decides by
time; whatever dies in the middle leaves the tables at offsets that the next start continues from.
"""

from __future__ import annotations

import re
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from lakesplice.apps.letters import reading_of
from lakesplice.apps.service.batching.dead_letter_topic import send_letters
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.table_failures import TableFailures
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.errors import FencedError
from lakesplice.formats.events import TypeHistory
from lakesplice.model.manifest import DeadLetterRef, ParkCode, ParkReason
from lakesplice.model.names import TableName
from lakesplice.planning.intake.key_ranges import place
from lakesplice.planning.sources.source_check import check_source
from lakesplice.spark.batch import run_batch
from lakesplice.spark.letters import LetterTopic
from lakesplice.spark.plan import BatchPlan, TaskError, TopicPlan, TopicResult
from lakesplice.spark.query import Offsets
from lakesplice.spark.topics import Topic, TopicCatalogue
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.ingest.batch_commit import Settled, settle
from lakesplice.table.protocol.commit import Conflict
from lakesplice.telemetry import catalogue as metric

_COMMIT_THREADS = 8
# As the last line of a traceback names what was raised.
_RAISED = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception): ")
_READ_TASKS_PER_CORE = 1


@dataclass(frozen=True)
class Span:
    """One topic's part of a batch: per partition its first offset and one after its last."""

    table: ServiceTable
    starts: Mapping[int, int]
    ends: Mapping[int, int]


class BatchRunner:
    """Runs the batches of one lane; `restart` is set to a reason when the query must start anew.

    `fatal` holds the error that must stop the service. `hold_back` is called with the tables of
    each batch before its job, blocks while compaction has to catch up, and tells whether it had to.
    A batch that began is finished when the query is to end: what another table's parking calls for
    waits for it. `cores` tells how many tasks run at once: executors of a cluster come and go.
    `drops` are dealt with between queries. `run_job` runs a batch's tasks; errors as `run_batch`.
    """

    def __init__(
        self,
        driver: Driver,
        tables: ServiceTables,
        catalogue: TopicCatalogue,
        cores: Callable[[], int],
        hold_back: Callable[[Sequence[ServiceTable]], bool],
        drops: TableDrops,
        letters: LetterTopic | None = None,
        run_job: Callable[[DataFrame, BatchPlan], dict[str, TopicResult]] = run_batch,
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._catalogue = catalogue
        self._cores = cores
        self._hold_back = hold_back
        self._drops = drops
        self._letters = letters
        self._run_job = run_job
        self._failures = TableFailures(driver)
        self._busy = threading.Lock()
        self.draining = threading.Event()
        self.restart: str | None = None
        self.fatal: BaseException | None = None

    def __call__(self, frame: DataFrame, batch_id: int, starts: Offsets, ends: Offsets) -> None:
        """Run one batch. Raises what must end the query; a table's own trouble does not."""
        with self._busy:
            if self.draining.is_set():
                return
            try:
                self._run(frame, batch_id, starts, ends)
            except FencedError as error:
                self.fatal = error
                raise
            except Exception:
                self._driver.metrics.add(metric.BATCHES, result="failed")
                raise

    def drain(self, seconds: float) -> bool:
        """Let no further batch begin and wait for the running one; True if none runs any more."""
        self.draining.set()
        if not self._busy.acquire(timeout=max(0.0, seconds)):
            return False
        self._busy.release()
        return True

    def _run(self, frame: DataFrame, batch_id: int, starts: Offsets, ends: Offsets) -> None:
        driver, started = self._driver, self._driver.clock.now_ms()
        with driver.metrics.timed(metric.BATCH_SECONDS, phase="whole"):
            driver.generation.check()
            with driver.metrics.timed(metric.BATCH_SECONDS, phase="plan"):
                topics = self._catalogue.describe({*ends, *self._schema_topics})
                spans = self._spans(topics, starts, ends)
                spans = self._with_types(topics, spans)
            held_back = self._hold_back([span.table for span in spans.values()])
            if held_back and self.draining.is_set():
                return  # held back for too long: the query ends, and the next one begins here
            settled = self._settle_all(frame, spans)
        self._show(topics, ends, started / 1000)
        result = "ok" if settled == len(spans) else "partial"
        driver.metrics.add(metric.BATCHES, result=result)
        driver.metrics.since(metric.LAST_BATCH, driver.clock.now_ms() / 1000)
        if spans:
            records = sum(sum(s.ends.values()) - sum(s.starts.values()) for s in spans.values())
            driver.log.info("batch", id=batch_id, tables=len(spans), offsets=records, result=result)

    def _spans(
        self, topics: Mapping[str, Topic], starts: Offsets, ends: Offsets
    ) -> dict[str, Span]:
        """Return the tables that have something to read, are running, and stand where it starts."""
        spans = {}
        for name, topic_ends in ends.items():
            table = self._tables.get(name)
            if table is None or table.refused or table.parked:
                continue
            if not self._continues(table, topics.get(name)):
                continue
            moved = {at: end for at, end in topic_ends.items() if end > starts[name][at]}
            span = Span(table, {at: starts[name][at] for at in moved}, moved)
            if moved and self._stands_at(span):
                spans[name] = span
        return spans

    @property
    def _schema_topics(self) -> tuple[str, ...]:
        told = self._driver.schema_topics
        return () if told is None else told.names

    def _with_types(self, topics: Mapping[str, Topic], spans: dict[str, Span]) -> dict[str, Span]:
        """Read on what is told of types; leave out tables that can't go on, which are parked."""
        told = self._driver.schema_topics
        if told is None or not spans:
            return spans
        told.look(topics)
        known = {}
        for name, span in spans.items():
            table = span.table
            reason = told.overtaken(table.source, table.origin, table.schema)
            if reason is not None:
                table.park(reason)
                self.restart = "redirect"
            elif self._drops.calls_for(table):
                table.refused = True
                self.restart = "redirect"
            else:
                known[name] = span
        return known

    def _continues(self, table: ServiceTable, topic: Topic | None) -> bool:
        if topic is None:
            return True  # deleted meanwhile: the query fails on it and is started without it
        reason = check_source(table.source, topic.name, topic.id, topic.earliest, topic.latest)
        if reason is not None:
            table.park(reason)
            self.restart = "redirect"
        return reason is None

    def _stands_at(self, span: Span) -> bool:
        here = span.table.next_offsets(span.starts)
        if here == span.starts:
            return True
        self._refuse(span.table, f"stands at {here}, the batch starts at {dict(span.starts)}")
        return False

    def _settle_all(self, frame: DataFrame, spans: Mapping[str, Span]) -> int:
        """Run the job and settle each table, again for those whose schema grew; return how many
        did.
        """
        driver, pending, settled = self._driver, dict(spans), 0
        while pending:
            versions = {name: span.table.version for name, span in pending.items()}
            with driver.metrics.timed(metric.BATCH_SECONDS, phase="job"):
                results = self._job(frame, pending)
            driver.kill_point("after-job")
            with (
                driver.metrics.timed(metric.BATCH_SECONDS, phase="commit"),
                ThreadPoolExecutor(_COMMIT_THREADS, "commit") as pool,
            ):
                answers = [
                    pool.submit(self._settle_table, topics, versions, results)
                    for topics in _by_table(pending)
                ]
                outcomes = {k: v for answer in answers for k, v in answer.result().items()}
            settled += sum(outcome == "settled" for outcome in outcomes.values())
            pending = {name: pending[name] for name, out in outcomes.items() if out == "again"}
        return settled

    def _job(self, frame: DataFrame, spans: Mapping[str, Span]) -> dict[str, TopicResult]:
        """Run the job; one that dies twice is run by halves until the table at fault is parked."""
        plan = self._plan(spans)
        last: Exception | None = None
        for _ in range(2):
            try:
                return {name: TopicResult(name) for name in spans} | dict(
                    self._run_job(frame, plan)
                )
            except Exception as error:
                if self.draining.is_set():
                    raise
                last = error
                self._driver.log.warning("job-died", tables=len(spans), error=_line(error))
        # Asked before anything is blamed on a table: a broker that is gone kills every job.
        topics = self._catalogue.describe(spans)
        if len(spans) > 1:
            names = sorted(spans)
            halves = names[: len(names) // 2], names[len(names) // 2 :]
            return {
                name: result
                for half in halves
                for name, result in self._job(frame, {n: spans[n] for n in half}).items()
            }
        for name, span in spans.items():
            if self._continues(span.table, topics.get(name)):
                detail = f"the job died twice with this table alone: {_line(last)}"
                span.table.park(ParkReason(ParkCode.JOB_DIED, detail, name))
                self.restart = "redirect"
        return {}

    def _plan(self, spans: Mapping[str, Span]) -> BatchPlan:
        settings = self._driver.settings
        expected: Counter[TableName] = Counter()
        for span in spans.values():
            expected[span.table.name] += sum(span.ends[at] - span.starts[at] for at in span.ends)
        cores = max(1, self._cores())
        placed = place(expected, cores, cores)
        shares: dict[TableName, dict[int, int]] = {}
        for share, target in placed.items():
            shares.setdefault(share.table, {})[share.range] = target
        topics = tuple(
            TopicPlan(
                topic=name,
                table=span.table.name,
                partitions=span.table.states(span.ends),
                append=AppendPlan.of(
                    span.table.manifest,
                    span.table.source.topic,
                    insert_only=settings.not_inserts(span.table.origin) is not None,
                ),
                targets=tuple(target for _, target in sorted(shares[span.table.name].items())),
                reading=reading_of(settings, span.table.origin, self._types(span.table)),
                known=span.table.known(span.ends),
            )
            for name, span in sorted(spans.items())
        )
        read_tasks = cores * _READ_TASKS_PER_CORE
        driver = self._driver
        return BatchPlan(driver.lake, driver.entropy, topics, cores, read_tasks, driver.schemas)

    def _types(self, table: ServiceTable) -> TypeHistory | None:
        told = self._driver.schema_topics
        return None if told is None else told.types(table.source, table.origin)

    def _settle_table(
        self,
        spans: Mapping[str, Span],
        versions: Mapping[str, int],
        results: Mapping[str, TopicResult],
    ) -> dict[str, str]:
        """Commit the parts of a table's topics, one after the other."""
        return {
            name: self._settle(span, versions[name], results[name])
            for name, span in spans.items()
            if name in results
        }

    def _settle(self, span: Span, planned_on: int, result: TopicResult) -> str:
        """Commit a table's part: `settled`, `again` after its schema grew, or `refused`."""
        table = span.table
        try:
            if result.errors:
                return self._failed(table, result.errors[0])
            brought = result.brought(planned_on, span.starts, span.ends)
            table.setting_warnings.look_at(brought.reports)
            settings = self._driver.settings
            policy, limit = settings.policy(table.origin), settings.dead_letters.limit
            outcome = settle(table, brought, policy, limit, partial(self._tell, table))
        except FencedError:
            raise
        except Exception as error:  # whatever it is concerns one table, and the others go on
            return self._failed(table, TaskError.of(error, traceback.format_exc(limit=8)))
        if isinstance(outcome, Conflict):
            return self._overtaken(table, f"{outcome.reason}: {outcome.detail}")
        if outcome is Settled.AGAIN:
            return "again"
        self._failures.went_well(table)
        if table.parked is not None:
            self._driver.log.warning(
                "table-parked",
                table=str(table.name),
                code=table.parked.code.value,
                detail=table.parked.detail,
            )
            self.restart = "redirect"
        elif self._drops.calls_for(table):  # of one that was told of before its first change
            self.restart = "redirect"
        return "settled"

    def _tell(self, table: ServiceTable, letters: Sequence[DeadLetterRef]) -> None:
        if self._letters is not None:
            send_letters(self._driver, table, letters, self._letters)

    def _failed(self, table: ServiceTable, error: TaskError) -> str:
        if self._failures.failed(table, error):
            self.restart = "redirect"
        return "refused"

    def _overtaken(self, table: ServiceTable, detail: str) -> str:
        if self._failures.overtaken(table, detail):
            return self._refuse(table, detail)
        return "refused"

    def _refuse(self, table: ServiceTable, detail: str) -> str:
        """Pass the table over until the query starts anew from where the table stands."""
        self._driver.log.info("table-refused", table=str(table.name), reason=detail)
        table.refused = True
        self.restart = self.restart or "refused-commit"
        return "refused"

    def _show(self, topics: Mapping[str, Topic], ends: Offsets, moment: float) -> None:
        """Set lag and freshness; `moment`, in seconds, is when the ends of the topics were read."""
        for name in ends:
            table, topic = self._tables.get(name), topics.get(name)
            if table is None or topic is None:
                continue
            table.sight(topic, moment)


def _by_table(spans: Mapping[str, Span]) -> list[dict[str, Span]]:
    tables: dict[TableName, dict[str, Span]] = {}
    for name, span in spans.items():
        tables.setdefault(span.table.name, {})[name] = span
    return list(tables.values())


def _line(error: BaseException | None) -> str:
    """The line of an error that says what happened: of a worker's traceback its last, else the
    first that isn't empty.
    """
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip()]
    raised = [line for line in lines if _RAISED.match(line)]
    return raised[-1] if raised else lines[0] if lines else repr(error)
