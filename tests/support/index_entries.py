"""Entries of the row index, made of keys' hashes and their rows' addresses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakesplice.formats.rowindex import Entries

Pair = tuple[int, int]


def entries_of(keys: Sequence[Pair], addresses: Sequence[Pair]) -> Entries:
    """Entries in this order: the halves of a key's hash, and the group and row that it leads to."""
    high, low = (np.array([key[half] for key in keys], np.uint64) for half in (0, 1))
    group, row = (np.array([address[at] for address in addresses], np.int64) for at in (0, 1))
    return Entries(high, low, group, row)


def part_of(entries: Entries, first: int, last: int) -> Entries:
    """The entries from `first` up to `last`, which isn't one of them."""
    part = slice(first, last)
    return Entries(entries.high[part], entries.low[part], entries.group[part], entries.row[part])
