"""What columns each table of a source had, from which place in its binlog on.

A history is fed with all records of the connector's topic in its order. Tools that alter a table
online (gh-ost, pt-online-schema-change) create a copy, alter that and give it the table's name: to
the table it is one alteration, with the columns' new names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakesplice.formats.events.ddl.columns import (
    ColumnAdded,
    ColumnChanged,
    ColumnGone,
    ColumnRenamed,
    DefinedColumn,
    Statement,
    TableAltered,
    TableDefined,
    TableGone,
    TableLike,
    TableUnread,
)
from lakesplice.formats.events.ddl.records import SchemaChange
from lakesplice.model.names import TableName
from lakesplice.model.position import Position

_NO_TOPIC_CHARACTER = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table's columns from a place on; None: the table is gone, or `unknown` says why they aren't
    known.

    `renamed` maps names of its columns to those in the version before, where they differ. `added`
    names the columns that the version before hasn't, if there was one of the same table.
    """

    place: Position
    columns: Mapping[str, DefinedColumn] | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    """A table as it is now: its columns, None if unknown, and as it was created.

    `born` maps names to those at its creation, where they differ.
    """

    columns: dict[str, DefinedColumn] | None
    created: Mapping[str, DefinedColumn]
    born: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""


class SchemaHistory:
    """The history of one source's tables.

    `ordered` is whether places only rose; where they start over (another server took over), a place
    doesn't tell which version is meant. `unread` counts statements that couldn't be read.
    """

    def __init__(self) -> None:
        self.ordered = True
        self.unread = 0
        self._last: Position | None = None
        self._met: set[tuple[Position, str, tuple[object, ...]]] = set()
        self._states: dict[TableName, _State] = {}
        self._versions: dict[TableName, list[TableVersion]] = {}

    def take(self, change: SchemaChange) -> frozenset[TableName]:
        """Take the topic's next record; return the tables that it changes.

        One that names no place, or was met before (a connector that starts again repeats itself),
        changes nothing; the former are counted as unread.
        """
        place = change.place
        if place is None:
            self.unread += bool(change.statements)
            return frozenset()
        # One statement may come as several records, each of other tables.
        told = place, change.ddl, tuple(map(_about, change.statements))
        if self._last is not None and place <= self._last:
            if told in self._met:
                return frozenset()
            self.ordered &= place == self._last
        self._met.add(told)
        self._last = place
        before = dict(self._states)
        self.unread += len(change.unread)
        for statement in change.statements:
            self._apply(statement, change.ddl)
        self._free(change.statements)
        changed = {
            table
            for table in before.keys() | self._states.keys()
            if before.get(table) != self._states.get(table)
        }
        for table in changed:
            self._note(table, place, before)
        return frozenset(changed)

    def table(self, name: TableName) -> tuple[TableVersion, ...]:
        """Return a table's versions in the topic's order, of one place only the last; none if
        nothing is known.

        Topics hold fewer characters than names do: a name in which `_` stands for others is found
        if only one table can be meant.
        """
        if name in self._versions:
            return tuple(self._versions[name])
        alike = [
            versions
            for table, versions in self._versions.items()
            if _in_topics(table.database) == name.database and _in_topics(table.table) == name.table
        ]
        return tuple(alike[0]) if len(alike) == 1 else ()

    def _note(self, table: TableName, place: Position, before: Mapping[TableName, _State]) -> None:
        versions = self._versions.setdefault(table, [])
        state = self._states.get(table)
        if versions and versions[-1].place == place and self.ordered:
            versions.pop()
        if state is None or state.columns is None:
            versions.append(TableVersion(place, None, unknown=state.unknown if state else ""))
            return
        earlier = versions[-1].columns if versions else None
        renamed = {} if earlier is None else self._names_since(table, state, earlier, before)
        added = frozenset() if earlier is None else state.columns.keys() - earlier.keys()
        versions.append(
            TableVersion(place, state.columns, renamed, frozenset(added) - renamed.keys())
        )

    def _names_since(
        self,
        table: TableName,
        state: _State,
        earlier: Mapping[str, DefinedColumn],
        before: Mapping[TableName, _State],
    ) -> dict[str, str]:
        """Return the columns' other names in the version before, of the same table or of the one
        that it is a copy of.
        """
        own, present = before.get(table), state.columns or {}
        births = {name: state.born.get(name, name) for name in present}
        if own is not None and own.columns is not None and own.created is state.created:
            formerly = {own.born.get(name, name): name for name in own.columns}
        elif dict(state.created) == dict(earlier):
            formerly = {name: name for name in earlier}
        else:
            return {}  # another table altogether
        return {
            name: formerly[birth]
            for name, birth in births.items()
            if birth in formerly and name not in earlier and formerly[birth] not in present
        }

    def _apply(self, statement: Statement, ddl: str) -> None:
        states = self._states
        if isinstance(statement, TableDefined):
            if statement.unless_there and statement.table in states:
                return
            self._define(statement)
        elif isinstance(statement, TableLike):
            if statement.unless_there and statement.table in states:
                return
            like = states.get(statement.like)
            columns = None if like is None else like.columns
            why = f"a copy of {statement.like}, which isn't known"
            states[statement.table] = (
                _State(None, {}, unknown=why) if columns is None else _State(columns, columns)
            )
        elif isinstance(statement, TableGone):
            for table in [name for name in states if _is_meant(statement, name)]:
                del states[table]
        elif isinstance(statement, TableAltered):
            self._alter(statement)
        else:
            self._forget(statement, ddl)

    def _define(self, told: TableDefined) -> None:
        columns = {column.name: column for column in told.columns}
        base = self._states.get(told.former or told.table)
        if base is None or base.columns is None:
            self._states[told.table] = _State(columns, columns)
            return
        born = dict(base.born)
        for to, name in (told.renamed or {}).items():
            if name in base.columns:
                born[to] = born.pop(name, name)
        kept = {to: name for to, name in born.items() if to in columns}
        self._states[told.table] = _State(columns, base.created, kept)

    def _alter(self, told: TableAltered) -> None:
        state = self._states.pop(told.table, None)
        if state is None:
            return  # of a table that nothing was said of
        columns, born = state.columns, dict(state.born)
        unknown = state.unknown
        if columns is not None:
            columns = dict(columns)
            try:
                for action in told.actions:
                    _act(columns, born, action)
            except KeyError as error:
                columns, unknown = None, f"column {error.args[0]!r} isn't as a statement has it"
        self._states[told.to or told.table] = _State(columns, state.created, born, unknown)

    def _forget(self, told: TableUnread, ddl: str) -> None:
        """Of a statement that can't be read every table may be meant whose name is in it."""
        text = ddl.lower()
        meant = [told.table] if told.table else [t for t in self._states if t.table.lower() in text]
        for table in meant:
            self._states[table] = _State(None, {}, unknown=told.reason)

    def _free(self, statements: Sequence[Statement]) -> None:
        """Names that tables had before a record told of their new ones are free, if no other table
        of the record has them.
        """
        told = [found for found in statements if isinstance(found, TableDefined)]
        taken = {found.table for found in told}
        for found in told:
            if found.former is not None and found.former not in taken:
                self._states.pop(found.former, None)


