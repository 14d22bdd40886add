"""Judges what a topic of schema changes reports: in which order its changes stand, which types a
table has by them, and whether a table took changes behind one that was reported later.

Kafka promises no order between partitions or topics. So changes are ordered by their positions in
the source's binlog, and a change that is read after a table passed its position is noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from heapq import merge

from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.formats.events.ddl import SchemaChange, SchemaHistory, TableDrop
from lakesplice.formats.events.values.declared_types import DECLARED
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.sources.dropped_tables import DropHistory

# Returns the types of a table's columns by a history; None if it doesn't know the table.
TypesOf = Callable[[SchemaHistory, TableName], TypeHistory | None]


class SchemaReports:
    """What one topic reported up to now. Not thread-safe.

    `types_of` reads types from a history. `whole`: no record is missing at the topic's beginning.
    `partitioned`: its changes come in several partitions, each one's in order.
    """

    def __init__(self, types_of: TypesOf, *, whole: bool, partitioned: bool) -> None:
        self._types_of = types_of
        self._whole = whole
        self._partitioned = partitioned
        self._history = SchemaHistory(whole=whole)
        self._has_begun = False
        self._changes: dict[int, list[SchemaChange]] = {}
        self._reached = BEFORE_ALL
        self._types: dict[TableName, TypeHistory | None] = {}
        self._drops: dict[TableName, tuple[TableDrop, ...]] = {}
        # Per table the lowest position, of those reported since the first `learn`, of a change of
        # types, and of one that gave a column's name to another column.
        self._retyped: dict[TableName, Position] = {}
        self._renamed: dict[TableName, Position] = {}
        # Numbers of drops: the first one reported since the first `learn`; per table the first one
        # that isn't handled yet, and the first one after the table last parked.
        self._known_since = 0
        self._open_since: dict[TableName, int] = {}
        self._parked_since: dict[TableName, int] = {}

    def learn(self, fresh: Mapping[int, Sequence[SchemaChange]]) -> tuple[Position | None, ...]:
        """Apply changes that are new, by partition, each one's in its order; return the positions
        at which positions turned out not to rise.

        What the first call brings was reported before the driver began, so it overtakes no table
        and its drops count as old ones. A change that stands before those already read from
        another partition rebuilds the history.
        """
        first, self._has_begun = not self._has_begun, True
        for partition, own in fresh.items() if self._partitioned else ():
            self._changes.setdefault(partition, []).extend(own)
        before, changes = self._history, _in_order(fresh.values())
        if changes:
            self._drops.clear()
        if changes and len(self._changes) > 1 and _position(changes[0]) < self._reached:
            self._history = SchemaHistory(whole=self._whole)
            self._types.clear()
            changes = _in_order(self._changes.values())
        new = () if first else {id(change) for own in fresh.values() for change in own}
        disordered = []
        for change in changes:
            was_ordered = self._history.ordered
            self._apply(change, is_new=id(change) in new)
            if was_ordered != self._history.ordered:
                disordered.append(change.position)
                self._types.clear()
        if self._history is not before:
            self._carry_drops(before)
        if first:
            self._known_since = self._history.drop_count
        return tuple(disordered)

    def types(self, source: SourceState, table: TableName) -> TypeHistory | None:
        """Return the types of the columns of a table, which its source calls `table`; None if
        nothing was reported of it.
        """
        if table not in self._types:
            self._types[table] = self._types_of(self._history, table)
        types = self._types[table]
        # Places of another server's binlog aren't comparable with those that the topic has.
        return types.placeless() if types is not None and source.epochs else types

    def drops(self, table: TableName) -> DropHistory:
        """Return the reported drops of a table, which its source calls `table`."""
        if table not in self._drops:
            self._drops[table] = self._history.drops(table)
        since = max(self._known_since, self._parked_since.get(table, 0))
        open_since = max(since, self._open_since.get(table, 0))
        return DropHistory(self._drops[table], self._history.ordered, since, open_since)

    def note_handled_drops(self, table: TableName, before: int, *, parked: bool) -> None:
        """Record that a table's drops with numbers below `before` were handled; `parked` says
        whether the table was parked for them.
        """
        self._open_since[table] = before
        if parked:
            self._parked_since[table] = before

    def take_overtaken(
        self, source: SourceState, table: TableName, schema: TableSchema
    ) -> ParkReason | None:
        """Return why a table can't continue, if it took changes behind a schema change that was
        reported later: of types, or of which column has a name. The second call returns None.

        Events that say their types themselves were read with the right ones all the same.
        """
        retyped, renamed = self._retyped.pop(table, None), self._renamed.pop(table, None)
        if not any(column.source_type.startswith(DECLARED) for column in schema.columns):
            retyped = None
        position = min((at for at in (retyped, renamed) if at is not None), default=None)
        if position is None or source.epochs:
            return None
        reached = max(state.position for state in source.partitions.values())
        if reached < position:
            return None
        what = "types" if position == retyped else "names"
        return ParkReason(
            ParkCode.SCHEMA_CHANGE,
            f"the source changed {what} of columns at {position}; the topic of schema changes"
            f" reported it when changes up to {reached} had been taken with the former {what};"
            " reset the table",
            source.topic,
        )

    def _apply(self, change: SchemaChange, *, is_new: bool) -> None:
        changed = self._history.take(change)
        self._reached = max(self._reached, _position(change))
        for table in changed:
            self._types.clear()  # a topic's name may stand for a table of another one
            if is_new and change.position is not None:
                self._note_change(table, change.position)

    def _note_change(self, table: TableName, position: Position) -> None:
        """Note what a table's last change means to what was taken with the version before."""
        types = self._types_of(self._history, table)
        versions = () if types is None else types.versions[-2:]
        if len(versions) < 2:
            return
        if _changes_types(*versions):
            self._retyped[table] = min(position, self._retyped.get(table, position))
        if _reuses_names(*versions):
            self._renamed[table] = min(position, self._renamed.get(table, position))

    def _carry_drops(self, before: SchemaHistory) -> None:
        """Take over which drops were reported, handled and parked for, from the history that the
        present one replaces.
        """
        carried = self._history.carried
        self._known_since = carried(self._known_since, before)
        for numbers in (self._open_since, self._parked_since):
            numbers |= {table: carried(n, before, table) for table, n in numbers.items()}


