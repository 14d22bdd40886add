"""Tables that a source dropped, and whether it created them again; and other statements that moved
a table's rows without events: a RENAME, for both names, or one about partitions.

Not every DROP removes rows. A connector drops each table in its own history before a snapshot, and
MySQL reports a DROP of a name that no table has. A tool that alters a table online may drop it and
give its name to the copy: then the table still exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto

from lakesplice.formats.events.ddl.columns import DefinedColumn
from lakesplice.formats.events.values.fences import Fence
from lakesplice.model.moments import EpochUs
from lakesplice.model.names import TableName
from lakesplice.model.position import Position

Columns = Mapping[str, DefinedColumn]


class DropKind(Enum):
    """What removed rows from a table, or added some. `LEFT`: the table got another name;
    `SET_ASIDE`: one that an online tool gives to the table that its copy replaces; `CAME`: a table
    got this name, which another had before, or none; `PARTITION`: rows of some partitions.
    """

    DROP = auto()
    LEFT = auto()
    SET_ASIDE = auto()
    CAME = auto()
    PARTITION = auto()


@dataclass(frozen=True, slots=True)
class TableDrop:
    """A table's DROP at a position in the binlog (epoch 0), with a GTID if the source has any, and
    the time at the source if it is known.

    `number` counts a history's drops in the order in which they were read. `again`: a table has the
    name again. `lives_on`: that table is a copy of the dropped one, made to replace it. If another
    statement moved rows, `moved` says in words what it did.
    """

    number: int
    position: Position
    gtid: str | None = None
    again: bool = False
    lives_on: bool = False
    kind: DropKind = DropKind.DROP
    moved: str = ""
    moment: EpochUs | None = None


class Drops:
    """The drops of a history's tables, in the order in which they were read."""

    def __init__(self) -> None:
        self.count = 0
        self._by_table: dict[TableName, list[TableDrop]] = {}
        # What the table had that was dropped last; None if that wasn't known.
        self._columns: dict[TableName, Columns | None] = {}

    @property
    def names(self) -> frozenset[TableName]:
        """The tables that were ever dropped."""
        return frozenset(self._by_table)

    def of(self, table: TableName) -> tuple[TableDrop, ...]:
        """Return a table's drops."""
        return tuple(self._by_table.get(table, ()))

    def carried(self, number: int, before: Drops, table: TableName | None = None) -> int:
        """Return the number here for a number of the previous history: that of the first drop, or
        of the first of a table, that didn't have a lower number there. A history is rebuilt if a
        partition of its topic has changes that come before those read from another.
        """
        covered = {(name, drop.position) for name, drop in before.all() if drop.number < number}
        left = (
            drop.number
            for name, drop in self.all()
            if table in (None, name) and (name, drop.position) not in covered
        )
        return min(left, default=self.count)

    def all(self) -> Iterator[tuple[TableName, TableDrop]]:
        """Yield each table's drops."""
        return ((table, drop) for table, drops in self._by_table.items() for drop in drops)

    def gone(self, table: TableName, at: Fence, columns: Columns | None) -> None:
        """Record that a table with these columns was dropped."""
        self._note(table, self._drop(at, DropKind.DROP))
        self._columns[table] = columns

    def renamed(
        self,
        former: TableName,
        to: TableName,
        at: Fence,
        columns: Columns | None,
    ) -> None:
        """Record that a table got another name; it had these columns. Called after `there`."""
        replaced = self._by_table.get(to, ())
        if _is_copy(former, to) and (not replaced or replaced[-1].lives_on):
            return  # its rows are those of the table that it replaces
        aside = _is_aside(to, former)
        if not aside:
            came = f"the name was given to {former} by a RENAME"
            self._note(to, replace(self._drop(at, DropKind.CAME, came), again=True))
        kind = DropKind.SET_ASIDE if aside else DropKind.LEFT
        moved = f"the table was renamed to {to}"
        self._note(former, self._drop(at, kind, moved))
        self._columns[former] = columns

    def moved(self, table: TableName, at: Fence, what: str) -> None:
        """Record that a statement moved rows of a table's partitions."""
        drop = self._drop(at, DropKind.PARTITION, f"there was {what}")
        self._note(table, replace(drop, again=True))

    def there(
        self, table: TableName, copied: Columns | None = None, former: TableName | None = None
    ) -> None:
        """Record that a table of the name exists. If it got the name by a rename, it was created
        with the columns `copied` and was called `former`.
        """
        drops = self._by_table.get(table)
        if not drops or drops[-1].again:
            return
        # By name: a copy is made of what SHOW CREATE TABLE says, which has digits that people omit.
        lives_on = bool(copied) and set(copied or ()) == set(self._columns[table] or ())
        if drops[-1].kind is not DropKind.DROP:
            lives_on = lives_on and former is not None and _is_copy(former, table)
        drops[-1] = replace(drops[-1], again=True, lives_on=lives_on)

    def _drop(self, at: Fence, kind: DropKind, moved: str = "") -> TableDrop:
        return TableDrop(self.count, at.position, at.gtid, kind=kind, moved=moved, moment=at.moment)

    def _note(self, table: TableName, drop: TableDrop) -> None:
        self._by_table.setdefault(table, []).append(drop)
        self.count += 1


# Names that gh-ost, pt-online-schema-change, Spirit, Facebook's OSC and LHM give to a table's copy
# and to the table that it replaces.
_COPIES = r"_+{0}(_\d+)?_(gho|new)|__osc_new_{0}|lhmn_{0}"
_ASIDE = r"_+{0}(_\d+)?_(del|old)(_\d+)?|__osc_old_{0}|lhma_.*_{0}"


def _is_copy(name: TableName, table: TableName) -> bool:
    return _is_named(name, table, _COPIES)


def _is_aside(name: TableName, table: TableName) -> bool:
    return _is_named(name, table, _ASIDE)


def _is_named(name: TableName, table: TableName, pattern: str) -> bool:
    own = pattern.format(re.escape(table.table))
    return name.database == table.database and re.fullmatch(own, name.table) is not None
