"""Merging runs of the row index: which ones, and into what.

A lookup may have to ask every run, so their number is bounded; a merge rewrites entries, so small
runs are merged often and large ones seldom. Of two runs that hold a key the newer wins, which is
why only neighbours may be merged, and why the result takes their place.

Entries of dead groups are not dropped: in an older run there may be an entry of the same key
that it hides (see `locate`). Entries of dead groups go when the index is rebuilt.
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

    `entries` are the runs' sizes, oldest first; the answer is a range of at least two of their
    places. It takes the newest run and continues backwards as long as a run is smaller than twice
    all that were taken before it. So a key is rewritten only together with about as many others: 4
    to 8 times over 1,000 to 5,000 equal batches.
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
    """Yield the newest entry of every key in `runs` (oldest first), rising by key hash, in blocks.

    Memory stays at some blocks of about `ENTRIES_PER_PART` entries, whatever the size of the runs.
    """
    bits = part_bits(sum(len(run) for run in runs), ENTRIES_PER_PART)
    for part in range(1 << bits):
        block = merged_part(runs, part, bits)
        if len(block.high):
            yield block


def merged_part(runs: Sequence[Run], part: int, bits: int) -> Entries:
    """Return the newest entry of every key whose `high` starts with the `bits` bits `part`."""
    newest_first = [
        run.entries(run.boundary(part, bits), run.boundary(part + 1, bits))
        for run in reversed(runs)
    ]
    entries, first = sorted_entries(concatenated(newest_first))
    return take(entries, first)


def part_bits(entries: int, entries_per_part: int) -> int:
    """Return how many leading bits of the hashes split `entries` into parts of about that size."""
    parts = -(-entries // entries_per_part)
    return min(max(parts - 1, 0).bit_length(), _PART_BITS_MAX)


def sorted_entries(entries: Entries) -> tuple[Entries, Mask]:
    """Return the entries in order of key hash, and which of them are the first with their key.

    Entries with one key stay in the order they came in.
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
    """Return the entries at some places, or where a mask is true."""
    high, low, group, row = entries
    return Entries(high[which], low[which], group[which], row[which])
