"""Merging runs of the row index: which runs, and the result.

A look-up may have to search every run, so their number is bounded. A merge rewrites entries, so
small runs are merged often and large ones seldom. If two runs have a key, the newer one wins;
therefore only neighbours are merged, and the result takes their place in the order.

Entries of dead file groups are kept, since an older run may have an entry of the same key, which
they hide (see `locate`). They disappear when the index is rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lakesplice.formats.rowindex import Entries, Run
from lakesplice.model.arrays import Integers, Mask

RUNS_MAX = 8
ENTRIES_PER_PART = 1 << 19
_PART_BITS_MAX = 24


def plan_merge(entries: Sequence[int], runs_max: int = RUNS_MAX) -> range | None:
    """Return which runs to merge next, or None while there are fewer than `runs_max`.

    `entries` are the sizes of the runs, oldest first; the result is a range of at least two places.
    It begins with the newest run and continues to older ones as long as a run is smaller than twice
    the sum of those taken so far. So a key is rewritten only together with about as many others: 4
    to 8 times in 1,000 to 5,000 equal batches.
    """
    if len(entries) < max(runs_max, 2):
        return None
    start = len(entries) - 2
    taken = entries[-1] + entries[-2]
    while start > 0 and entries[start - 1] < 2 * taken:
        start -= 1
        taken += entries[start]
    return range(start, len(entries))


def merge_runs(runs: Sequence[Run]) -> Iterator[Entries]:
    """Yield the newest entry of every key in `runs` (oldest first), ascending by key hash, in
    blocks.

    Memory holds some blocks of about `ENTRIES_PER_PART` entries, whatever the size of the runs.
    """
    bits = part_bits(sum(len(run) for run in runs), ENTRIES_PER_PART)
    for part in range(1 << bits):
        block = merged_part(runs, part, bits)
        if len(block.high):
            yield block


def merged_part(runs: Sequence[Run], part: int, bits: int) -> Entries:
    """Return the newest entry of every key whose `high` begins with the `bits` bits `part`."""
    newest_first = [
        run.entries(run.boundary(part, bits), run.boundary(part + 1, bits))
        for run in reversed(runs)
    ]
    entries, first = sorted_entries(concatenated(newest_first))
    return take(entries, first)


def part_bits(entries: int, entries_per_part: int) -> int:
    """Return how many leading bits of the hashes divide `entries` into parts of about that size."""
    parts = -(-entries // entries_per_part)
    return min(max(parts - 1, 0).bit_length(), _PART_BITS_MAX)


def sorted_entries(entries: Entries) -> tuple[Entries, Mask]:
    """Return the entries in order of key hash, and which of them are the first of their key.

    Entries of one key stay in their order.
    """
    order = np.argsort(entries.high, kind="stable")
    high = entries.high[order]
    if (high[1:] == high[:-1]).any():
        order = np.lexsort((entries.low, entries.high))
    ordered = take(entries, order)
    first = np.ones(len(order), bool)
    first[1:] = (ordered.high[1:] != ordered.high[:-1]) | (ordered.low[1:] != ordered.low[:-1])
    return ordered, first


def concatenated(pieces: Sequence[Entries]) -> Entries:
    """Return all entries of `pieces`, one piece after the other."""
    if not pieces:
        none = np.empty(0, np.uint64)
        return Entries(none, none, np.empty(0, np.int64), np.empty(0, np.int64))
    high, low, group, row = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return Entries(high, low, group, row)


def take(entries: Entries, which: Integers | Mask) -> Entries:
    """Return the entries at these places, or those that a mask marks."""
    high, low, group, row = entries
    return Entries(high[which], low[which], group[which], row[which])
