"""Reads topics of schema changes, with the same client and options as everything else."""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakesplice.errors import SourceUnavailable
from lakesplice.model.offsets import Offset, OffsetRanges
from lakesplice.spark.java_errors import JOB_ERRORS, innermost_line
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.topic_ranges import records_between


class SchemaTopicReader:
    """Reads ranges of a topic's partitions. Blocks."""

    def __init__(self, session: SparkSession, access: BrokerAccess) -> None:
        self._session = session
        self._access = access

    def __call__(
        self, topic: str, ranges: OffsetRanges, mark: str | None = None
    ) -> list[tuple[int, Offset, bytes | None]]:
        """Return the records' partitions, offsets and values, in that order: for each partition
        those from its first offset up to its end (exclusive).

        With `mark`, a regular expression, only records whose text matches; the others don't leave
        the executors. Raises `SourceUnavailable` if the broker doesn't return them.
        """
        frame = records_between(self._session, self._access, topic, ranges)
        try:
            records = frame.select("partition", "offset", "value")
            if mark is not None:
                records = records.where(records["value"].cast("string").rlike(mark))
            rows = records.collect()
        except JOB_ERRORS as error:
            raise SourceUnavailable(
                "a topic of schema changes can't be read; check that it keeps all its records",
                topic=topic,
                cause=innermost_line(str(error)),
            ) from error
        return sorted(
            (at, Offset(offset), None if value is None else bytes(value))
            for at, offset, value in rows
        )
