"""The first records of a topic, read with the same client and options as everything else."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from lakesplice.errors import SourceUnavailable
from lakesplice.model.offsets import Offset, OffsetRange
from lakesplice.spark.java_errors import JOB_ERRORS, innermost_line
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.topic_ranges import records_between
from lakesplice.spark.kafka.topics import Topic

_RECORDS_MAX = 100
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())])


class FirstRecordReader:
    """Reads the beginning of a partition that has records. Blocks."""

    def __init__(self, session: SparkSession, access: BrokerAccess) -> None:
        self._session = session
        self._access = access

    def __call__(self, topic: Topic) -> pa.RecordBatch:
        """Return up to 100 records (key, value, offset) of one partition, in offset order.

        Raises `SourceUnavailable` if the broker doesn't return them.
        """
        at = topic.fullest
        start = topic.earliest[at]
        end = min(topic.latest[at], Offset(start + _RECORDS_MAX))
        ranges = {at: OffsetRange(start, end)}
        frame = records_between(self._session, self._access, topic.name, ranges)
        try:
            rows = frame.select("offset", "key", "value").collect()
        except JOB_ERRORS as error:
            raise SourceUnavailable(
                "a topic's first records can't be read; the service will try again",
                topic=topic.name,
                cause=innermost_line(str(error)),
            ) from error
        found = ((row["offset"], row["key"], row["value"]) for row in rows)
        records = sorted(found, key=lambda record: record[0])
        return pa.RecordBatch.from_pydict(
            {
                "key": [None if key is None else bytes(key) for _, key, _ in records],
                "value": [None if value is None else bytes(value) for _, _, value in records],
                "offset": [offset for offset, _, _ in records],
            },
            _SCHEMA,
        )
