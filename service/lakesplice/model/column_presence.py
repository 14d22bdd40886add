"""Presence of columns: the range of a source's positions whose images have a column.

Of a table with shards each source has its own, since they are altered one after the other and
positions of two say nothing about each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakesplice.model.position import Position


@dataclass(frozen=True, slots=True)
class ColumnPresence:
    """`first` is the lowest position known of an image that has the column, `gone` that of a later
    one that lacks it; None while none is known.
    """

    first: Position
    gone: Position | None = None

    def united(self, other: ColumnPresence) -> ColumnPresence:
        """Return what two know of one column."""
        gone = [position for position in (self.gone, other.gone) if position is not None]
        return ColumnPresence(min(self.first, other.first), min(gone, default=None))


# By the column's identity.
ColumnPresences: TypeAlias = Mapping[int, ColumnPresence]


def is_there(presences: ColumnPresences | None, column: int) -> bool:
    """Whether a source had a column and isn't known to have dropped it; of a table without shards
    (None) whatever the table has.
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
