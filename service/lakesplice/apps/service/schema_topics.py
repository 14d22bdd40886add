"""Reads what the source's connectors report about types and DROPs of tables. New records are read
before each batch; `planning/sources/schema_reports.py` judges them.

The topics are read up to their ends after the ends of a batch are fixed, so a schema change that
the connector reported before a change of the batch is usually known. But Kafka promises no order
between topics: a schema change that becomes visible later is noticed in the next batch, and tables
that applied later changes with other types are parked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access
from lakesplice.config import Settings
from lakesplice.config.sections.schema_topics import SchemaChangeTopicSettings
from lakesplice.formats.events import TypeHistory
from lakesplice.formats.events.ddl import MAXWELLS_MARK, SchemaChange, read_schema_change
from lakesplice.formats.events.debezium import ddl_types as debezium_types
from lakesplice.formats.events.maxwell import ddl_types as maxwell_types
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.sources.dropped_tables import DropHistory
from lakesplice.planning.sources.schema_reports import SchemaReports, TypesOf, reporting_topic
from lakesplice.spark.kafka.schema_topics import SchemaTopicReader
from lakesplice.spark.kafka.topics import Topic

# Topic, per partition the first offset and one after the last, and what the text of records must
# have that are asked for: their partitions, offsets and values, in order.
Read = Callable[[str, OffsetRanges, str | None], list[tuple[int, Offset, bytes | None]]]


@dataclass(frozen=True)
class _Form:
    """How a topic reports: how its history gives the types of columns, whether it uses all
    partitions, and what its records contain if the topic has others, too.
    """

    types_of: TypesOf
    partitioned: bool = False
    mark: str | None = None


@dataclass
class _Progress:
    """What was read of a topic: the offsets to continue from, and what the records reported."""

    topic_id: str
    reports: SchemaReports
    next_offsets: dict[int, Offset] = field(default_factory=dict)


class SchemaTopics:
    """The configured topics of schema changes; `log` is a structlog logger. Safe from several
    threads.
    """

    def __init__(self, settings: SchemaChangeTopicSettings, read: Read, log: Any) -> None:
        debezium = _Form(partial(debezium_types.types_of, handling=settings.handling))
        self._forms = dict.fromkeys(settings.names, debezium)
        for topic in settings.maxwell:
            mark = MAXWELLS_MARK if fnmatchcase(topic.name, topic.tables) else None
            self._forms[topic.name] = _Form(maxwell_types.types_of, partitioned=True, mark=mark)
        self.names = tuple(self._forms)
        self._globs = tuple((topic.name, topic.tables) for topic in settings.maxwell)
        self._read = read
        self._log = log
        self._topics: dict[str, _Progress] = {}
        self._warned: set[str] = set()
        self._busy = threading.Lock()

    def look(self, topics: Mapping[str, Topic]) -> None:
        """Read up to the present ends of the topics; blocks.

        `SourceUnavailable` if one can't be read.
        """
        with self._busy:
            for name in self.names:
                topic = topics.get(name)
                if topic is None:
                    self._warn(name, "schema-topic-missing", topic=name)
                else:
                    self._look(topic)

    def types(self, source: SourceState, origin: TableName) -> TypeHistory | None:
        """Return the types of a table's columns, where `origin` is the source's name of the table;
        None if no topic reports it.
        """
        with self._busy:
            reports = self._reports_of(source)
            return None if reports is None else reports.types(source, origin)

    def drops(self, source: SourceState, origin: TableName) -> DropHistory:
        """Return the reported drops of the table that the source calls `origin`."""
        with self._busy:
            reports = self._reports_of(source)
            return DropHistory() if reports is None else reports.drops(origin)

    def note_handled_drops(
        self, source: SourceState, origin: TableName, before: int, *, parked: bool = False
    ) -> None:
        """Record that a table's drops with numbers below `before` were handled, maybe by parking
        it.
        """
        with self._busy:
            reports = self._reports_of(source)
            if reports is not None:
                reports.note_handled_drops(origin, before, parked=parked)

    def overtaken(
        self, source: SourceState, origin: TableName, schema: TableSchema
    ) -> ParkReason | None:
        """Return why a table can't continue; see `SchemaReports.take_overtaken`."""
        with self._busy:
            reports = self._reports_of(source)
            return None if reports is None else reports.take_overtaken(source, origin, schema)

    def _reports_of(self, source: SourceState) -> SchemaReports | None:
        read = self._topics.get(reporting_topic(source.topic, self._globs))
        return None if read is None else read.reports

    def _look(self, topic: Topic) -> None:
        form, read = self._forms[topic.name], self._topics.get(topic.name)
        if read is None or read.topic_id != topic.id:
            read = self._topics[topic.name] = _Progress(topic.id, self._begin(topic, form))
        if not form.partitioned and any(
            end > topic.earliest.get(at, 0) for at, end in topic.latest.items() if at
        ):
            self._warn(f"{topic.name}/", "schema-topic-partitions", topic=topic.name)
        ends = topic.latest if form.partitioned else {0: topic.latest.get(0, Offset(0))}
        ranges = {
            at: OffsetRange(start, end)
            for at, end in ends.items()
            if end > (start := read.next_offsets.get(at, topic.earliest.get(at, Offset(0))))
        }
        fresh: dict[int, list[SchemaChange]] = {}
        for at, offset, value in self._read(topic.name, ranges, form.mark) if ranges else ():
            change = self._parsed(topic.name, at, offset, value)
            if change is not None:
                fresh.setdefault(at, []).append(change)
        for place in read.reports.learn(fresh):
            self._log.warning("schema-topic-starts-over", topic=topic.name, place=str(place))
        read.next_offsets.update({at: end for at, (_, end) in ranges.items()})

    def _begin(self, topic: Topic, form: _Form) -> SchemaReports:
        whole = not any(topic.earliest.values())
        if not whole:
            self._warn(topic.name, "schema-topic-begins-late", topic=topic.name)
        return SchemaReports(form.types_of, whole=whole, partitioned=form.partitioned)

    def _parsed(
        self, topic: str, partition: int, offset: Offset, value: bytes | None
    ) -> SchemaChange | None:
        change = read_schema_change(value)
        where = {"topic": topic, "partition": partition, "offset": offset}
        if change is None:
            return None
        if not isinstance(change, SchemaChange):
            self._log.warning("ddl-unread", **where, reason=change.detail)
            return None
        for unread in change.unread:
            self._log.warning("ddl-unread", **where, reason=unread.reason, ddl=change.ddl)
        if change.position is None and change.after is not None:
            self._warn(f"{topic}:", "schema-topic-without-positions", topic=topic)
        return change

    def _warn(self, key: str, event: str, **facts: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._log.warning(event, **facts)


def schema_topics_of(settings: Settings, session: SparkSession, log: Any) -> SchemaTopics | None:
    """Return the reader of the configured topics of schema changes; None if there are none."""
    topics = settings.schema_change_topics
    if not topics.names and not topics.maxwell:
        return None
    reader = SchemaTopicReader(session, broker_access(settings.kafka))
    return SchemaTopics(topics, reader, log)
