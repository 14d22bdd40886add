"""Which topics the query reads, and from which offsets: those in the manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import RetryPauses
from lakesplice.apps.service.sources.connectors import Connectors
from lakesplice.apps.service.sources.lost_records import deal_with_loss
from lakesplice.apps.service.sources.new_topics import NewTopics
from lakesplice.apps.service.sources.past_freshness import PastFreshness
from lakesplice.apps.service.tables import ServiceTables, initial_source
from lakesplice.config import HistorySettings
from lakesplice.errors import (
    FencedError,
    MissingOffsetsError,
    SourceUnavailable,
    UnsupportedError,
    UsageError,
)
from lakesplice.model.driver_status import TopicCondition, TopicState
from lakesplice.model.moments import EpochMs, EpochSeconds, epoch_seconds
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.planning.sources.source_check import check_source
from lakesplice.planning.sources.topic_lanes import TopicBacklog
from lakesplice.spark.kafka.query import TopicOffsets
from lakesplice.spark.kafka.topics import Topic, TopicCatalogue
from lakesplice.table.explaining.record_values import TopicRecords
from lakesplice.table.ingest.reset import TopicStart

OTHER_TOPICS_MAX = 20
_ANY = ".*"
_UNNAMED = (
    "its name has more than three parts, so its first events must show which table it belongs to"
)


@dataclass(frozen=True)
class ReadableTopics:
    """What can be read: each partition's first offset, and what each topic has waiting."""

    starts: TopicOffsets
    backlogs: Mapping[str, TopicBacklog]


@dataclass
class _Unopened:
    """A topic whose table could not be opened. Without `rest`, only another configuration helps."""

    topic: Topic
    reason: str
    rest: RetryPauses | None = None

    @property
    def rests(self) -> bool:
        return self.rest is not None and self.rest.is_on

    @property
    def condition(self) -> TopicCondition:
        if self.rest is None:
            return TopicCondition(TopicState.REFUSED, self.reason)
        return TopicCondition(TopicState.RESTING, self.reason, "", self.rest.retry_ms)


