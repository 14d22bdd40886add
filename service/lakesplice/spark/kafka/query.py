"""The streaming query over a lane's topics, and the offset ranges of its batches.

The manifests have the offsets where reading starts. The query's checkpoint is a temporary folder,
made for each start and deleted afterwards. While the query runs, its offset log shows which offsets
a batch covers.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lakesplice.errors import CorruptFileError, RetryableError
from lakesplice.model.offsets import Offsets
from lakesplice.spark.java_errors import JOB_ERRORS, innermost_line, outermost
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.query_folders import QueryFolder

TopicOffsets = Mapping[str, Offsets]
_OFFSETS_LINE = 2
_IO_ERROR = "java.io.IOException: "

MANY_CONSUMERS: Mapping[str, str] = {
    # After the records of a partition Spark asks for its ends, and the broker answers only once
    # this wait has passed. Kafka's default is half a second.
    "kafka.fetch.max.wait.ms": "1",
    # Nobody uses their metrics.
    "kafka.auto.include.jmx.reporter": "false",
    "kafka.enable.metrics.push": "false",
}
"""Options of Spark's source for hundreds of partitions, each of which has a consumer."""

# A consumer per topic partition stays open and holds what it fetched and what it fetches next: with
# the client's own 1 MiB each, 400 partitions outgrow a heap of 2 GiB.
_FETCH_BYTES_IN_ALL = 192 << 20
_FETCH_BYTES_MIN, _FETCH_BYTES_MAX = 64 << 10, 1 << 20


@dataclass(frozen=True)
class QueryPlan:
    """What to read, each partition from its first offset, and from which broker."""

    access: BrokerAccess
    starts: TopicOffsets
    offsets_per_batch_max: int
    trigger_seconds: float | None


class Query:
    """A running query: calls `on_batch(frame, batch id, starts, ends)` for each batch, one at a
    time, and for none that begins after it was told to stop. `RetryableError` if its checkpoint
    can't be written.
    """

    def __init__(
        self,
        session: SparkSession,
        plan: QueryPlan,
        on_batch: Callable[[DataFrame, int, TopicOffsets, TopicOffsets], None],
    ) -> None:
        self._starts = plan.starts
        self._on_batch = on_batch
        self._told_to_stop = threading.Event()
        try:
            self._folder = QueryFolder()
        except OSError as error:
            raise _unwritable(str(error)) from error
        self._checkpoint = self._folder.path
        try:
            self._query = self._start(session, plan)
        except Exception as error:
            self._folder.remove()
            if _IO_ERROR in str(error):
                raise _unwritable(innermost_line(str(error))) from error
            raise

    @property
    def active(self) -> bool:
        """Whether the query still runs."""
        return self._query.isActive

    def wait(self, seconds: float) -> bool:
        """Wait until the query ends, at most `seconds`; True if it has ended.

        Raises `RetryableError` if it ended by an exception.
        """
        try:
            return bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]  # takes parts
        except PySparkException as error:
            raise RetryableError(
                "the streaming query failed", cause=innermost_line(str(error))
            ) from error

    def stop(self) -> None:
        """Stop the query, abandoning a running batch, and remove its checkpoint.

        Blocks for at most Spark's `spark.sql.streaming.stopTimeout`. Raises `RetryableError` if the
        query hasn't stopped by then; another one may start beside what is left of it.
        """
        self._told_to_stop.set()
        try:
            self._query.stop()
        except JOB_ERRORS as error:
            raise RetryableError("the query did not stop", cause=outermost(error)) from error
        finally:
            self._folder.remove()

    def _start(self, session: SparkSession, plan: QueryPlan) -> StreamingQuery:
        assign = {topic: sorted(partitions) for topic, partitions in plan.starts.items()}
        starts = {
            topic: {str(number): offset for number, offset in partitions.items()}
            for topic, partitions in plan.starts.items()
        }
        options = {
            **MANY_CONSUMERS,
            "kafka.max.partition.fetch.bytes": str(_fetch_bytes(plan.starts)),
            **plan.access.source_options(),
            "assign": json.dumps(assign),
            "startingOffsets": json.dumps(starts),
            "maxOffsetsPerTrigger": str(plan.offsets_per_batch_max),
        }
        records = session.readStream.format("kafka").options(**options).load()
        writer = records.writeStream.foreachBatch(self._batch)
        # With its scheme, since a cluster's default file system is rarely this machine's disk.
        writer = writer.option("checkpointLocation", self._checkpoint.as_uri())
        if plan.trigger_seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(
                processingTime=f"{round(plan.trigger_seconds * 1000)} milliseconds"
            )
        return writer.start()

    def _batch(self, frame: DataFrame, batch_id: int) -> None:
        if self._told_to_stop.is_set():
            return
        starts = self._starts if batch_id == 0 else self._offsets(batch_id - 1)
        self._on_batch(frame, batch_id, starts, self._offsets(batch_id))

    def _offsets(self, batch_id: int) -> TopicOffsets:
        path = self._checkpoint / "offsets" / str(batch_id)
        try:
            parsed = json.loads(path.read_text().splitlines()[_OFFSETS_LINE])
        except (OSError, ValueError, IndexError) as error:
            raise CorruptFileError(
                "the query's offset log cannot be read; restart the service", path=str(path)
            ) from error
        return {
            topic: {int(number): offset for number, offset in partitions.items()}
            for topic, partitions in parsed.items()
        }


def _unwritable(cause: str) -> RetryableError:
    """Return the error for a checkpoint that can't be written."""
    return RetryableError(
        "the query's checkpoint can't be written; free some space, or set TMPDIR",
        folder=tempfile.gettempdir(),
        cause=cause,
    )


def _fetch_bytes(starts: TopicOffsets) -> int:
    """Return how much is fetched from a partition at once; a larger record is still fetched
    whole.
    """
    partitions = sum(len(numbers) for numbers in starts.values())
    share = _FETCH_BYTES_IN_ALL // max(1, partitions)
    return max(_FETCH_BYTES_MIN, min(_FETCH_BYTES_MAX, share))
