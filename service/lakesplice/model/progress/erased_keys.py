"""Erased keys: what a table records of rows whose values were erased, so that their earlier records
have no effect if they are read again.

The list only grows. A later change of such a key is a new row, whose changes are above the position
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lakesplice.model.position import BEFORE_ALL, Position


class SaltedHash(NamedTuple):
    """A key's hash, hashed once more with the table's salt, in two halves."""

    high: int
    low: int


@dataclass(frozen=True, slots=True)
class ErasedKeys:
    """For each key the position up to which its changes no longer have an effect.

    The key's value isn't here, and neither is its hash in the row index: only a hash of that hash
    and of `salt`, which is random and the table's own.
    """

    salt: bytes
    positions: Mapping[SaltedHash, Position] = field(default_factory=dict)

    @property
    def highest(self) -> Position:
        """The highest of the positions: a change above it doesn't concern an erased row."""
        return max(self.positions.values(), default=BEFORE_ALL)

    def with_more(self, positions: Mapping[SaltedHash, Position]) -> ErasedKeys:
        """Return these keys and others; of two positions of a key the higher one counts."""
        known = dict(self.positions)
        for key, position in positions.items():
            known[key] = max(position, known.get(key, position))
        return ErasedKeys(self.salt, known)