def history_of(changes: Iterable[SchemaChange]) -> SchemaHistory:
    """Return the history that records of one topic, in its order, tell."""
    history = SchemaHistory()
    for change in changes:
        history.take(change)
    return history


def _act(columns: dict[str, DefinedColumn], born: dict[str, str], action: object) -> None:
    """Do what a statement says of one column; `KeyError` if it can't have been so."""
    if isinstance(action, ColumnAdded):
        if action.column.name not in columns:
            columns[action.column.name] = action.column
        elif not action.unless_there:
            raise KeyError(action.column.name)
    elif isinstance(action, ColumnGone):
        if action.name in columns or not action.if_there:
            del columns[action.name]
            born.pop(action.name, None)
    elif isinstance(action, ColumnChanged | ColumnRenamed):
        if action.if_there and action.name not in columns:
            return
        former = columns.pop(action.name)
        column = (
            action.column if isinstance(action, ColumnChanged) else replace(former, name=action.to)
        )
        if column.name in columns:
            raise KeyError(column.name)
        columns[column.name] = column
        if column.name != action.name:
            born[column.name] = born.pop(action.name, action.name)


def _about(statement: Statement) -> object:
    if isinstance(statement, TableGone):
        return statement.database, statement.table
    return statement.table


def _is_meant(gone: TableGone, table: TableName) -> bool:
    return table.database == gone.database and gone.table in (None, table.table)


def _in_topics(name: str) -> str:
    return _NO_TOPIC_CHARACTER.sub("_", name)
