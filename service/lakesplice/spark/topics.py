"""What the broker says of topics, through the Kafka client that Spark's source itself uses.

One client library means one set of options: what `kafka.options` says of TLS and SASL holds for
reading records and for asking about them alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import SparkSession

from lakesplice.errors import SourceUnavailable


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker has it; per partition the earliest and the next offset."""

    name: str
    id: str
    earliest: Mapping[int, int]
    latest: Mapping[int, int]

    def behind(self, offsets: Mapping[int, int]) -> int:
        """Return how many offsets lie between the given next offsets and the topic's ends."""
        return sum(max(0, end - offsets.get(at, 0)) for at, end in self.latest.items())


class TopicCatalogue:
    """Asks the broker. Every call blocks for at most the request timeout; safe from several
    threads.
    """

    def __init__(
        self,
        session: SparkSession,
        bootstrap_servers: str,
        options: Mapping[str, str],
        timeout_seconds: float,
    ) -> None:
        jvm: Any = session._jvm  # there is no public way to the JVM of the driver
        self._jvm = jvm
        self._servers = bootstrap_servers
        properties = self._jvm.java.util.Properties()
        timeout_ms = str(int(timeout_seconds * 1000))
        settings = {
            "request.timeout.ms": timeout_ms,
            "default.api.timeout.ms": timeout_ms,
            **options,
            "bootstrap.servers": bootstrap_servers,
        }
        for name, value in settings.items():
            properties.put(name, value)
        self._properties = properties
        self._client: Any = None

    def matching(self, pattern: str) -> list[str]:
        """Return the names of the topics that match `pattern` as a whole, sorted, internal ones
        left out.
        """
        names = self._ask(lambda client: client.listTopics().names().get())
        return sorted(name for name in names if re.fullmatch(pattern, name))

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return what the broker has of the topics; one that does not exist is left out."""
        wanted = set(names)
        existing = wanted & set(self._ask(lambda client: client.listTopics().names().get()))
        if not existing:
            return {}
        described = self._ask(
            lambda client: client.describeTopics(self._list(existing)).allTopicNames().get()
        )
        partitions = {
            entry.getKey(): [info.partition() for info in entry.getValue().partitions()]
            for entry in described.entrySet()
        }
        earliest = self._offsets(partitions, "earliest")
        latest = self._offsets(partitions, "latest")
        return {
            entry.getKey(): Topic(
                entry.getKey(),
                entry.getValue().topicId().toString(),
                {at: earliest[entry.getKey(), at] for at in partitions[entry.getKey()]},
                {at: latest[entry.getKey(), at] for at in partitions[entry.getKey()]},
            )
            for entry in described.entrySet()
        }

    def close(self) -> None:
        """Give the connection back; the next question opens a new one."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _offsets(
        self, partitions: Mapping[str, Iterable[int]], which: str
    ) -> dict[tuple[str, int], int]:
        admin = self._jvm.org.apache.kafka.clients.admin
        common = self._jvm.org.apache.kafka.common
        request = self._jvm.java.util.HashMap()
        for topic, numbers in partitions.items():
            for number in numbers:
                spec = getattr(admin.OffsetSpec, which)()
                request.put(common.TopicPartition(topic, number), spec)
        # Latest means the last stable offset: what a read_committed consumer can reach.
        level = self._jvm.org.apache.kafka.common.IsolationLevel.valueOf("READ_COMMITTED")
        options = admin.ListOffsetsOptions(level)
        answer = self._ask(lambda client: client.listOffsets(request, options).all().get())
        return {
            (entry.getKey().topic(), entry.getKey().partition()): entry.getValue().offset()
            for entry in answer.entrySet()
        }

    def _list(self, names: Iterable[str]) -> Any:
        result = self._jvm.java.util.ArrayList()
        for name in names:
            result.add(name)
        return result

    def _ask(self, question: Any) -> Any:
        try:
            if self._client is None:
                admin = self._jvm.org.apache.kafka.clients.admin.AdminClient
                self._client = admin.create(self._properties)
            return question(self._client)
        except Py4JJavaError as error:
            cause = str(error.java_exception).splitlines()[0]
            raise SourceUnavailable(
                "Kafka did not answer; check kafka.bootstrap_servers and kafka.options",
                bootstrap_servers=self._servers,
                cause=cause,
            ) from error
