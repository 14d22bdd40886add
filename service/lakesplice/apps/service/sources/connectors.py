"""How long ago each connector last wrote to Kafka.

If a connector died, its tables still look complete: every record in Kafka is applied. Only the age
of its newest record shows the failure, and only heartbeats distinguish it from a source in which
nothing happens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from lakesplice.apps.service.activity import ConnectorSighting
from lakesplice.apps.service.driver import Driver
from lakesplice.errors import SourceUnavailable
from lakesplice.model.moments import EpochMs
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.telemetry import catalogue as metric

_WITHOUT_PREFIX = "(none)"


class Connectors:
    """Shows the age of each connector's newest record; blocks on the broker."""

    def __init__(self, driver: Driver, catalogue: TopicCatalogue) -> None:
        self._driver = driver
        self._catalogue = catalogue
        self._shown: set[tuple[str, str]] = set()
        self._unknown = False
        self._moved: dict[str, tuple[int, EpochMs]] = {}

    def look(self, topics: Mapping[str, Topic]) -> None:
        """Update the ages; `topics` are those that are read. A broker that can't give them (before
        3.0) is asked once. History tables beside others have the same connectors.
        """
        if self._unknown or not topics or self._driver.feeds_histories:
            return
        try:
            self._look(topics)
        except SourceUnavailable as error:
            # One that gave them before is only away.
            self._unknown = not self._shown
            self._driver.log.warning("connector-ages-unknown", error=str(error))

    def _look(self, topics: Mapping[str, Topic]) -> None:
        prefix = self._driver.settings.kafka.heartbeat_prefix
        connectors = {connector_of(topic) for topic in topics}
        beats = {f"{prefix}.{name}" for name in connectors}
        beating = self._catalogue.describe(beats, without_leader=beats)
        looked = [one for one in (*topics.values(), *beating.values()) if not one.leaderless]
        newest = self._catalogue.newest_ms(looked)
        self._note_ends(looked)
        moments: dict[tuple[str, str], int] = defaultdict(int)
        for topic, moment_ms in newest.items():
            name = topic.removeprefix(f"{prefix}.") if topic in beating else connector_of(topic)
            labels = name, "yes" if f"{prefix}.{name}" in beating else "no"
            moments[labels] = max(moments[labels], min(moment_ms, self._moved[topic][1]))
        for labels in self._shown - moments.keys():
            self._show(labels, None)
        for labels, moment_ms in moments.items():
            self._show(labels, moment_ms / 1000)
        self._shown = set(moments)
        self._driver.activity.show_connectors(
            tuple(
                ConnectorSighting(name, heartbeats == "yes", EpochMs(moment_ms))
                for (name, heartbeats), moment_ms in sorted(moments.items())
            )
        )

    def _note_ends(self, topics: Sequence[Topic]) -> None:
        """Note when each topic was first seen to end where it ends. A record's time may be later,
        if its producer's clock is ahead, and would hide that no further record comes.
        """
        now_ms, before = self._driver.clock.now_ms(), self._moved
        ends = {topic.name: sum(topic.latest.values()) for topic in topics}
        self._moved = {
            name: before[name] if name in before and before[name][0] == end else (end, now_ms)
            for name, end in ends.items()
        }

    def _show(self, labels: tuple[str, str], moment: float | None) -> None:
        connector, heartbeats = labels
        self._driver.metrics.since(
            metric.CONNECTOR_AGE, moment, connector=connector, heartbeats=heartbeats
        )


def connector_of(topic: str) -> str:
    """Return the beginning of the names of a connector's topics, which is followed by database and
    table.
    """
    prefix, dots, _ = topic.rpartition(".")[0].rpartition(".")
    return prefix if dots else _WITHOUT_PREFIX
