"""Stays: from where to where in its order a source's images have a column.

Of a table with shards each source has its own, since they are altered one after the other and
positions of two say nothing about each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from lakesplice.model.position import Position


@dataclass(frozen=True, slots=True)
class Stay:
    """`first` is the lowest position known of an image that has the column, `gone` that of a later
    one that lacks it; None while none is known.
    """

    first: Position
    gone: Position | None = None

    def united(self, other: Stay) -> Stay:
        """Return what two know of one column."""
        gone = [position for position in (self.gone, other.gone) if position is not None]
        return Stay(min(self.first, other.first), min(gone, default=None))


# By the column's identity.
Stays: TypeAlias = Mapping[int, Stay]


def is_there(stays: Stays | None, column: int) -> bool:
    """Whether a source had a column and isn't known to have dropped it; of a table without shards
    (None) whatever the table has.
    """
    if stays is None:
        return True
    stay = stays.get(column)
    return stay is not None and stay.gone is None


def united(*several: Stays) -> dict[int, Stay]:
    """Return what several know of a source's columns."""
    known: dict[int, Stay] = {}
    for stays in several:
        for column, stay in stays.items():
            known[column] = known[column].united(stay) if column in known else stay
    return known
