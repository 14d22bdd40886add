"""The names under which a table stores its columns.

A column has the source's name for it. One that the source has no more keeps its name until another
column of the source has it: then the old column becomes `<name>_2`, in base files too. So do the
values of a column whose type changed so that the old column can't take them: there the old one
keeps the name.

A column that the source renamed can be there under both names: it keeps the one that it is stored
under, and a copy of it has the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakesplice.model.names import column_name
from lakesplice.model.schema import Column, SourceSchema, TableSchema
from lakesplice.planning.schema.column_mapping import ColumnMatch


@dataclass(frozen=True)
class StoredNames:
    """Stored names of a schema's next version: `changed` columns, with those among them that gave
    way, and of columns `added`, in the order asked for. `_taken` are all names, in lower case.
    """

    changed: tuple[Column, ...]
    added: tuple[str, ...]
    _taken: set[str]

    def beside(self, names: Iterable[str]) -> list[str]:
        """Return free names for columns that stand beside those that have their names; once."""
        return [_free(self._taken, name) for name in names]


def renamed_beside(
    current: TableSchema, match: ColumnMatch, image: SourceSchema
) -> tuple[Column, ...]:
    """Return the columns that the source renamed and that can be there under both names, with the
    name that the source has now: no other column has the one or is to have the other.
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
    """Whether a column is in the schema under the name that the source has for it, itself or as a
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
    """Return the stored names of a schema's columns after some `changed`, with the names that the
    source has for them now, and others are `added`, by their names at the source. Those of `both`
    keep the name that they have; copies are among the added.

    In an adopted table a name never becomes another column's: only names say what foreign files
    hold.
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
        after[column.id] = replace(column, name=_free(free, column.source_name))
        taken.add(after[column.id].name.lower())
    names = tuple(_free(taken, name) for name in added)
    taken |= ever
    for i in sorted(gives_way):
        # What is there under another name as well is shown under that alone.
        hidden = after[i].hidden or bool(after[i].source_name) or after[i].copy_of is not None
        after[i] = replace(after[i], name=_free(taken, after[i].name), hidden=hidden)
    now = tuple(column for column in after.values() if before.get(column.id) != column)
    return StoredNames(now, names, taken)


def _is_elsewhere(current: TableSchema, column: Column) -> bool:
    """Whether a copy has the source's name for a column, so that it can do without its own."""
    own = column_name(column.source_name).lower() == column.name.lower()
    return not own and has_copy(current, column)


def _with_copies(current: TableSchema, changed: Sequence[Column]) -> dict[int, Column]:
    """Return the columns by identity, copies being of the type of what they are copies of, and
    hidden with it.
    """
    after = {column.id: column for column in (*current.columns, *changed)}
    for column in current.columns:
        if column.copy_of is not None:
            of = after[column.copy_of]
            hidden = column.hidden or (of.hidden and not of.source_name)
            after[column.id] = replace(
                column, type=of.type, source_type=of.source_type, hidden=hidden
            )
    return after


def _free(names: set[str], wanted: str) -> str:
    """Return the stored name for a column, which joins `names`: its own, or with a number if an
    older one has it.
    """
    name, number = column_name(wanted), 1
    while name.lower() in names:
        number += 1
        name = f"{column_name(wanted)}_{number}"
    names.add(name.lower())
    return name
