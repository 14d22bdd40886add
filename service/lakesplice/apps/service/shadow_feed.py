"""Feeds a shadow from its topic, in batches of its own: no streaming query reads for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access, reading_of
from lakesplice.config import Settings
from lakesplice.errors import ParkedTableError, RetryableError, SourceUnavailable
from lakesplice.formats.events import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRange, Offsets
from lakesplice.spark.java_errors import JOB_ERRORS, innermost_line
from lakesplice.spark.jobs.batch import run_batch
from lakesplice.spark.jobs.batch_plan import BatchPlan, TopicPlan, TopicResult
from lakesplice.spark.kafka.topic_ranges import records_between
from lakesplice.spark.session import cores
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.ingest.batch_commit import CommitOutcome, commit_contribution
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.ports import Entropy, SchemaSource, Store


@dataclass(frozen=True)
class _Fed:
    """A shadow of the table `name`, which the source calls `origin`."""

    table: DriverTable
    name: TableName
    origin: TableName
    history: TypeHistory | None


@dataclass(frozen=True)
class ShadowFeed:
    """Reads topics with a session of Spark, and commits to shadows. Every call blocks."""

    session: SparkSession
    settings: Settings
    lake: Store
    entropy: Entropy
    schemas: SchemaSource | None = None

    def feed(
        self,
        table: DriverTable,
        name: TableName,
        origin: TableName,
        ends: Offsets,
        history: TypeHistory | None = None,
        after_batch: Callable[[], None] | None = None,
    ) -> None:
        """Bring a shadow of the table `name` up to these offsets of its topic, several batches one
        after another; `after_batch` is called after each.

        `origin` is the table's name at the source. `ParkedTableError` if a record parks it;
        `SourceUnavailable`, `RetryableError`.
        """
        fed = _Fed(table, name, origin, history)
        while True:
            starts = table.next_offsets(ends)
            until = self._until(starts, ends)
            if all(starts[at] >= end for at, end in until.items()):
                return
            self._batch(fed, starts, until)
            if (parked := table.parked) is not None:
                raise ParkedTableError(
                    f"the table can't be filled: {parked.detail}", topic=table.source.topic
                )
            if after_batch is not None:
                after_batch()

    def _until(self, starts: Offsets, ends: Offsets) -> dict[int, Offset]:
        share = max(1, self.settings.kafka.offsets_per_batch_max // max(1, len(ends)))
        return {
            at: Offset(max(starts[at], min(end, starts[at] + share))) for at, end in ends.items()
        }

    def _batch(self, fed: _Fed, starts: Offsets, ends: Offsets) -> None:
        table, retries = fed.table, fed.table.retries()
        policy, limit = self.settings.policy(fed.origin), self.settings.dead_letters.limit
        while True:
            planned_on = table.version
            result = self._run(fed, starts, ends)
            if result.errors:
                raise RetryableError(
                    f"a batch failed: {result.errors[0].message}", topic=table.source.topic
                )
            contribution = result.contribution(planned_on, starts, ends)
            outcome = commit_contribution(table, contribution, policy, limit)
            if outcome is CommitOutcome.DONE:
                return
            detail = outcome.detail if isinstance(outcome, Conflict) else "the schema grows"
            retries.require_another("a batch isn't committed", topic=table.source.topic, why=detail)

    def _run(self, fed: _Fed, starts: Offsets, ends: Offsets) -> TopicResult:
        table, count = fed.table, max(1, cores(self.session))
        topic = table.source.topic
        never_changes = self.settings.insert_only(fed.origin)
        plan = TopicPlan(
            topic=topic,
            table=fed.name,
            partitions=table.states(ends),
            append=AppendPlan.of(table.manifest, topic, insert_only=never_changes),
            targets=tuple(range(count)),
            reading=reading_of(self.settings, fed.origin, fed.history),
            known=table.known(ends),
        )
        access = broker_access(self.settings.kafka)
        ranges = {at: OffsetRange(starts[at], end) for at, end in ends.items() if starts[at] < end}
        frame = records_between(self.session, access, topic, ranges)
        batch = BatchPlan(self.lake, self.entropy, (plan,), count, count, self.schemas)
        try:
            return run_batch(frame, batch).get(topic, TopicResult(topic))
        except JOB_ERRORS as error:
            raise SourceUnavailable(
                "records of a topic can't be read; run the command again",
                topic=topic,
                cause=innermost_line(str(error)),
            ) from error
