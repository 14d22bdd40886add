"""What the simulated service sees of Kafka: a broker that can be away, and a consumer group."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace

from lakesplice.errors import CredentialsRefused, SourceUnavailable
from lakesplice.model.offsets import Offset
from lakesplice.spark.kafka.consumer_group import GroupOffset, TopicPartition
from lakesplice.spark.kafka.topics import Topic
from tests.support.simulated import Source
from tests.support.simulated_service import Broker

Step = Callable[[], object]


class LookedAtBroker(Broker):
    """A broker that can be away, and lets the test act just after it has answered. Topics may be
    `unreadable`, since a right is missing, or `leaderless`.
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        super().__init__(sources)
        self.away = False
        self.refuses = False
        self.unreadable: set[str] = set()
        self.leaderless: set[str] = set()
        self.answered: Step = lambda: None
        self.listed: Step = lambda: None

    def matching(self, pattern: str) -> list[str]:
        if self.away:
            raise SourceUnavailable("the broker does not answer")
        if self.refuses:
            raise CredentialsRefused("Kafka refuses the connection")
        listed, self.listed = self.listed, lambda: None
        listed()
        return sorted(name for name in self.topics if re.search(pattern, name))

    def describe(
        self, names: Iterable[str], *, without_leader: Collection[str] = ()
    ) -> dict[str, Topic]:
        if self.away:
            raise SourceUnavailable("the broker does not answer")
        found = super().describe(names)
        for name in found.keys() & self.leaderless:
            found[name] = replace(found[name], earliest={}, latest={}, leaderless=(0,))
            if name not in without_leader:
                found[name].require_leaders()
        answered, self.answered = self.answered, lambda: None
        answered()
        return {
            name: replace(topic, is_readable=name not in self.unreadable)
            for name, topic in found.items()
        }

    def newest_ms(self, _topics: Iterable[Topic]) -> dict[str, int]:
        return {}

    def since_in_each(
        self, topics: Iterable[Topic], _moment_ms: int
    ) -> dict[str, dict[int, Offset]]:
        return {topic.name: dict(topic.latest) for topic in topics}


class SimulatedGroup:
    """A consumer group; `refusal` is why the broker refuses it, empty if it doesn't."""

    def __init__(self) -> None:
        self.name = "the-group"
        self.entries: dict[TopicPartition, GroupOffset] = {}
        self.refusal = ""

    def set(self, topic: str, at: int, offset: int) -> None:
        """What Kafka's own tools do."""
        self.entries[topic, at] = GroupOffset(Offset(offset), is_ours=False)

    def offsets(self) -> dict[TopicPartition, GroupOffset]:
        self._check()
        return dict(self.entries)

    def write(self, offsets: Mapping[TopicPartition, Offset]) -> None:
        self._check()
        for where, offset in offsets.items():
            self.entries[where] = GroupOffset(offset, is_ours=True)

    def _check(self) -> None:
        if self.refusal:
            raise SourceUnavailable(self.refusal)
