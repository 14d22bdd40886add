"""Asks the broker for its topics: their names, partitions and offsets."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeVar

from lakesplice.errors import SourceUnavailable
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.spark.kafka.admin import KafkaAdmin, java_list, misread

_LISTING = re.compile(r"\(name=([^,]+), topicId=([^,]+), internal=(true|false)\)")
TOPIC_DESCRIPTION = re.compile(
    r"\(name=([^,]+), internal=(?:true|false), partitions=(.*?),"
    r" authorizedOperations=(\[.*?\]|null)\)"
)
_PARTITION = re.compile(r"\(partition=(\d+), leader=(.*?), replicas=")
LEADERLESS = ("null", "none")
_OFFSET = re.compile(r"[{ ]([^ =]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+),")
_NEWEST = re.compile(r"[{ ]([^ =]+)-(\d+)=ListOffsetsResultInfo\(offset=-?\d+, timestamp=(-?\d+),")

_Question = TypeVar("_Question", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as the broker has it; per partition the earliest and the next offset. `is_readable`
    unless the broker says that we may not read its records. If there are `leaderless` partitions,
    which no broker serves, no partition's offsets are asked for.
    """

    name: str
    id: str
    earliest: Offsets
    latest: Offsets
    is_readable: bool = True
    leaderless: tuple[int, ...] = ()

    def require_leaders(self) -> None:
        """Raise `SourceUnavailable` if a partition has no leader."""
        if self.leaderless:
            raise SourceUnavailable(
                "partitions of a topic have no leader; start the brokers that have their replicas",
                topic=self.name,
                partitions=self.leaderless,
            )

    @property
    def fullest(self) -> int:
        """The partition with the most records."""
        return max(self.latest, key=lambda at: self.latest[at] - self.earliest[at])

    def behind(self, offsets: Offsets) -> int:
        """Return how many offsets there are between the given next offsets and the topic's ends."""
        return sum(max(0, end - offsets.get(at, 0)) for at, end in self.latest.items())


@dataclass(frozen=True, slots=True)
class _Described:
    partitions: tuple[int, ...]
    leaderless: tuple[int, ...]
    is_readable: bool


