"""Ranges of a topic, read with the same client and options as everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lakesplice.errors import SourceUnavailable, UsageError
from lakesplice.model.offsets import OffsetRange, OffsetRanges
from lakesplice.spark.java_errors import JOB_ERRORS, innermost_line
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.topics import TopicCatalogue

# The columns that the service's own batches pass to the intake line.
_RECORDS_PER_BATCH = 5_000
_MILLISECONDS = "unix_millis(timestamp) as timestamp"
_COLUMNS = ("partition", "offset", _MILLISECONDS, "key", "value", "headers")
_OF_RECORDS = ("offset", "timestamp", "key", "value", "headers")


def records_between(
    session: SparkSession,
    access: BrokerAccess,
    topic: str,
    ranges: OffsetRanges,
) -> DataFrame:
    """Return the records of each partition from its first offset up to its end, in Kafka's columns.
    They are read when the result is used, which raises one of `JOB_ERRORS`.
    """
    settings = {
        **access.source_options(),
        "assign": json.dumps({topic: list(ranges)}),
        "startingOffsets": json.dumps({topic: {at: start for at, (start, _) in ranges.items()}}),
        "endingOffsets": json.dumps({topic: {at: end for at, (_, end) in ranges.items()}}),
    }
    return session.read.format("kafka").options(**settings).load()


class TopicReader:
    """Reads topics again, for `explain-key`. Blocks; holds the records of a call in memory."""

    def __init__(
        self, session: SparkSession, catalogue: TopicCatalogue, access: BrokerAccess
    ) -> None:
        self._session = session
        self._catalogue = catalogue
        self._access = access

    def offsets(self, topic: str) -> OffsetRanges:
        """Return per partition the earliest offset and one after the last; `UsageError` for a topic
        that isn't there.
        """
        found = self._catalogue.describe([topic]).get(topic)
        if found is None:
            raise UsageError("the broker has no such topic; leave out --from-topic", topic=topic)
        return {at: OffsetRange(found.earliest[at], end) for at, end in found.latest.items()}

    def read(self, topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield batches of one partition each, in offset order, in the columns that formats decode.

        Raises `SourceUnavailable` if the broker doesn't return them.
        """
        frame = records_between(self._session, self._access, topic, ranges)
        try:
            records = frame.selectExpr(*_COLUMNS).toArrow()
        except JOB_ERRORS as error:
            raise SourceUnavailable(
                "records of a topic can't be read again; try again, or with fewer --records",
                topic=topic,
                cause=innermost_line(str(error)),
            ) from error
        records = records.sort_by([("partition", "ascending"), ("offset", "ascending")])
        partitions = records.column("partition").to_numpy()
        for at in sorted(ranges):
            mine = records.filter(pa.array(partitions == at)).combine_chunks()
            for batch in mine.to_batches(max_chunksize=_RECORDS_PER_BATCH):
                yield at, batch.select([*_OF_RECORDS])
