"""Which columns each table of a source had, and from which position in its binlog on.

A history gets all records of the connector's topic, in order. Tools that alter a table online
(gh-ost, pt-online-schema-change) create a copy, alter it and give it the table's name: for the
table this is one alteration, with the columns' new names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from lakesplice.formats.events.ddl.column_changes import agreed, altered, stored_spelling
from lakesplice.formats.events.ddl.columns import (
    ForeignKeyCascades,
    RowsMoved,
    Statement,
    TableAltered,
    TableDefined,
    TableGone,
    TableLike,
    TableShown,
    TableUnread,
)
from lakesplice.formats.events.ddl.drops import Drops, TableDrop
from lakesplice.formats.events.ddl.schema_change import SchemaChange
from lakesplice.formats.events.ddl.versions import TableState, TableVersion
from lakesplice.formats.events.values.fences import Fence
from lakesplice.model.names import DEFAULT_DATABASE, TableName
from lakesplice.model.position import BEFORE_ALL, Position

_NO_TOPIC_CHARACTER = re.compile(r"[^A-Za-z0-9._-]")


class SchemaHistory:
    """The history of one source's tables.

    `ordered`: positions only rose. If they start over (another server took over), or records have
    none, a position doesn't show which version is meant. `unread` counts statements that couldn't
    be read. `whole`: no record is missing at the beginning, so the columns that a table had before
    its first reported change are those from the beginning; otherwise they are known from the first
    record's position on.
    """

    def __init__(self, *, whole: bool = True) -> None:
        self.ordered = True
        self._begins = BEFORE_ALL if whole else None
        self.unread = 0
        self._drops = Drops()
        self._last: Position | None = None
        self._met: set[tuple[Position, str, tuple[object, ...]]] = set()
        self._states: dict[TableName, TableState] = {}
        self._versions: dict[TableName, list[tuple[TableVersion, TableState | None]]] = {}
        self._before: dict[TableName, TableState | None] = {}
        self._cascading: set[TableName] = set()
        self._marks = 0

    def take(self, change: SchemaChange) -> frozenset[TableName]:
        """Add the topic's next record; return the tables that it changes.

        A record that came before (a connector that restarts repeats itself) changes nothing.
        Neither does one without a position, which counts as unread, unless it shows the columns:
        then it is known what its table had, but not when.
        """
        position = change.position
        if position is None:
            if change.before is None and change.after is None:
                self.unread += bool(change.statements)
                return frozenset()
            self.ordered = False
            position = self._last or BEFORE_ALL
        identity = position, change.ddl, change.about
        repeated = identity in self._met
        if self._last is not None and position <= self._last:
            if repeated and (change.after is None or position != self._last):
                return frozenset()
            self.ordered &= position == self._last
        self._met.add(identity)
        self._last = position
        self._begins = position if self._begins is None else self._begins
        self._before, cascading = {}, set(self._cascading)
        if not repeated:
            self._recall(change.before)
            self.unread += len(change.unread)
            for statement in change.statements:
                self._apply(statement, change, position)
            self._free(change.statements)
        self._show(change.after)
        changed = {
            table for table, state in self._before.items() if state != self._states.get(table)
        }
        for table in changed:
            self._note(table, position)
        return frozenset(changed | (self._cascading ^ cascading))

    def table(self, name: TableName) -> tuple[TableVersion, ...]:
        """Return a table's versions in the topic's order, of one position only the last; empty if
        nothing is known.

        Topics allow fewer characters than names do: a name in which `_` replaces others is found if
        only one table can be meant, and so is a name without a known database.
        """
        meant = _table_of_topic_name(name, self._versions)
        return () if meant is None else tuple(version for version, _ in self._versions[meant])

    def cascades(self, name: TableName) -> bool:
        """Whether the table was reported to have a foreign key by which the server changes its rows
        itself; names as for `table`. It stays true when the key is dropped, since its name may not
        be known.
        """
        return _table_of_topic_name(name, self._versions) in self._cascading

    def drops(self, name: TableName) -> tuple[TableDrop, ...]:
        """Return where a table was dropped, in the topic's order; names as for `table`."""
        meant = self._dropped_as(name)
        return () if meant is None else self._drops.of(meant)

    @property
    def drop_count(self) -> int:
        """How many drops were read; the next one's number."""
        return self._drops.count

    def carried(self, number: int, before: SchemaHistory, name: TableName | None = None) -> int:
        """Return what a drop's number in a previous history is in this one (`Drops.carried`)."""
        table = None if name is None else self._dropped_as(name)
        return self._drops.carried(number, before._drops, table)

    def _dropped_as(self, name: TableName) -> TableName | None:
        """Return the known table that a topic's name means, even if only its DROP is known."""
        return _table_of_topic_name(name, self._versions) or _table_of_topic_name(
            name, self._drops.names
        )

    def _note(self, table: TableName, position: Position) -> None:
        noted = self._versions.setdefault(table, [])
        state = self._states.get(table)
        if noted and noted[-1][0].position == position and self.ordered:
            noted.pop()
        if state is None or state.columns is None:
            unknown = state.unknown if state else ""
            noted.append((TableVersion(position, None, unknown=unknown), None))
            return
        before = noted[-1][1] if noted else None
        formerly = {} if before is None else state.formerly(before)
        renamed = {name: old for name, old in formerly.items() if name != old}
        added = state.columns.keys() - formerly.keys() if before is not None else ()
        noted.append((TableVersion(position, state.columns, renamed, frozenset(added)), state))

    def _apply(self, statement: Statement, change: SchemaChange, position: Position) -> None:
        states = self._states
        if isinstance(statement, TableDefined):
            if statement.unless_there and statement.table in states:
                return
            self._define(statement, change, position)
        elif isinstance(statement, TableLike):
            if statement.unless_there and statement.table in states:
                return
            like = states.get(statement.like)
            columns = None if like is None else like.columns
            why = f"a copy of {statement.like}, whose columns aren't known"
            self._put(
                statement.table,
                TableState(None, {}, unknown=why) if columns is None else TableState.of(columns),
            )
        elif isinstance(statement, TableGone):
            self._drop(statement, change, position)
        elif isinstance(statement, TableAltered):
            self._alter(statement, change, position)
        elif isinstance(statement, RowsMoved):
            if not change.of_snapshot:
                self._drops.moved(statement.table, _fence(change, position), statement.what)
        elif isinstance(statement, ForeignKeyCascades):
            self._cascading.add(statement.table)
        else:
            self._forget(statement, change.ddl)

    def _recall(self, shown: TableShown | None) -> None:
        """Record the columns that a table is shown to have had before a change of it; of a table
        that no earlier record described, nothing else is known.
        """
        if shown is None:
            return
        met = shown.table in self._versions
        self._show(shown)
        begins, here = self._begins or BEFORE_ALL, self._last or BEFORE_ALL
        if not met and (begins < here or not self.ordered):
            self._note(shown.table, begins)

    def _show(self, shown: TableShown | None) -> None:
        """Give a table the columns that it is shown with: as they are known, if that fits."""
        if shown is None:
            return
        state = self._states.get(shown.table)
        known = None if state is None else state.columns
        if state is None or known is None:
            self._put(shown.table, TableState.of({column.name: column for column in shown.columns}))
            return
        columns, born = {}, {}
        for column in shown.columns:
            name, own = column.name, stored_spelling(known, column.name)
            columns[name] = column if own is None else agreed(known[own], column)
            born[name] = self._mark() if own is None else state.born[own]
        self._put(shown.table, replace(state, columns=columns, born=born))

    def _drop(self, gone: TableGone, change: SchemaChange, position: Position) -> None:
        """Mark tables as dropped. A statement's DROP is recorded, except for a name that no table
        is known to have: MySQL reports that, too (IF EXISTS).
        """
        there = [name for name in self._states if _is_meant(gone, name)]
        dropped = there
        if gone.table is not None:
            name = TableName(gone.database, gone.table)
            dropped = there or ([] if name in self._versions else [name])
        for name in () if change.of_snapshot else dropped:
            state = self._states.get(name)
            columns = None if state is None else state.columns
            self._drops.gone(name, _fence(change, position), columns)
        for name in there:
            self._put(name, None)
            self._cascading.discard(name)

    def _put(
        self, table: TableName, state: TableState | None, *, former: TableName | None = None
    ) -> None:
        """Set a table's state, or remove it; its state from before the record is kept for
        comparison.

        `former` is its previous name, if that was another one.
        """
        self._before.setdefault(table, self._states.get(table))
        if state is None:
            self._states.pop(table, None)
        else:
            self._states[table] = state
            self._drops.there(table, state.created if former is not None else None, former)
            if former in self._cascading:
                self._cascading.add(table)

    def _renamed(
        self, former: TableName, to: TableName, change: SchemaChange, position: Position
    ) -> None:
        """Record a table's new name; called once it has it."""
        before = self._before.get(former)
        if former != to and not change.of_snapshot:
            columns = None if before is None else before.columns
            self._drops.renamed(former, to, _fence(change, position), columns)

    def _define(self, statement: TableDefined, change: SchemaChange, position: Position) -> None:
        columns = {column.name: column for column in statement.columns}
        base = self._states.get(statement.former or statement.table)
        if base is None or base.columns is None:
            self._put(statement.table, TableState.of(columns))
            if statement.former is not None:
                self._renamed(statement.former, statement.table, change, position)
            return
        origins = statement.origins or {}
        moved = set(origins.values())
        born = {}
        for name in columns:
            origin = stored_spelling(
                base.columns, origins.get(name, None if name in moved else name)
            )
            born[name] = self._mark() if origin is None else base.born[origin]
        after = TableState(columns, base.created, born)
        self._put(statement.table, after, former=statement.former)
        if statement.former is not None:
            self._renamed(statement.former, statement.table, change, position)

    def _mark(self) -> str:
        """A mark that can't be a name: MySQL's names don't have this character."""
        self._marks += 1
        return f"\0{self._marks}"

    def _alter(self, statement: TableAltered, change: SchemaChange, position: Position) -> None:
        state = self._states.get(statement.table)
        if state is None:
            if statement.to is not None:
                self._renamed(statement.table, statement.to, change, position)
            return  # of a table that nothing was said of
        columns, born, unknown = state.columns, state.born, state.unknown
        if columns is not None:
            try:
                columns, born = altered(columns, born, statement.actions, self._mark)
            except KeyError as error:
                columns, unknown = None, f"column {error.args[0]!r} isn't what a statement says"
        self._put(statement.table, None)
        after = TableState(columns, state.created, born, unknown)
        self._put(statement.to or statement.table, after, former=statement.to and statement.table)
        if statement.to is not None:
            self._renamed(statement.table, statement.to, change, position)

    def _forget(self, statement: TableUnread, ddl: str) -> None:
        """Every table whose name is in a statement that can't be read may be affected by it."""
        text = ddl.lower()
        meant = (
            [statement.table]
            if statement.table
            else [t for t in self._states if t.table.lower() in text]
        )
        for table in meant:
            self._put(table, TableState(None, {}, unknown=statement.reason))

    def _free(self, statements: Sequence[Statement]) -> None:
        """Names that tables had before a record gave them new ones are free, if no other table of
        the record has them.
        """
        statement = [found for found in statements if isinstance(found, TableDefined)]
        taken = {found.table for found in statement}
        for found in statement:
            if found.former is not None and found.former not in taken:
                self._put(found.former, None)


def history_of(changes: Iterable[SchemaChange]) -> SchemaHistory:
    """Return the history in the records of one topic, given in its order."""
    history = SchemaHistory()
    for change in changes:
        history.take(change)
    return history


def _table_of_topic_name(name: TableName, known: Collection[TableName]) -> TableName | None:
    """Return the one of the known tables whose topic would have the name."""
    if name in known:
        return name
    alike = [
        table
        for table in known
        if name.database in (_in_topics(table.database), DEFAULT_DATABASE)
        and name.table in (table.table, _in_topics(table.table))
    ]
    return alike[0] if len(alike) == 1 else None


def _is_meant(gone: TableGone, table: TableName) -> bool:
    return table.database == gone.database and gone.table in (None, table.table)


def _in_topics(name: str) -> str:
    return _NO_TOPIC_CHARACTER.sub("_", name)


def _fence(change: SchemaChange, position: Position) -> Fence:
    return Fence(position, change.gtid, dropped=True, moment=change.moment)
