"""Orders rows along a Hilbert curve through the space of some columns.

Neighbours on the curve are neighbours in every column, so a file with a stretch of the curve has a
narrow range of each. Values count by their rank, so a column's distribution doesn't matter.

Source: J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, Mask, Unsigned

COLUMNS_MAX = 8
# More bits per column would divide 65,536 ranges of a column's values further.
_BITS_MAX = 16
_BITS_OF_ALL = 62


def curve_order(columns: Sequence[pa.ChunkedArray]) -> Integers:
    """Return the numbers of the rows in the order of the curve; rows at one place keep their order.

    One to `COLUMNS_MAX` columns of one length, of any type that has an order. Nulls come first. One
    column alone is sorted.
    """
    if len(columns) == 1:
        return np.argsort(_ranks(columns[0]), kind="stable")
    bits = min(_BITS_MAX, _BITS_OF_ALL // len(columns))
    places = hilbert_places([_scaled(_ranks(column), bits) for column in columns], bits)
    return np.argsort(places, kind="stable")


def hilbert_places(axes: Sequence[Unsigned], bits: int) -> Unsigned:
    """Return the place on the curve of each point, whose coordinates are in `axes`, one array per
    axis, each coordinate below 2^`bits`.

    Each point of the cube has a place of its own, and the points of successive places differ by one
    in one coordinate. At least two axes; `bits` times their number is at most 62.
    """
    points = [axis.astype(np.uint64) for axis in axes]
    _turn(points, bits)
    _fold(points, bits)
    places = np.zeros_like(points[0])
    for bit in reversed(range(bits)):
        for axis in points:
            places <<= np.uint64(1)
            places |= (axis >> np.uint64(bit)) & np.uint64(1)
    return places


def _turn(points: list[Unsigned], bits: int) -> None:
    """Undo the rotations and reflections of the curve's parts, from the largest parts down."""
    first = points[0]
    for bit in reversed(range(1, bits)):
        lower = np.uint64((1 << bit) - 1)
        first[_has(first, bit)] ^= lower
        for axis in points[1:]:
            reflected = _has(axis, bit)
            exchanged = np.where(reflected, np.uint64(0), (first ^ axis) & lower)
            first ^= np.where(reflected, lower, exchanged)
            axis ^= exchanged


def _fold(points: list[Unsigned], bits: int) -> None:
    """Apply the Gray code, by which successive numbers differ in one bit."""
    for before, axis in pairwise(points):
        axis ^= before
    flips = np.zeros_like(points[0])
    for bit in reversed(range(1, bits)):
        flips[_has(points[-1], bit)] ^= np.uint64((1 << bit) - 1)
    for axis in points:
        axis ^= flips


def _has(axis: Unsigned, bit: int) -> Mask:
    mask: Mask = (axis & np.uint64(1 << bit)) != 0
    return mask


def _ranks(column: pa.ChunkedArray) -> Unsigned:
    """Return each value's rank, from 1; equal values have one rank, and nulls have 0."""
    ranks = np.asarray(pc.rank(column, sort_keys="ascending", tiebreaker="min"), np.uint64)
    if column.null_count:
        ranks = ranks.copy()
        ranks[np.asarray(column.is_null())] = 0
    return ranks


def _scaled(ranks: Unsigned, bits: int) -> Unsigned:
    """Spread ranks over 2^`bits` coordinates."""
    scaled: Unsigned = (ranks << np.uint64(bits)) // np.uint64(len(ranks) + 1)
    return scaled
