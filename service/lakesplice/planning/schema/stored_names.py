"""The names under which a table stores its columns.

A column is stored under the source's name. A column that the source no longer has keeps its name
until another column of the source gets that name; then the old one is renamed to `<name>_2`, in
base files too. If the type of a column changes so that the old column can't hold the new values,
the old column keeps the name and the new one gets the number.

A column that the source renamed can be stored under both names: the column keeps its stored name,
and a copy of it has the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from lakesplice.model.names import column_name
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.schema.column_mapping import ColumnMatch


@dataclass(frozen=True)
class StoredNames:
    """Stored names of a schema's next version.

    `changed` are the changed columns, also those that had to be renamed for others. `added` are the
    names of columns to add, in the order requested. `_taken` are all names, in lower case.
    """

    changed: tuple[Column, ...]
    added: tuple[str, ...]
    _taken: set[str]

    def beside(self, names: Iterable[str]) -> list[str]:
        """Return free names for columns that are added beside those that have their names; called
        once.
        """
        return [_free(self._taken, name) for name in names]


def renamed_beside(
    current: TableSchema, match: ColumnMatch, image: SourceSchema
) -> tuple[Column, ...]:
    """Return the columns that the source renamed and that can be stored under both names, with the
    source's present name: no other column may have that name, or get it.
    """
    if current.adopted or current.positions is not None:
        return ()
    live = {
        c.name.lower(): c.id if c.copy_of is None else c.copy_of
        for c in current.columns
        if c.source_name or c.copy_of is not None
    }
    wanted = {field.name: column_name(field.name).lower() for field in image.fields}
    return tuple(
        replace(kept, source_name=name)
        for name, kept in match.renamed.items()
        if live.get(wanted[name], kept.id) == kept.id
        and kept.name.lower() not in {stored for other, stored in wanted.items() if other != name}
    )


def has_copy(schema: TableSchema, column: Column) -> bool:
    """Whether the schema has a column under the name that the source has for it, as itself or as a
    copy.
    """
    name = column_name(column.source_name).lower()
    of = (c for c in schema.columns if column.id in (c.id, c.copy_of))
    return any(c.name.lower() == name for c in of)


def stored_names(
    current: TableSchema,
    changed: Sequence[Column],
    added: Sequence[str],
    both: Sequence[Column] = (),
) -> StoredNames:
    """Return the stored names of a schema's columns after some were `changed`, with the names that
    the source has for them now, and others are `added`, by their names at the source. Columns in
    `both` keep their stored name; copies are among the added.

    In an adopted table a name never passes to another column: files of other writers identify
    columns by name only.
    """
    before, copied = current.by_id, [column.id for column in both]
    after = _with_copies(current, changed)
    renamed = [
        c
        for c in changed
        if c.source_name and c.source_name != before[c.id].source_name and c.id not in copied
    ]
    wanted = {column_name(c.source_name).lower() for c in renamed}
    wanted |= {column_name(name).lower() for name in added}
    ever = {name.lower() for name in current.aliases}
    moving = {column.id for column in renamed}
    gives_way = set[int]()
    if not current.adopted:
        gives_way = {
            c.id
            for c in after.values()
            if c.name.lower() in wanted and c.id not in moving
            if not c.source_name or _is_elsewhere(current, c)
        }
    taken = {c.name.lower() for c in after.values() if c.id not in moving | gives_way}
    taken |= ever if current.adopted else set()
    for column in renamed:
        own = {old.lower() for old, now in current.aliases.items() if now == column.name}
        free = taken - own if current.adopted else taken
        # It may have been hidden beside its copy, which can't have the new name.
        after[column.id] = replace(column, name=_free(free, column.source_name), hidden=False)
        taken.add(after[column.id].name.lower())
    names = tuple(_free(taken, name) for name in added)
    taken |= ever
    for i in sorted(gives_way):
        # Values that are shown under another name are shown under that name only.
        hidden = after[i].hidden or _is_shown_elsewhere(after, after[i])
        after[i] = replace(after[i], name=_free(taken, after[i].name), hidden=hidden)
    now = tuple(column for column in after.values() if before.get(column.id) != column)
    return StoredNames(now, names, taken)


def _is_elsewhere(current: TableSchema, column: Column) -> bool:
    """Whether a copy has the source's name for a column, so that the column needs no name of its
    own.
    """
    own = column_name(column.source_name).lower() == column.name.lower()
    return not own and has_copy(current, column)


def _is_shown_elsewhere(columns: Mapping[int, Column], column: Column) -> bool:
    """Whether another column shows the same values; of a column of the source one always does."""
    of = column.id if column.copy_of is None else column.copy_of
    others = (c for c in columns.values() if of in (c.id, c.copy_of) and c.id != column.id)
    return bool(columns[of].source_name) or not all(other.hidden for other in others)


def _with_copies(current: TableSchema, changed: Sequence[Column]) -> dict[int, Column]:
    """Return the columns by id; each copy has the type of the column that it copies."""
    after = {column.id: column for column in (*current.columns, *changed)}
    for column in current.columns:
        if column.copy_of is not None:
            of = after[column.copy_of]
            after[column.id] = replace(after[column.id], type=of.type, source_type=of.source_type)
    return after


def _free(names: set[str], wanted: str) -> str:
    """Return the stored name for a column and add it to `names`: its own, or with a number if an
    older column has it.
    """
    name, number = column_name(wanted), 1
    while name.lower() in names:
        number += 1
        name = f"{column_name(wanted)}_{number}"
    names.add(name.lower())
    return name
