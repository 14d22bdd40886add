"""What the source's connectors tell of tables' types and DROPs, read on before each batch.

The topics are read up to their ends after a batch's own ends are fixed, so a schema change that the
connector told of before a change of the batch is known as a rule. Kafka promises no order across
topics, though: one that becomes visible later is noticed at the next batch, and the tables that
went beyond it with other types are parked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lakesplice.config.schema_topics import SchemaChangeTopicSettings
from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.formats.events.ddl import (
    SchemaChange,
    SchemaHistory,
    TableDrop,
    read_schema_change,
)
from lakesplice.formats.events.debezium.native import types_of
from lakesplice.formats.events.declared import DECLARED
from lakesplice.model.manifest import ParkCode, ParkReason, SourceState
from lakesplice.model.names import TableName
from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.drops import DropsTold
from lakesplice.spark.topics import Topic

# Topic, first offset, one after the last: offsets and values, in order.
Read = Callable[[str, int, int], list[tuple[int, bytes | None]]]


@dataclass
class _Told:
    """What one topic told up to an offset; `retyped` and `renamed` have, per table, the lowest
    place of a change of types, or at which a name became another column's, that was met since the
    driver began. Drops numbered from `told_since` on were told since; a table's number in `met` is
    that of the first that nobody dealt with, in `parked` of the first after it last parked.
    """

    topic_id: str
    next_offset: int
    history: SchemaHistory = field(default_factory=SchemaHistory)
    types: dict[TableName, TypeHistory | None] = field(default_factory=dict)
    drops: dict[TableName, tuple[TableDrop, ...]] = field(default_factory=dict)
    retyped: dict[TableName, Position] = field(default_factory=dict)
    renamed: dict[TableName, Position] = field(default_factory=dict)
    told_since: int = 0
    met: dict[TableName, int] = field(default_factory=dict)
    parked: dict[TableName, int] = field(default_factory=dict)


class SchemaTopics:
    """The configured topics of schema changes; `log` is a structlog logger. Safe from several
    threads.
    """

    def __init__(self, settings: SchemaChangeTopicSettings, read: Read, log: Any) -> None:
        self.names = settings.names
        self._handling = settings.handling
        self._read = read
        self._log = log
        self._told: dict[str, _Told] = {}
        self._warned: set[str] = set()
        self._busy = threading.Lock()

    def look(self, topics: Mapping[str, Topic]) -> None:
        """Read on up to the ends of the topics, as the broker has them; blocks.

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
        """Return the types of the columns of a table, which its source calls `origin`; None if no
        topic tells of it.
        """
        with self._busy:
            told = self._told.get(_prefix(source))
            if told is None:
                return None
            types = self._types(told, origin)
        # Places of another server's binlog aren't comparable with those that the topic has.
        return types.placeless() if types is not None and source.epochs else types

    def drops(self, source: SourceState, origin: TableName) -> DropsTold:
        """Return the drops of a table, which its source calls `origin`, that were told."""
        with self._busy:
            told = self._told.get(_prefix(source))
            if told is None:
                return DropsTold()
            history = told.history
            since = max(told.told_since, told.parked.get(origin, 0))
            open_since = max(since, told.met.get(origin, 0))
            if origin not in told.drops:
                told.drops[origin] = history.drops(origin)
            return DropsTold(told.drops[origin], history.ordered, since, open_since)

    def drops_met(
        self, source: SourceState, origin: TableName, before: int, *, parked: bool = False
    ) -> None:
        """Take note that a table's drops with numbers below `before` were dealt with, maybe by
        parking it.
        """
        with self._busy:
            topic = self._told.get(_prefix(source))
            if topic is not None:
                topic.met[origin] = before
                if parked:
                    topic.parked[origin] = before

    def overtaken(
        self, source: SourceState, origin: TableName, schema: TableSchema
    ) -> ParkReason | None:
        """Return why a table can't go on that went beyond a change told of since, if it did: of
        types, or of which column a name is.

        Events that say their types themselves were read with the right ones all the same.
        """
        with self._busy:
            told = self._told.get(_prefix(source))
            retyped = None if told is None else told.retyped.pop(origin, None)
            renamed = None if told is None else told.renamed.pop(origin, None)
        if not any(c.source_type.startswith(DECLARED) for c in schema.columns):
            retyped = None
        place = min((at for at in (retyped, renamed) if at is not None), default=None)
        if place is None or source.epochs:
            return None
        reached = max(state.position for state in source.partitions.values())
        if reached < place:
            return None
        what = "types" if place == retyped else "names"
        return ParkReason(
            ParkCode.SCHEMA_CHANGE,
            f"the source changed {what} of columns at {place}; the topic of schema changes told of"
            f" it when changes up to {reached} had been taken with the former {what}; reset the"
            " table",
            source.topic,
        )

    def _look(self, topic: Topic) -> None:
        told = self._told.get(topic.name)
        first = told is None or told.topic_id != topic.id
        if told is None or first:
            told = self._told[topic.name] = _Told(topic.id, topic.earliest.get(0, 0))
            if told.next_offset:
                self._warn(topic.name, "schema-topic-begins-late", topic=topic.name)
        if any(end > topic.earliest.get(at, 0) for at, end in topic.latest.items() if at):
            self._warn(f"{topic.name}/", "schema-topic-partitions", topic=topic.name)
        end = topic.latest.get(0, 0)
        if end <= told.next_offset:
            return
        for offset, value in self._read(topic.name, told.next_offset, end):
            self._take(told, topic.name, offset, value, first=first)
        told.next_offset = end
        if first:
            told.told_since = told.history.drop_count

    def _take(
        self, told: _Told, topic: str, offset: int, value: bytes | None, *, first: bool
    ) -> None:
        change = read_schema_change(value)
        if change is None:
            return
        if not isinstance(change, SchemaChange):
            self._log.warning("ddl-unread", topic=topic, offset=offset, reason=change.detail)
            return
        for unread in change.unread:
            self._log.warning(
                "ddl-unread", topic=topic, offset=offset, reason=unread.reason, ddl=change.ddl
            )
        told.drops.clear()
        ordered = told.history.ordered
        changed = told.history.take(change)
        if ordered != told.history.ordered:
            self._log.warning("schema-topic-starts-over", topic=topic, offset=offset)
            told.types.clear()
        for table in changed:
            told.types.clear()  # a topic's name may stand for a table of another one
            if not first and change.place is not None:
                self._note(told, table, change.place)

    def _note(self, told: _Told, table: TableName, place: Position) -> None:
        """Note what a table's last change means to what was taken with the version before."""
        types = types_of(told.history, table, self._handling)
        versions = () if types is None else types.versions[-2:]
        if len(versions) < 2:
            return
        if _differ(*versions):
            told.retyped[table] = min(place, told.retyped.get(table, place))
        if _hands_on(*versions):
            told.renamed[table] = min(place, told.renamed.get(table, place))

    def _types(self, told: _Told, table: TableName) -> TypeHistory | None:
        if table not in told.types:
            told.types[table] = types_of(told.history, table, self._handling)
        return told.types[table]

    def _warn(self, key: str, event: str, **facts: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._log.warning(event, **facts)


def _prefix(source: SourceState) -> str:
    """The connector's name, which is the name of its topic of schema changes."""
    return source.topic.rsplit(".", 2)[0]


def _differ(before: TypeVersion, after: TypeVersion) -> bool:
    return any(
        after.columns[name].name != type_.name
        for name, type_ in before.columns.items()
        if name in after.columns
    )


def _hands_on(before: TypeVersion, after: TypeVersion) -> bool:
    """Whether a name is another column's than in the version before."""
    ended = {(t.name, t.until) for own in before.tenures.values() for t in own}
    return any((t.name, t.first) in ended for own in after.tenures.values() for t in own)
