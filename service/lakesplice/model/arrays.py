"""Arrays of numbers, one name for each type; what an array's numbers mean is said where it is."""

from __future__ import annotations

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
