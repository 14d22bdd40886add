"""The names under which a table stores its columns.

A column has the source's name for it. One that the source has no more keeps its name until another
column of the source has it: then the old column becomes `<name>_2`, in base files too. So do the
values of a column whose type changed so that the old column can't take them: there the old one
keeps the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lakesplice.model.names import column_name
from lakesplice.model.schema import Column, TableSchema


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


def stored_names(
    current: TableSchema, changed: Sequence[Column], added: Sequence[str]
) -> StoredNames:
    """Return the stored names of a schema's columns after some `changed`, with the names that the
    source has for them now, and others are `added`, by their names at the source.

    Of an adopted table no name is ever another column's: only names tell what others' files hold.
    """
    after = {column.id: column for column in (*current.columns, *changed)}
    before = current.by_id
    renamed = [c for c in changed if c.source_name and c.source_name != before[c.id].source_name]
    wanted = {column_name(c.source_name).lower() for c in renamed}
    wanted |= {column_name(name).lower() for name in added}
    moving = {column.id for column in renamed}
    ever = {name.lower() for name in current.aliases}
    if not current.adopted:
        moving |= {c.id for c in after.values() if not c.source_name and c.name.lower() in wanted}
    taken = {column.name.lower() for column in after.values() if column.id not in moving}
    taken |= ever if current.adopted else set()
    for column in renamed:
        own = {old.lower() for old, now in current.aliases.items() if now == column.name}
        free = taken - own if current.adopted else taken
        after[column.id] = replace(column, name=_free(free, column.source_name))
        taken.add(after[column.id].name.lower())
    names = tuple(_free(taken, name) for name in added)
    taken |= ever
    for column in [after[i] for i in sorted(moving) if not after[i].source_name]:
        after[column.id] = replace(column, name=_free(taken, column.name))
    now = tuple(column for column in after.values() if before.get(column.id) != column)
    return StoredNames(now, names, taken)


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
