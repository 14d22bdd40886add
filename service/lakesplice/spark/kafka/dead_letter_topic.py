"""Sends dead letters to a topic, through the Kafka client that Spark's source itself uses."""

from __future__ import annotations

import json
import threading
import time
from base64 import b64decode
from collections.abc import Iterable
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession

from lakesplice.errors import SourceUnavailable
from lakesplice.spark.java_errors import innermost, lacks_right
from lakesplice.spark.kafka.access import BrokerAccess
from lakesplice.spark.kafka.admin import java_properties
from lakesplice.table.files.dead_letters import DeadLetter

# As large as the source's topic accepted them, if the broker accepts that here.
_REQUEST_BYTES_MAX = 128 << 20
_FACTS = ("topic", "partition", "offset", "timestamp", "reason", "detail")


class DeadLetterTopic:
    """Sends to one topic, acknowledged by all replicas; safe from several threads.

    A record has the dead letter's key, value and headers unchanged, and headers named
    `lakesplice.…` with its table, its place and the reason. A batch that is retried sends its dead
    letters again.
    """

    def __init__(self, session: SparkSession, access: BrokerAccess, topic: str) -> None:
        jvm: Any = session._jvm  # there is no public way to the JVM of the driver
        self._jvm = jvm
        self._topic = topic
        self._settings = {
            "linger.ms": "0",
            "request.timeout.ms": access.timeout_ms,
            "delivery.timeout.ms": access.timeout_ms,
            "max.block.ms": access.timeout_ms,
            "max.request.size": str(_REQUEST_BYTES_MAX),
            # Each letter by itself. If a topic takes only smaller batches than those that are sent,
            # Kafka's client may halve the same batch for ever.
            "batch.size": "0",
            **access.options,
            "acks": "all",
            "bootstrap.servers": access.servers,
        }
        self._seconds_max = 2 * access.timeout_seconds
        self._producer: Any = None
        self._opening = threading.Lock()

    def send(self, table: str, dead_letters: Iterable[DeadLetter]) -> None:
        """Send dead letters and return once all are acknowledged; `SourceUnavailable` if one isn't.

        Blocks for at most about three times the timeout; some may have been sent even if it raises.
        """
        try:
            producer = self._opened()
            answers = [producer.send(self._record(table, letter)) for letter in dead_letters]
            unit, ends = (
                self._jvm.java.util.concurrent.TimeUnit,
                time.monotonic() + self._seconds_max,
            )
            for answer in answers:
                left = max(0.0, ends - time.monotonic())
                answer.get(int(left * 1000), unit.MILLISECONDS)
        except Py4JJavaError as error:
            cause = innermost(error)
            missing = {"right": f"WRITE on topic {self._topic}"} if lacks_right(error) else {}
            raise SourceUnavailable(
                "Kafka refused dead letters; check kafka.dead_letter_topic",
                topic=self._topic,
                **missing,
                cause=cause,
            ) from error

    def close(self) -> None:
        """Give the connection back."""
        if self._producer is not None:
            self._producer.close(self._jvm.java.time.Duration.ofSeconds(1))
            self._producer = None

    def _opened(self) -> Any:
        with self._opening:
            if self._producer is None:
                properties = java_properties(self._jvm, self._settings)
                serializer = self._jvm.org.apache.kafka.common.serialization.ByteArraySerializer
                producer = self._jvm.org.apache.kafka.clients.producer.KafkaProducer
                self._producer = producer(properties, serializer(), serializer())
            return self._producer

    def _record(self, table: str, letter: DeadLetter) -> Any:
        record = self._jvm.org.apache.kafka.clients.producer.ProducerRecord(
            self._topic, letter.key, letter.value
        )
        headers = record.headers()
        for name, value in json.loads(letter.headers):
            headers.add(name, None if value is None else b64decode(value))
        headers.add("lakesplice.table", table.encode())
        for name in _FACTS:
            headers.add(f"lakesplice.{name}", str(getattr(letter, name)).encode())
        return record
