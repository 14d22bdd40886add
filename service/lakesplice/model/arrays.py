"""Arrays of numbers, one name for each type, and those that only mean something together."""

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


class KeyHashes(NamedTuple):
    """The 128-bit hashes of keys: their upper and lower halves, one of each per key."""

    high: Unsigned
    low: Unsigned

    def only(self, which: Integers | Mask | slice) -> KeyHashes:
        """Return some of them, in the order asked for."""
        return KeyHashes(self.high[which], self.low[which])


class RowAddresses(NamedTuple):
    """Addresses of rows: file groups and the row positions in these, one of each per row."""

    group: Integers
    row: Integers

    def only(self, which: Integers | Mask | slice) -> RowAddresses:
        """Return some of them, in the order asked for."""
        return RowAddresses(self.group[which], self.row[which])
