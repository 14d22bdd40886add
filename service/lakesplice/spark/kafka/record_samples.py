"""A topic's first and newest records, read by Kafka's own consumer in a JVM without a Spark
session.
"""

from __future__ import annotations

from typing import Any, Self

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types

from lakesplice.errors import SourceUnavailable
from lakesplice.spark.java_errors import innermost
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import java_list, java_properties
from lakesplice.spark.kafka.topics import Topic

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())])
# Each record costs several round trips to the JVM.
_FETCHED_BYTES_MAX = 4 << 20


class RecordSampler:
    """Reads some records of topics; commits nothing and joins no group. Blocks; for one thread."""

    def __init__(self, jvm: Any, access: BrokerAccess) -> None:
        """The timeout of `access` is also how long to wait for records of one place."""
        self._jvm = jvm
        settings = {
            "fetch.max.bytes": str(_FETCHED_BYTES_MAX),
            "allow.auto.create.topics": "false",
            **access.client_settings(),
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "key.deserializer": _BYTES,
            "value.deserializer": _BYTES,
        }
        self._wait = jvm.java.time.Duration.ofMillis(int(access.timeout_ms))
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer
        self._consumer = consumer(java_properties(jvm, settings))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def sample(self, topic: Topic, first: int, newest: int) -> list[pa.RecordBatch]:
        """Return up to `first` records from the beginning and `newest` from the end of the topic's
        fullest partition, as key, value and offset, each in offset order; none of an empty topic.

        `SourceUnavailable` if the broker doesn't return them.
        """
        topic.require_leaders()
        at = topic.fullest
        start, end = topic.earliest[at], topic.latest[at]
        starts: dict[int, int] = {start: min(end, start + first)}
        later = max(starts[start], end - newest)
        if later < end:
            starts[later] = end
        ranges = [(one, until) for one, until in starts.items() if until > one]
        try:
            return [self._read(topic.name, at, one, until) for one, until in ranges]
        except Py4JJavaError as error:
            raise SourceUnavailable(
                "records can't be read; check what kafka.options and Kafka's ACLs allow",
                topic=topic.name,
                cause=innermost(error),
            ) from error

    def _read(self, topic: str, at: int, start: int, end: int) -> pa.RecordBatch:
        place = self._jvm.org.apache.kafka.common.TopicPartition(topic, at)
        self._consumer.assign(java_list(self._jvm, [place]))
        self._consumer.seek(place, start)
        found: dict[str, list[Any]] = {"key": [], "value": [], "offset": []}
        while self._consumer.position(place) < end:
            polled = self._consumer.poll(self._wait)
            if not polled.count():
                break
            for record in polled.records(place):
                if (offset := record.offset()) >= end:
                    break
                found["offset"].append(offset)
                found["key"].append(_bytes(record.key()))
                found["value"].append(_bytes(record.value()))
        return pa.RecordBatch.from_pydict(found, _SCHEMA)


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