class TopicCatalogue:
    """Asks the broker. Every call blocks for at most the request timeout; safe from several
    threads.
    """

    def __init__(self, admin: KafkaAdmin) -> None:
        self._admin = admin
        self._jvm = admin.jvm
        client = admin.jvm.org.apache.kafka.clients.admin
        self._with_rights = client.DescribeTopicsOptions().includeAuthorizedOperations(True)
        # Latest means the last stable offset: what a read_committed consumer can reach.
        level = admin.jvm.org.apache.kafka.common.IsolationLevel.valueOf("READ_COMMITTED")
        self._committed = client.ListOffsetsOptions(level)
        self._requests: dict[str, tuple[object, Any]] = {}

    def matching(self, pattern: str) -> list[str]:
        """Return the names of the topics that match `pattern` as a whole, sorted, without internal
        ones.
        """
        listed = self._admin.ask(lambda client: client.listTopics().listings().get())
        names = [name for name, _id, internal in _LISTING.findall(listed) if internal == "false"]
        return sorted(name for name in names if re.fullmatch(pattern, name))

    def describe(
        self, names: Iterable[str], *, without_leader: Collection[str] = ()
    ) -> dict[str, Topic]:
        """Return the topics as the broker has them; a topic that doesn't exist is left out.

        `SourceUnavailable` if a topic has partitions without a leader, unless it is one of
        `without_leader`. Kafka's client would wait for the leader until its timeout, and then give
        no answer for any topic.
        """
        wanted = frozenset(names)
        if not wanted:
            return {}
        listed = _LISTING.findall(
            self._admin.ask(lambda client: client.listTopics().listings().get())
        )
        ids = {name: topic_id for name, topic_id, _internal in listed}
        existing = wanted & ids.keys()
        if not existing:
            return {}
        described = self._described(existing)
        led = {name: one.partitions for name, one in described.items() if not one.leaderless}
        earliest = self._offsets(led, "earliest")
        latest = self._offsets(led, "latest")
        topics = {
            name: Topic(
                name,
                ids[name],
                {at: Offset(earliest[name, at]) for at in led.get(name, ())},
                {at: Offset(latest[name, at]) for at in led.get(name, ())},
                one.is_readable,
                one.leaderless,
            )
            for name, one in described.items()
        }
        for name in topics.keys() - set(without_leader):
            topics[name].require_leaders()
        return topics

    def since(self, topic: Topic, moment_ms: EpochMs) -> dict[int, Offset]:
        """Return per partition the first offset of a record from a moment or later, by the records'
        own times; the next offset if there is none.
        """
        return self.since_in_each([topic], moment_ms)[topic.name]

    def since_in_each(
        self, topics: Sequence[Topic], moment_ms: EpochMs
    ) -> dict[str, dict[int, Offset]]:
        """Return the same for several topics, by their names."""
        pairs = [(topic.name, at) for topic in topics for at in sorted(topic.latest)]
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.forTimestamp(moment_ms)
        found = self._listed(self._specified(pairs, spec), pairs) if pairs else {}
        return {
            topic.name: {
                at: end if (first := found[topic.name, at]) < 0 else Offset(first)
                for at, end in topic.latest.items()
            }
            for topic in topics
        }

    def newest_ms(self, topics: Sequence[Topic]) -> dict[str, int]:
        """Return when the newest record of each topic was written, by the records' own times, in
        milliseconds since the epoch; a topic without records is left out.
        """
        pairs = [(topic.name, at) for topic in topics for at in sorted(topic.latest)]
        if not pairs:
            return {}
        spec = self._jvm.org.apache.kafka.clients.admin.OffsetSpec.maxTimestamp()
        request = self._specified(pairs, spec)
        answer = self._admin.ask(lambda client: client.listOffsets(request).all().get())
        found: dict[str, int] = {}
        for name, _, time_ms in _NEWEST.findall(answer):
            if int(time_ms) >= 0:
                found[name] = max(int(time_ms), found.get(name, 0))
        return found

    def close(self) -> None:
        """Give the connection back; the next question opens a new one."""
        self._admin.close()

    def _described(self, names: Set[str]) -> dict[str, _Described]:
        request = self._remembered("describe", tuple(sorted(names)), self._names)
        answer = self._admin.ask(
            lambda client: client.describeTopics(request, self._with_rights).allTopicNames().get()
        )
        found = {
            name: _Described(
                *_numbers(partitions),
                (allowed := operations_in(operations)) is None or "READ" in allowed,
            )
            for name, partitions, operations in TOPIC_DESCRIPTION.findall(answer)
        }
        if found.keys() != names or not all(one.partitions for one in found.values()):
            raise misread("describeTopics", answer)
        return found

    def _offsets(
        self, partitions: Mapping[str, Sequence[int]], which: str
    ) -> dict[tuple[str, int], int]:
        asked = tuple((name, at) for name in sorted(partitions) for at in partitions[name])
        if not asked:
            return {}
        request = self._remembered(which, asked, lambda pairs: self._at(pairs, which))
        return self._listed(request, asked)

    def _listed(self, request: Any, asked: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        answer = self._admin.ask(
            lambda client: client.listOffsets(request, self._committed).all().get()
        )
        found = {(name, int(at)): int(offset) for name, at, offset in _OFFSET.findall(answer)}
        if found.keys() != set(asked):
            raise misread("listOffsets", answer)
        return found

    def _remembered(
        self, question: str, asked: _Question, build: Callable[[_Question], Any]
    ) -> Any:
        """The Java object to ask with: usually the same one before each batch."""
        known = self._requests.get(question)
        if known is None or known[0] != asked:
            known = self._requests[question] = asked, build(asked)
        return known[1]

    def _names(self, names: Iterable[str]) -> Any:
        return java_list(self._jvm, names)

    def _at(self, pairs: Iterable[tuple[str, int]], which: str) -> Any:
        spec = getattr(self._jvm.org.apache.kafka.clients.admin.OffsetSpec, which)()
        return self._specified(pairs, spec)

    def _specified(self, pairs: Iterable[tuple[str, int]], spec: Any) -> Any:
        """A Java map from each partition to `spec`."""
        partitions = self._remembered("partitions", tuple(sorted(pairs)), self._partitions)
        # By Spark's Guava: to put each partition into a map is a round trip for each.
        guava = self._jvm.com.google.common
        return guava.collect.Maps.asMap(partitions, guava.base.Functions.constant(spec))

    def _partitions(self, pairs: Iterable[tuple[str, int]]) -> Any:
        partition = self._jvm.org.apache.kafka.common.TopicPartition
        made = self._jvm.java.util.HashSet()
        for topic, number in pairs:
            made.add(partition(topic, number))
        return made


def _numbers(partitions: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the numbers of partitions, and of those without a leader."""
    found = [(int(at), leader) for at, leader in _PARTITION.findall(partitions)]
    dark = tuple(at for at, leader in found if leader.startswith(LEADERLESS))
    return tuple(at for at, _ in found), dark


def operations_in(text: str) -> frozenset[str] | None:
    """Return what we may do with a topic, from its description; None if the broker didn't say."""
    return None if text == "null" else frozenset(text.strip("[]").replace(" ", "").split(","))
