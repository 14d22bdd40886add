"""Decodes and encodes runs of Thrift varints at once.

An index of a few hundred pages has a few thousand integers: one by one they cost milliseconds per
column, in a run about fifty microseconds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lakesplice.model.arrays import Bytes, Integers, Unsigned

_BYTES_MAX = 10


def decode_varints(data: Bytes, count: int) -> tuple[Unsigned, int] | None:
    """Return the first `count` varints and the number of their bytes.

    None if there are fewer, or if one has more than 64 bits.
    """
    data = data[: count * _BYTES_MAX]
    ends = np.flatnonzero(data < 128)[:count]
    if len(ends) < count:
        return None
    if not count:
        return np.empty(0, np.uint64), 0
    starts = np.empty_like(ends)
    starts[0], starts[1:] = 0, ends[:-1] + 1
    sizes = ends - starts + 1
    longest = int(sizes.max())
    if longest > _BYTES_MAX or (longest == _BYTES_MAX and _overflow(data[ends], sizes)):
        return None
    values = (data[starts] & 127).astype(np.uint64)
    for at in range(1, longest):
        of = np.flatnonzero(sizes > at)
        part = (data[starts[of] + at] & 127).astype(np.uint64)
        values[of] |= part << np.uint64(7 * at)
    return values, int(ends[-1]) + 1


def _overflow(last_bytes: Bytes, sizes: NDArray[np.intp]) -> bool:
    return bool((last_bytes[sizes == _BYTES_MAX] > 1).any())


def encode_varints(values: Unsigned) -> bytes:
    """Return the varints of `values`, each as short as it can be."""
    return encode_with_ends(values)[0]


def encode_with_ends(values: Unsigned) -> tuple[bytes, Integers]:
    """Return the varints of `values`, and the offset after each of them."""
    if not len(values):
        return b"", np.empty(0, np.int64)
    sizes = np.ones(len(values), np.int64)
    longest = max(1, -(-int(values.max()).bit_length() // 7))
    for at in range(1, longest):
        sizes += values >> np.uint64(7 * at) != 0
    ends = np.cumsum(sizes)
    starts = ends - sizes
    out = np.empty(int(ends[-1]), np.uint8)
    out[starts] = values & np.uint64(127)
    for at in range(1, longest):
        of = np.flatnonzero(sizes > at)
        places = starts[of] + at
        out[places - 1] |= np.uint8(128)
        out[places] = values[of] >> np.uint64(7 * at) & np.uint64(127)
    return out.tobytes(), ends


def zigzag(values: Integers) -> Unsigned:
    """Return signed integers as the unsigned ones that are written for them."""
    return (values << np.int64(1) ^ values >> np.int64(63)).view(np.uint64)


def unzigzag(values: Unsigned) -> Integers:
    """Return the signed integers that were written as `values`."""
    low = values & np.uint64(1)
    return (values >> np.uint64(1)).view(np.int64) ^ -low.view(np.int64)
