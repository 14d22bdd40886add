"""Which topics the query reads, and from where: the manifests say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.newcomers import Newcomers
from lakesplice.apps.service.tables import ServiceTables, unborn_source
from lakesplice.errors import LakespliceError, UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.source_check import check_source
from lakesplice.spark.query import Offsets
from lakesplice.spark.topics import Topic, TopicCatalogue
from lakesplice.table.reset import TopicStart
from lakesplice.telemetry import catalogue as metric


@dataclass(frozen=True)
class Outlook:
    """What can be read: each partition's first offset, and each topic's offsets to go."""

    starts: Offsets
    lags: Mapping[str, int]


class Sources:
    """Looks at the broker's topics and takes up their tables; blocks on broker and store."""

    def __init__(self, driver: Driver, tables: ServiceTables, catalogue: TopicCatalogue) -> None:
        self._driver = driver
        self._tables = tables
        self._catalogue = catalogue
        self._broken: set[str] = set()
        self._newcomers = Newcomers(driver, tables)

    def look(self) -> Outlook:
        """Return what can be read now, with the tables that are new taken up.

        Tables that can't go on are parked. None is refused any more: what is read from here on
        starts where the tables stand.
        """
        starts: dict[str, dict[int, int]] = {}
        lags = {}
        for name, topic in self._topics().items():
            try:
                offsets = self._start(topic)
            except LakespliceError as error:
                self._report(name, error)
                continue
            if offsets:
                starts[name] = offsets
                lags[name] = topic.behind(offsets)
        return Outlook(starts, lags)

    def starts(self, names: Sequence[str], since_ms: int | None) -> dict[str, TopicStart]:
        """Return where topics begin, or where what was written at a moment or later does.

        `UsageError` if the broker hasn't got one; `SourceUnavailable` if it doesn't answer.
        """
        found = self._catalogue.describe(names)
        if missing := [name for name in names if name not in found]:
            raise UsageError("the broker has no such topic", topics=missing)
        return {name: self._start_of(topic, since_ms) for name, topic in found.items()}

    def _start_of(self, topic: Topic, since_ms: int | None) -> TopicStart:
        earliest = topic.earliest
        offsets = earliest if since_ms is None else self._catalogue.since(topic, since_ms)
        return TopicStart(topic.id, offsets, self._tables.shard(topic.name))

    def peek(self) -> Outlook:
        """Return what could be read now; takes nothing up and parks nothing.

        A silent source makes no batch: that its tables are fresh all the same is noted here.
        """
        moment = self._driver.clock.now_ms() / 1000
        starts: dict[str, dict[int, int]] = {}
        lags = {}
        for name, topic in self._topics().items():
            table = self._tables.get(name)
            if name in self._broken or (table is not None and (table.parked or table.rests)):
                continue
            starts[name] = table.next_offsets(topic.earliest) if table else dict(topic.earliest)
            lags[name] = topic.behind(starts[name])
            if table is not None:
                table.sight(topic, moment)
        if not any(lags.values()):
            self._driver.metrics.since(metric.LAST_BATCH, moment)
        return Outlook(starts, lags)

    def any_rests(self) -> bool:
        """Whether some table rests: what it has to read is not among what could be read now."""
        return any(table.rests for table in self._tables.of_topics())

    def _topics(self) -> dict[str, Topic]:
        pattern = self._driver.settings.kafka.topic_pattern.pattern
        matching = self._catalogue.matching(pattern)
        return self._catalogue.describe([topic for topic in matching if self._read(topic)])

    def _read(self, topic: str) -> bool:
        try:
            wanted = self._driver.settings.reads(TableName.from_topic(topic))
        except UsageError:
            return True  # what it lacks is told where its table is taken up
        return wanted and not self._newcomers.leaves_out(topic)

    def _start(self, topic: Topic) -> dict[int, int]:
        if self._tables.get(topic.name) is None:
            self._warn_of_late_start(topic)
        table = self._tables.take_up(
            topic.name, unborn_source(topic.name, topic.id, topic.earliest)
        )
        table.refused = False
        self._newcomers.park_if_refused(table)
        if table.parked or table.rests:
            return {}
        reason = check_source(table.source, topic.name, topic.id, topic.earliest, topic.latest)
        if reason is not None:
            table.park(reason)
            return {}
        return table.next_offsets(topic.earliest)

    def _warn_of_late_start(self, topic: Topic) -> None:
        """A topic that lost its beginning may still make a whole table, if it has a snapshot."""
        dropped = {at: offset for at, offset in topic.earliest.items() if offset}
        if dropped:
            self._driver.log.warning("topic-begins-late", topic=topic.name, earliest=dropped)

    def _report(self, topic: str, error: LakespliceError) -> None:
        if topic not in self._broken:
            self._broken.add(topic)
            self._driver.log.error("table-not-opened", topic=topic, error=str(error))