class TopicSelection:
    """Chooses among the broker's topics and opens their tables; blocks on broker and store.

    Used by one thread, except for `starts`.
    """

    def __init__(
        self,
        driver: Driver,
        tables: ServiceTables,
        catalogue: TopicCatalogue,
        records: TopicRecords | None = None,
    ) -> None:
        """`records` reads records of topics for commands."""
        self.records = records
        self.tables = self._tables = tables
        self._driver = driver
        self._catalogue = catalogue
        self._unopened: dict[str, _Unopened] = {}
        self._excluded: dict[str, str] = {}
        self._matching: Sequence[str] = ()
        self._newcomers = NewTopics(driver, tables)
        self._past = PastFreshness(driver, tables, catalogue)
        self._connectors = Connectors(driver, catalogue)
        self.has_looked = False
        self.other_topics: tuple[str, ...] = ()

    def look(self) -> ReadableTopics:
        """Return what can be read now; tables that are new are opened.

        Tables that can't continue are parked; `MissingOffsetsError` if the settings say to stop for
        one of them. No table is refused any more: what is read from here on begins at the tables'
        offsets.
        """
        starts: dict[str, dict[int, Offset]] = {}
        backlogs = {}
        now, topics = epoch_seconds(self._driver.clock.now_ms()), self._topics()
        # In order of name, so that of two topics for one new table always the same one gets it.
        for name, topic in sorted(topics.items()):
            offsets = self._try_to_start(topic)
            if offsets:
                starts[name] = offsets
                backlogs[name] = self._backlog(topic, offsets)
        self._note_ends(topics, now)
        return ReadableTopics(starts, backlogs)

    def conditions(self) -> dict[str, TopicCondition]:
        """Return the state of each topic that matched when the broker was last asked. If none did,
        `other_topics` are those that it has.
        """
        names, shown = self._tables.names, self._matching
        if self._driver.feeds_histories:
            # A topic with two tables has two states; one whose tables aren't known has one.
            shown = [one for one in shown if not names.is_unknown(one) and self._concerns(one)]
        return {topic: self._standing(topic) for topic in shown}

    def _standing(self, topic: str) -> TopicCondition:
        if topic in self._excluded:
            return TopicCondition(TopicState.EXCLUDED, self._excluded[topic])
        if topic in self._unopened:
            return self._unopened[topic].condition
        if self._tables.names.is_unknown(topic):
            return TopicCondition(TopicState.WAITING, _UNNAMED)
        table = self._tables.get(topic)
        return TopicCondition(TopicState.WAITING, "it is new") if table is None else table.condition

    def table_of(self, topic: str) -> str:
        """Return the table that the topic feeds, or would feed; empty if it is refused, or nobody
        knows its table.
        """
        table = self._tables.get(topic)
        if table is not None:
            return str(table.name)
        unopened = self._unopened.get(topic)
        is_refused = unopened is not None and unopened.condition.state is TopicState.REFUSED
        if is_refused or self._tables.names.is_unknown(topic):
            return ""
        with suppress(UsageError):
            return str(self._driver.settings.target(self._tables.names.of(topic)))
        return ""

    def any_due(self) -> bool:
        """Whether a table that rested, and is left out of the queries, can continue now.

        For one that still can't be written, opened or read no query is restarted.
        """
        tables = self._tables.of_topics()
        due = [one.may_resume() for one in tables if one.topic not in self._unopened]
        opened = [bool(self._try_to_start(one.topic)) for one in self._resting_unopened()]
        return any(due) or any(opened)

    def _resting_unopened(self) -> list[_Unopened]:
        return [one for one in self._unopened.values() if one.rest is not None]

    def starts(self, names: Sequence[str], since_ms: EpochMs | None) -> dict[str, TopicStart]:
        """Return the first offsets of topics, or those of records written at a moment or later.

        `UsageError` if the broker lacks one; `SourceUnavailable` if it doesn't answer.
        """
        found = self._catalogue.describe(names)
        if missing := [name for name in names if name not in found]:
            raise UsageError("the broker has no such topic", topics=missing)
        return {name: self._start_of(topic, since_ms) for name, topic in found.items()}

    def _start_of(self, topic: Topic, since_ms: EpochMs | None) -> TopicStart:
        earliest = topic.earliest
        offsets = earliest if since_ms is None else self._catalogue.since(topic, since_ms)
        shard = self._tables.shard(topic.name)
        return TopicStart(topic.id, offsets, shard, earliest, topic.latest)

    def peek(self) -> ReadableTopics:
        """Return what could be read now, without opening or parking tables. Tables whose pause has
        ended are left to `any_due`.

        A topic without new records makes no batch; that its tables are fresh all the same is
        recorded here.
        """
        now, topics = epoch_seconds(self._driver.clock.now_ms()), self._topics()
        starts: dict[str, dict[int, Offset]] = {}
        backlogs = {}
        for name, topic in topics.items():
            table = self._tables.get(name)
            if name in self._unopened:
                self._unopened[name].topic = topic
            left_out = table is not None and (table.parked or table.is_left_out)
            if left_out or name in self._unopened or topic.leaderless:
                continue
            starts[name] = table.next_offsets(topic.earliest) if table else dict(topic.earliest)
            backlogs[name] = self._backlog(topic, starts[name])
        self._note_ends(topics, now)
        return ReadableTopics(starts, backlogs)

    def _note_ends(self, topics: Mapping[str, Topic], moment: EpochSeconds) -> None:
        """Record how far topics reached at a moment, and what that says of tables and connectors;
        nobody knows the ends of a topic without a leader.
        """
        known = {name: topic for name, topic in topics.items() if not topic.leaderless}
        for name, topic in known.items():
            table = self._tables.get(name)
            if table is not None:
                table.note_topic_ends(topic, moment)
        self._past.set_for(known)
        self._connectors.look(known)

    def _backlog(self, topic: Topic, offsets: Offsets) -> TopicBacklog:
        waiting, table = topic.behind(offsets), self._tables.get(topic.name)
        read = sum(max(0, offsets.get(at, 0) - start) for at, start in topic.earliest.items())
        priority = 0 if table is None else self._driver.settings.priority(table.origin)
        return TopicBacklog(waiting, priority, is_first_load=read < waiting)

    def any_rests(self) -> bool:
        """Whether a table rests, so that its records are not among what can be read. One that
        failed too often doesn't count.
        """
        tables = any(t.is_left_out and not t.is_given_up for t in self._tables.of_topics())
        unopened = (one.rest for one in self._resting_unopened())
        return tables or any(rest is not None and not rest.is_given_up for rest in unopened)

    def _topics(self) -> dict[str, Topic]:
        pattern = self._driver.settings.kafka.topic_pattern.pattern
        matching = [one for one in self._catalogue.matching(pattern) if self._concerns(one)]
        self._note_matching(matching)
        names = self._tables.names
        if unknown := [topic for topic in matching if names.is_unknown(topic)]:
            found = self._catalogue.describe(unknown, without_leader=unknown).values()
            names.learn(topic for topic in found if not topic.leaderless)
        read = [topic for topic in matching if not names.is_unknown(topic) and self._read(topic)]
        return self._catalogue.describe(read, without_leader=read)

    def _concerns(self, topic: str) -> bool:
        """Whether the topic belongs here: with history tables beside others, if it has one."""
        settings, names = self._driver.settings, self._tables.names
        if not isinstance(settings, HistorySettings) or names.is_unknown(topic):
            return True
        try:
            return settings.has_history(names.of(topic))
        except UsageError:
            return False  # the error is reported where the table of current rows is opened

    def _note_matching(self, matching: Sequence[str]) -> None:
        self._matching = tuple(matching)
        for topic in self._unopened.keys() - set(matching):
            del self._unopened[topic]
        held = {table.topic for table in self._tables.of_topics()}
        for topic in held - set(matching):
            self._tables.close_topic(topic)
        if self._driver.feeds_histories:
            self.has_looked = True
            return  # whether any topic matches was said of the tables of current rows
        others = () if matching else tuple(self._catalogue.matching(_ANY))
        if others != self.other_topics or (not matching and not self.has_looked):
            self._say_nothing_matches(others)
        self.other_topics, self.has_looked = others, True

    def _say_nothing_matches(self, others: Sequence[str]) -> None:
        pattern = self._driver.settings.kafka.topic_pattern.pattern
        if self._matching:
            self._driver.log.info("topics-match", pattern=pattern, topics=len(self._matching))
        else:
            self._driver.log.warning(
                "no-topic-matches",
                pattern=pattern,
                topics=len(others),
                such_as=list(others[:OTHER_TOPICS_MAX]),
                right="a topic without the ACL DESCRIBE isn't among them",
            )

    def _read(self, topic: str) -> bool:
        self._excluded.pop(topic, None)
        try:
            wanted = self._driver.settings.reads(self._tables.names.of(topic))
        except UsageError:
            return True  # the error is reported where its table is opened
        if not wanted:
            self._excluded[topic] = "`read: false` under `tables`"
        elif self._newcomers.leaves_out(topic):
            self._excluded[topic] = "it has no table, and schema_changes.create_table is ignore"
        elif self._newcomers.is_filled(topic):
            self._excluded[topic] = "`lakesplice bootstrap` fills its table, which nobody sees yet"
        return topic not in self._excluded

    def _try_to_start(self, topic: Topic) -> dict[int, Offset]:
        """Return the offsets from which the topic is read; empty if its table can't continue
        now.
        """
        before = self._unopened.get(topic.name)
        if before is not None and before.rests:
            return {}
        try:
            offsets = self._start(topic)
        except (FencedError, MissingOffsetsError):
            raise
        except Exception as error:  # whatever it is concerns one table, and the others continue
            self._report(topic, error)
            return {}
        self._unopened.pop(topic.name, None)
        return offsets

    def _start(self, topic: Topic) -> dict[int, Offset]:
        topic.require_leaders()
        if not topic.is_readable:
            raise SourceUnavailable(
                "the user of Kafka lacks a right; give it the ACL (docs/kafka-security.md)",
                right=f"READ on topic {topic.name}",
            )
        if self._tables.get(topic.name) is None:
            self._warn_of_late_start(topic)
        table = self._tables.open_topic(
            topic.name, initial_source(topic.name, topic.id, topic.earliest)
        )
        if table.is_left_out and not table.may_resume():
            return {}
        table.refused = False
        self._newcomers.park_if_refused(table)
        if table.parked:
            return {}
        reason = check_source(table.source, topic.name, topic.id, topic.earliest, topic.latest)
        if reason is not None and not deal_with_loss(self._driver, table, topic, reason):
            return {}
        offsets = table.next_offsets(topic.earliest)
        if not topic.behind(offsets):
            table.forget_failures()  # nothing is left that could fail
        return offsets

    def _warn_of_late_start(self, topic: Topic) -> None:
        """A topic that lost its first records can still give a whole table, if it has a
        snapshot.
        """
        dropped = {at: offset for at, offset in topic.earliest.items() if offset}
        if dropped:
            self._driver.log.warning("topic-begins-late", topic=topic.name, earliest=dropped)

    def _report(self, topic: Topic, error: Exception) -> None:
        """Record why a topic has no table; what can be repaired elsewhere is retried."""
        reason = str(error) or repr(error)
        known = self._unopened.get(topic.name)
        if known is None or known.reason != reason:
            self._driver.log.warning("table-not-opened", topic=topic.name, error=reason)
        rest = None
        if not isinstance(error, UsageError | UnsupportedError):
            rest = (known.rest if known else None) or RetryPauses(self._driver.clock)
            rest.begin(reason)
        self._unopened[topic.name] = _Unopened(topic, reason, rest)
