"""Avro's numbers: one to ten bytes, seven bits each, the least significant first, in zigzag."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from lakesplice.model.arrays import Integers, Unsigned


@lru_cache(maxsize=4)
def _weights() -> tuple[np.uint64, ...]:
    return tuple(
        np.uint64(word)
        for word in (
            0x8080808080808080, 0x7F7F7F7F7F7F7F7F,
            0x007F007F007F007F, 0x7F007F007F007F00,
            0x00003FFF00003FFF, 0x3FFF00003FFF0000,
            0x000000000FFFFFFF, 0x0FFFFFFF00000000,
        )
    )  # fmt: skip


def signed(raw: Integers) -> Integers:
    """Undo the zigzag: 0, -1, 1, -2, … are written as 0, 1, 2, 3, …"""
    high: Any = raw.view(np.uint64) >> np.uint64(1)
    values: Integers = high.view(np.int64) ^ -(raw & 1)
    return values


def short_numbers(words: Unsigned) -> tuple[Unsigned, Integers]:
    """Return numbers of up to eight bytes, and their sizes; 9 where the eighth isn't the last."""
    stop, low, pairs, pairs_high, fours, fours_high, eights, eights_high = _weights()
    stops = ~words & stop
    lowest = stops & (~stops + np.uint64(1))
    mask = lowest | (lowest - np.uint64(1))
    bits = words & mask & low
    bits = (bits & pairs) | ((bits & pairs_high) >> np.uint64(1))
    bits = (bits & fours) | ((bits & fours_high) >> np.uint64(2))
    bits = (bits & eights) | ((bits & eights_high) >> np.uint64(4))
    sizes = np.bitwise_count(mask).astype(np.int64) >> 3
    return bits, sizes + (stops == 0)
