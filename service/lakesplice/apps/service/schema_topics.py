"""What the source's connectors report of tables' types and DROPs; new records are read before each
batch.

The topics are read up to their ends after a batch's own ends are fixed, so a schema change that the
connector reported before a change of the batch is usually known. Kafka promises no order across
topics, though: one that becomes visible later is noticed at the next batch, and the tables that
took changes behind it with other types are parked.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from heapq import merge
from typing import Any

from lakesplice.config.sections.schema_topics import SchemaChangeTopicSettings
from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.formats.events.ddl import (
    MAXWELLS_MARK,
    SchemaChange,
    SchemaHistory,
    TableDrop,
    read_schema_change,
)
from lakesplice.formats.events.debezium import native
from lakesplice.formats.events.maxwell import told_types as maxwell
from lakesplice.formats.events.values.declared import DECLARED
from lakesplice.model.manifest import ParkCode, ParkReason, SourceState
from lakesplice.model.names import TableName
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.sources.dropped_tables import DropsTold
from lakesplice.spark.topics import Topic

# Topic, per partition the first offset and one after the last, and what the text of records must
# have that are asked for: their partitions, offsets and values, in order.
Read = Callable[
    [str, Mapping[int, tuple[int, int]], str | None], list[tuple[int, int, bytes | None]]
]


@dataclass(frozen=True)
class _Teller:
    """How a topic tells: what types its tables' columns have by a history, whether all partitions
    are used, and what its records have if others are in the topic.
    """

    types: Callable[[SchemaHistory, TableName], TypeHistory | None]
    partitioned: bool = False
    mark: str | None = None


@dataclass
class _Told:
    """What one topic reported up to offsets; `retyped` and `renamed` have, per table, the lowest
    place of a change of types, or at which a name became another column's, that was met since the
    driver began. `changes` are all that were reported, by partition. Drops numbered from
    `told_since` on were reported since; a table's number in `met` is that of the first that isn't
    handled yet, in `parked` of the first after it last parked.
    """

    topic_id: str
    next_offsets: dict[int, int]
    whole: bool
    teller: _Teller
    history: SchemaHistory
    changes: dict[int, list[SchemaChange]] = field(default_factory=dict)
    reached: Position = BEFORE_ALL
    types: dict[TableName, TypeHistory | None] = field(default_factory=dict)
    drops: dict[TableName, tuple[TableDrop, ...]] = field(default_factory=dict)
    retyped: dict[TableName, Position] = field(default_factory=dict)
    renamed: dict[TableName, Position] = field(default_factory=dict)
    told_since: int = 0
    met: dict[TableName, int] = field(default_factory=dict)
    parked: dict[TableName, int] = field(default_factory=dict)

    def carry_drops(self, before: SchemaHistory) -> None:
        """Take over which drops were reported, met and parked for, from the history that this one
        replaces.
        """
        carried = self.history.carried
        self.told_since = carried(self.told_since, before)
        for numbers in (self.met, self.parked):
            numbers |= {table: carried(n, before, table) for table, n in numbers.items()}


class SchemaTopics:
    """The configured topics of schema changes; `log` is a structlog logger. Safe from several
    threads.
    """

    def __init__(self, settings: SchemaChangeTopicSettings, read: Read, log: Any) -> None:
        debezium = _Teller(partial(native.types_of, handling=settings.handling))
        self._tellers = dict.fromkeys(settings.names, debezium)
        for topic in settings.maxwell:
            mark = MAXWELLS_MARK if fnmatchcase(topic.name, topic.tables) else None
            self._tellers[topic.name] = _Teller(maxwell.types_of, partitioned=True, mark=mark)
        self.names = tuple(self._tellers)
        self._maxwell = settings.maxwell
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
            told = self._of(source)
            if told is None:
                return None
            types = self._types(told, origin)
        # Places of another server's binlog aren't comparable with those that the topic has.
        return types.placeless() if types is not None and source.epochs else types

    def drops(self, source: SourceState, origin: TableName) -> DropsTold:
        """Return the reported drops of a table, which its source calls `origin`."""
        with self._busy:
            told = self._of(source)
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
            topic = self._of(source)
            if topic is not None:
                topic.met[origin] = before
                if parked:
                    topic.parked[origin] = before

    def overtaken(
        self, source: SourceState, origin: TableName, schema: TableSchema
    ) -> ParkReason | None:
        """Return why a table can't continue, if it took changes behind a schema change that was
        reported later: of types, or of which column has a name.

        Events that say their types themselves were read with the right ones all the same.
        """
        with self._busy:
            told = self._of(source)
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

    def _of(self, source: SourceState) -> _Told | None:
        """What is known of a table: from its Maxwell, else from the connector whose prefix it
        has.
        """
        globs = ((topic.name, topic.tables) for topic in self._maxwell)
        prefix = source.topic.rsplit(".", 2)[0]
        name = next((name for name, tables in globs if fnmatchcase(source.topic, tables)), prefix)
        return self._told.get(name)

    def _look(self, topic: Topic) -> None:
        told = self._told.get(topic.name)
        first = told is None or told.topic_id != topic.id
        if told is None or first:
            told = self._told[topic.name] = self._begin(topic)
        if not told.teller.partitioned and any(
            end > topic.earliest.get(at, 0) for at, end in topic.latest.items() if at
        ):
            self._warn(f"{topic.name}/", "schema-topic-partitions", topic=topic.name)
        read = topic.latest if told.teller.partitioned else {0: topic.latest.get(0, 0)}
        ranges = {
            at: (start, end)
            for at, end in read.items()
            if end > (start := told.next_offsets.get(at, topic.earliest.get(at, 0)))
        }
        if not ranges:
            return
        fresh: dict[int, list[SchemaChange]] = {}
        for at, offset, value in self._read(topic.name, ranges, told.teller.mark):
            change = self._parsed(topic.name, at, offset, value)
            if change is not None:
                fresh.setdefault(at, []).append(change)
        self._learn(told, topic.name, fresh, first=first)
        told.next_offsets.update({at: end for at, (_, end) in ranges.items()})
        if first:
            told.told_since = told.history.drop_count

    def _begin(self, topic: Topic) -> _Told:
        whole = not any(topic.earliest.values())
        if not whole:
            self._warn(topic.name, "schema-topic-begins-late", topic=topic.name)
        teller = self._tellers[topic.name]
        return _Told(topic.id, {}, whole, teller, SchemaHistory(whole=whole))

    def _parsed(
        self, topic: str, partition: int, offset: int, value: bytes | None
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
        if change.place is None and change.after is not None:
            self._warn(f"{topic}:", "schema-topic-without-positions", topic=topic)
        return change

    def _learn(
        self, told: _Told, topic: str, fresh: Mapping[int, list[SchemaChange]], *, first: bool
    ) -> None:
        """Apply new schema changes. Partitions are not ordered among each other: a change that
        stands before those already read from another partition makes the history be rebuilt.
        """
        for at, own in fresh.items() if told.teller.partitioned else ():
            told.changes.setdefault(at, []).extend(own)
        told.drops.clear()
        before, changes = told.history, _in_order(fresh.values())
        if changes and len(told.changes) > 1 and _place(changes[0]) < told.reached:
            told.history = SchemaHistory(whole=told.whole)
            told.types.clear()
            changes = _in_order(told.changes.values())
        new = {id(change) for own in fresh.values() for change in own}
        for change in changes:
            ordered = told.history.ordered
            changed = told.history.take(change)
            told.reached = max(told.reached, _place(change))
            if ordered != told.history.ordered:
                self._log.warning("schema-topic-starts-over", topic=topic, place=str(change.place))
                told.types.clear()
            for table in changed:
                told.types.clear()  # a topic's name may stand for a table of another one
                if not first and change.place is not None and id(change) in new:
                    self._note(told, table, change.place)
        if told.history is not before:
            told.carry_drops(before)

    def _note(self, told: _Told, table: TableName, place: Position) -> None:
        """Note what a table's last change means to what was taken with the version before."""
        types = told.teller.types(told.history, table)
        versions = () if types is None else types.versions[-2:]
        if len(versions) < 2:
            return
        if _differ(*versions):
            told.retyped[table] = min(place, told.retyped.get(table, place))
        if _hands_on(*versions):
            told.renamed[table] = min(place, told.renamed.get(table, place))

    def _types(self, told: _Told, table: TableName) -> TypeHistory | None:
        if table not in told.types:
            told.types[table] = told.teller.types(told.history, table)
        return told.types[table]

    def _warn(self, key: str, event: str, **facts: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            self._log.warning(event, **facts)


def _in_order(partitions: Iterable[Sequence[SchemaChange]]) -> list[SchemaChange]:
    """Return what partitions tell by place, each one's in its own order."""
    return list(merge(*partitions, key=_place))


def _place(change: SchemaChange) -> Position:
    return BEFORE_ALL if change.place is None else change.place


def _differ(before: TypeVersion, after: TypeVersion) -> bool:
    """Whether columns have another type, or one that wasn't known before, or one that isn't known
    now.
    """
    kept = {**before.columns, **before.untyped}.keys() & {**after.columns, **after.untyped}.keys()
    return any(_spelt(before, name) != _spelt(after, name) for name in kept)


def _spelt(version: TypeVersion, name: str) -> str | None:
    return version.columns[name].name if name in version.columns else None


def _hands_on(before: TypeVersion, after: TypeVersion) -> bool:
    """Whether a name is another column's than in the version before."""
    ended = {(t.name, t.until) for own in before.tenures.values() for t in own}
    return any((t.name, t.first) in ended for own in after.tenures.values() for t in own)
