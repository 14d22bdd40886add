"""Types of number arrays, one name for each, and arrays that belong together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# A flag per row.
Mask = NDArray[np.bool_]
# Offsets, rows, positions.
Integers = NDArray[np.int64]
# Halves of hashes, digests.
Unsigned = NDArray[np.uint64]
Bytes = NDArray[np.uint8]
# A small code per row.
Marks = NDArray[np.int8]


class KeyHash(NamedTuple):
    """The 128-bit hash of a key, in two halves."""

    high: int
    low: int


class KeyHashes(NamedTuple):
    """The 128-bit hashes of keys: the upper and the lower half of each key's hash."""

    high: Unsigned
    low: Unsigned

    def only(self, which: Integers | Mask | slice) -> KeyHashes:
        """Return the hashes at these places, in this order."""
        return KeyHashes(self.high[which], self.low[which])

    def at(self, place: int) -> KeyHash:
        """Return one of the hashes."""
        return KeyHash(int(self.high[place]), int(self.low[place]))


class RowAddresses(NamedTuple):
    """Addresses of rows: the file group and the row position of each."""

    group: Integers
    row: Integers

    def only(self, which: Integers | Mask | slice) -> RowAddresses:
        """Return the addresses at these places, in this order."""
        return RowAddresses(self.group[which], self.row[which])