def reporting_topic(topic: str, globs: Iterable[tuple[str, str]]) -> str:
    """Return the topic of schema changes that reports those of a table with this topic.

    It is the first of `globs` (a name, and a pattern of tables' topics) that fits: a Maxwell's;
    else the one called as the prefix that the table's connector has.
    """
    prefix = topic.rsplit(".", 2)[0]
    return next((name for name, tables in globs if fnmatchcase(topic, tables)), prefix)


def _in_order(partitions: Iterable[Sequence[SchemaChange]]) -> list[SchemaChange]:
    """Return what partitions report by position, each one's in its own order."""
    return list(merge(*partitions, key=_position))


def _position(change: SchemaChange) -> Position:
    return BEFORE_ALL if change.position is None else change.position


def _changes_types(before: TypeVersion, after: TypeVersion) -> bool:
    """Whether columns have another type, or one that wasn't known before, or one that isn't known
    now.
    """
    kept = {**before.columns, **before.untyped}.keys() & {**after.columns, **after.untyped}.keys()
    return any(_type_name(before, name) != _type_name(after, name) for name in kept)


def _type_name(version: TypeVersion, name: str) -> str | None:
    return version.columns[name].name if name in version.columns else None


def _reuses_names(before: TypeVersion, after: TypeVersion) -> bool:
    """Whether a name is another column's than in the version before."""
    ended = {(t.name, t.until) for own in before.tenures.values() for t in own if not t.alone}
    return any((t.name, t.first) in ended for own in after.tenures.values() for t in own)
