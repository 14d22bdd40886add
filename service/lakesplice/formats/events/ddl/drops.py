"""Tables that a source dropped, and whether it made them again.

Not every DROP takes rows. A connector drops each table in its own history before a snapshot, and
MySQL tells of a DROP of a name that no table has. A tool that alters a table online may drop it and
give the name to its copy: there the table lives on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from lakesplice.formats.events.ddl.columns import DefinedColumn
from lakesplice.model.names import TableName
from lakesplice.model.position import Position

Columns = Mapping[str, DefinedColumn]


@dataclass(frozen=True, slots=True)
class TableDrop:
    """A table's DROP at a place in the binlog (epoch 0), under a GTID if the source has any.

    `number` counts a history's drops in the order in which it was told. `again`: a table has the
    name again; `lives_on`: that table is a copy of the dropped one, made to take its place.
    """

    number: int
    place: Position
    gtid: str | None = None
    again: bool = False
    lives_on: bool = False


class Drops:
    """The drops of a history's tables, in the order in which they were told."""

    def __init__(self) -> None:
        self.count = 0
        self._told: dict[TableName, list[TableDrop]] = {}
        # What the table had that was dropped last; None if that wasn't known.
        self._columns: dict[TableName, Columns | None] = {}

    @property
    def names(self) -> frozenset[TableName]:
        """The tables that were ever dropped."""
        return frozenset(self._told)

    def of(self, table: TableName) -> tuple[TableDrop, ...]:
        """Return a table's drops."""
        return tuple(self._told.get(table, ()))

    def carried(self, number: int, before: Drops, table: TableName | None = None) -> int:
        """Return what a number of a former telling is here: that of the first drop, or of the first
        of a table, that did not have a lower one there. A topic is told anew where a partition of
        it brings what stands before another's.
        """
        covered = {(name, drop.place) for name, drop in before.all() if drop.number < number}
        left = (
            drop.number
            for name, drop in self.all()
            if table in (None, name) and (name, drop.place) not in covered
        )
        return min(left, default=self.count)

    def all(self) -> Iterator[tuple[TableName, TableDrop]]:
        """Yield each table's drops."""
        return ((table, drop) for table, told in self._told.items() for drop in told)

    def gone(
        self, table: TableName, place: Position, gtid: str | None, columns: Columns | None
    ) -> None:
        """Take that a table with these columns was dropped."""
        self._told.setdefault(table, []).append(TableDrop(self.count, place, gtid))
        self._columns[table] = columns
        self.count += 1

    def there(self, table: TableName, copied: Columns | None = None) -> None:
        """Take that a table of the name is there; one that got it by a rename was created with the
        columns `copied`.
        """
        told = self._told.get(table)
        if not told or told[-1].again:
            return
        # By name: a copy is made of what SHOW CREATE TABLE says, which has digits that people omit.
        lives_on = bool(copied) and set(copied or ()) == set(self._columns[table] or ())
        told[-1] = replace(told[-1], again=True, lives_on=lives_on)
