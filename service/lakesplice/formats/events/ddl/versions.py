"""A table of the source at one position of its binlog, and as it is now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.formats.events.ddl.columns import DefinedColumn
from lakesplice.model.position import Position


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table's columns from a position on; None: the table was dropped, or `unknown` says why they
    aren't known.

    `renamed` maps names of its columns to those in the version before, where they differ. `added`
    names the columns that the version before hasn't, if there was one.
    """

    position: Position
    columns: Mapping[str, DefinedColumn] | None
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: frozenset[str] = frozenset()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class TableState:
    """The present state of a table: its columns, None if unknown, and as it was created.

    `born` identifies columns whatever their names are: by their names at the table's creation, and
    by marks for those that were added later.
    """

    columns: dict[str, DefinedColumn] | None
    created: Mapping[str, DefinedColumn]
    born: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""

    @classmethod
    def of(cls, columns: dict[str, DefinedColumn]) -> TableState:
        """A table that is created."""
        return cls(columns, columns, {name: name for name in columns})

    def formerly(self, before: TableState) -> dict[str, str]:
        """Return the columns that `before` had as well, each with its name there.

        `before` is the same table earlier, or one that this is a copy of; in any other table,
        columns of one name count as the same.
        """
        if self.created is before.created:
            names = {birth: name for name, birth in before.born.items()}
        elif dict(self.created) == before.columns:
            names = {name: name for name in before.columns}
        else:
            known = before.columns or {}
            return {name: name for name in self.columns or () if name in known}
        return {name: names[birth] for name, birth in self.born.items() if birth in names}
