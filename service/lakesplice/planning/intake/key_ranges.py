"""Key ranges: how many ranges of key hashes a table's changes are divided into, and which task gets
which.

Small tables stay whole, so that a batch costs them one delta and one base file. Large ones are
divided so that every core has work. Each range has about as many keys, since the hash is uniform.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.model.names import TableName

# A task folds, locates and writes so many in a few seconds. With fewer changes a further file costs
# more than the parallel work saves.
CHANGES_PER_RANGE = 250_000

# Ranges are computed from 32-bit halves of the hash.
RANGES_MAX = 1 << 31


@dataclass(frozen=True, slots=True, order=True)
class KeyRange:
    """One range of key hashes of one table: number `range` of `ranges`."""

    table: TableName
    range: int
    ranges: int


def ranges_for(expected_changes: int, cores: int) -> int:
    """Return the number of ranges for a table with so many changes: 1 to `cores`."""
    return max(1, min(cores, RANGES_MAX, -(-expected_changes // CHANGES_PER_RANGE)))


def range_of(high: Unsigned, ranges: int) -> Integers:
    """Return for each hash (its upper 64 bits) the range that it is in, 0 to `ranges` - 1.

    Range r is [r * 2^64 / ranges, (r + 1) * 2^64 / ranges), so ranges follow the order of hashes.
    """
    if not 1 <= ranges <= RANGES_MAX:
        raise UsageError("the number of ranges is out of bounds", ranges=ranges, most=RANGES_MAX)
    # floor(high * ranges / 2^64) without a product wider than 64 bits.
    half, count = np.uint64(32), np.uint64(ranges)
    lower = (high & np.uint64(0xFFFFFFFF)) * count
    owner: Unsigned = ((high >> half) * count + (lower >> half)) >> half
    return owner.astype(np.int64)


def assign_targets(
    expected_changes: Mapping[TableName, int], cores: int, targets: int
) -> dict[KeyRange, int]:
    """Return for every range of every table the shuffle target, 0 to `targets` - 1, that gets it.

    The range with the most expected changes is assigned first, always to the target with the least
    so far; equal ones by name, so that equal expectations give equal plans. A table always has at
    least one range.
    """
    if targets < 1:
        raise UsageError("there must be at least one shuffle target", targets=targets)
    weights: list[tuple[float, KeyRange]] = []
    for table, changes in expected_changes.items():
        ranges = ranges_for(changes, cores)
        weights += [(changes / ranges, KeyRange(table, at, ranges)) for at in range(ranges)]
    weights.sort(key=lambda weighted: (-weighted[0], weighted[1]))
    return _pack(weights, targets)


def _pack(weights: Sequence[tuple[float, KeyRange]], targets: int) -> dict[KeyRange, int]:
    # The number of shares breaks ties, so tables without expected changes are spread evenly, too.
    loads = [(0.0, 0, target) for target in range(targets)]
    placed = {}
    for weight, share in weights:
        load, shares, target = loads[0]
        heapq.heapreplace(loads, (load + weight, shares + 1, target))
        placed[share] = target
    return placed
