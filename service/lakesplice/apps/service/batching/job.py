"""A batch's job: its plan, and the search for the table at which a job dies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lakesplice.apps.record_reading import reading_of
from lakesplice.apps.service.batching.batch_selection import TopicSpan, continues
from lakesplice.apps.service.batching.restart import Restart, RestartReason
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.tables import ServiceTable
from lakesplice.errors import RetryableError, SourceUnavailable
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.planning.intake.key_ranges import assign_targets
from lakesplice.spark.jobs.batch_plan import BatchPlan, TopicPlan, TopicResult
from lakesplice.spark.kafka.topics import TopicCatalogue
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.protocol.retries import Retries

RunJob = Callable[[DataFrame, BatchPlan], dict[str, TopicResult]]
# The last line of a traceback names the exception in this form, and each cause in Java's.
_RAISED = re.compile(r"(?:Caused by: |: )?((?:\w+\.)*\w+(?:Error|Exception): .*)")
# What may be in the name of a topic; a message may also name its partition.
_NAME = r"[\w.-]"
_READ_TASKS_PER_CORE = 1
_ATTEMPTS_MAX = 2


@dataclass(frozen=True)
class BatchJob:
    """Runs the jobs of one lane. `cores` returns how many tasks run at once. `is_ending` returns
    whether the query is to end: a job that dies then was stopped, and no table is at fault.
    """

    driver: Driver
    catalogue: TopicCatalogue
    cores: Callable[[], int]
    is_ending: Callable[[], bool]
    run_job: RunJob
    restart: Restart

    def results(self, frame: DataFrame, spans: Mapping[str, TopicSpan]) -> dict[str, TopicResult]:
        """Run the job. A job that dies twice is run by halves until the tables at fault are found;
        these are parked and have no result.

        If each of several dies alone, all of them rest: it may be that none is at fault. If the
        error may pass, this raises it, and the query starts again. But only the tables rest whose
        topics Kafka names when it doesn't give the records; then there is no result, since each
        half reads all of them.
        """
        died: dict[str, Exception] = {}
        try:
            found = self._found(frame, spans, died)
        except SourceUnavailable as error:
            if self.is_ending() or not self._rest_unread(spans, error):
                raise
            return {}
        if len(died) > 1 and len(died) == len(spans):
            for name, cause in died.items():
                self._rest(spans[name].table, f"the job died twice: {error_line(cause)}")
        else:
            self._park(spans, died)
        return found

    def _found(
        self, frame: DataFrame, spans: Mapping[str, TopicSpan], died: dict[str, Exception]
    ) -> dict[str, TopicResult]:
        """Run the job, and its halves if it dies twice; add tables that die alone to `died`."""
        plan = self._plan(spans)
        retries = Retries(self.driver.clock, self.driver.entropy, _ATTEMPTS_MAX)
        while True:
            try:
                return {name: TopicResult(name) for name in spans} | self.run_job(frame, plan)
            except Exception as error:
                if self.is_ending():
                    raise
                self.driver.log.warning("job-died", tables=len(spans), error=error_line(error))
                if retries.allow_another():
                    continue
                if isinstance(error, RetryableError):
                    raise
                if len(spans) == 1:
                    died.update(dict.fromkeys(spans, error))
                    return {}
                break
        # Asked before tables are blamed: without the broker every job fails.
        self.catalogue.describe(spans, without_leader=spans)
        names = sorted(spans)
        return {
            name: result
            for half in (names[: len(names) // 2], names[len(names) // 2 :])
            for name, result in self._found(frame, {n: spans[n] for n in half}, died).items()
        }

    def _park(self, spans: Mapping[str, TopicSpan], died: Mapping[str, Exception]) -> None:
        """Park the tables at which the job died."""
        topics = self.catalogue.describe(died, without_leader=died)
        for name, error in died.items():
            table = spans[name].table
            if continues(self.driver, table, topics.get(name), self.restart):
                detail = f"the job died twice with this table alone: {error_line(error)}"
                table.park(ParkReason(ParkCode.JOB_DIED, detail, name))
                self.restart.ask(RestartReason.REDIRECT)

    def _rest_unread(self, spans: Mapping[str, TopicSpan], error: SourceUnavailable) -> bool:
        """Let the tables rest whose topics Kafka names, and ask for a query without them; return
        whether it names one.
        """
        unread = [span.table for name, span in spans.items() if _names(str(error), name)]
        for table in unread:
            self._rest(table, str(error))
        return bool(unread)

    def _rest(self, table: ServiceTable, reason: str) -> None:
        table.refused = True
        table.rest(reason)
        self.restart.ask(RestartReason.REDIRECT)

    def _plan(self, spans: Mapping[str, TopicSpan]) -> BatchPlan:
        driver = self.driver
        expected: Counter[TableName] = Counter()
        for span in spans.values():
            expected[span.table.name] += span.records
        cores = max(1, self.cores())
        shares: dict[TableName, dict[int, int]] = {}
        for share, target in assign_targets(expected, cores, cores).items():
            shares.setdefault(share.table, {})[share.range] = target
        topics = tuple(
            self._topic_plan(name, span, shares[span.table.name])
            for name, span in sorted(spans.items())
        )
        read_tasks = cores * _READ_TASKS_PER_CORE
        return BatchPlan(driver.lake, driver.entropy, topics, cores, read_tasks, driver.schemas)

    def _topic_plan(self, topic: str, span: TopicSpan, targets: Mapping[int, int]) -> TopicPlan:
        table, settings = span.table, self.driver.settings
        return TopicPlan(
            topic=topic,
            table=table.name,
            partitions=table.states(span.ends),
            append=AppendPlan.of(
                table.manifest,
                table.source.topic,
                insert_only=settings.insert_only(table.origin),
            ),
            targets=tuple(target for _, target in sorted(targets.items())),
            reading=reading_of(settings, table.origin, self._types(table)),
            known=table.known(span.ends),
        )

    def _types(self, table: ServiceTable) -> TypeHistory | None:
        schema_topics = self.driver.schema_topics
        return None if schema_topics is None else schema_topics.types(table.source, table.origin)


def error_line(error: BaseException | None) -> str:
    """Return the line of an error that says what happened: the last line of a worker's traceback
    or the innermost cause of Java's, else the first line that isn't empty.
    """
    lines = [line.strip() for line in str(error or "").splitlines() if line.strip()]
    raised = [found[1] for line in lines if (found := _RAISED.match(line))]
    return raised[-1] if raised else lines[0] if lines else repr(error)


def _names(message: str, topic: str) -> bool:
    """Whether a message names the topic, or a partition of it (`topic-0`)."""
    return bool(re.search(rf"(?<!{_NAME}){re.escape(topic)}(?:-\d+)?(?!{_NAME})", message))
