"""Presence of columns: the range of positions of a source whose images have a column.

In a table with shards each source has its own, since shards are altered one after the other, and
positions of two shards can't be compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakesplice.model.position import Position


@dataclass(frozen=True, slots=True)
class ColumnPresence:
    """`first` is the lowest known position of an image with the column, `gone` that of a later
    image without it; None if unknown.
    """

    first: Position
    gone: Position | None = None

    def united(self, other: ColumnPresence) -> ColumnPresence:
        """Return what both know of one column."""
        gone = [position for position in (self.gone, other.gone) if position is not None]
        return ColumnPresence(min(self.first, other.first), min(gone, default=None))


# By the column's identity.
ColumnPresences: TypeAlias = Mapping[int, ColumnPresence]


def is_there(presences: ColumnPresences | None, column: int) -> bool:
    """Whether a source had a column and isn't known to have dropped it; without shards (None) it
    has all of the table's columns.
    """
    if presences is None:
        return True
    presence = presences.get(column)
    return presence is not None and presence.gone is None


def united(*several: ColumnPresences) -> dict[int, ColumnPresence]:
    """Return what several know of a source's columns."""
    known: dict[int, ColumnPresence] = {}
    for presences in several:
        for column, presence in presences.items():
            known[column] = known[column].united(presence) if column in known else presence
    return known
