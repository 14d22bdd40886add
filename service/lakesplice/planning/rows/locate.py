"""Locate: finds the addresses of rows by their key hashes, in the runs of the row index.

**The newest run that has a key decides**, even if the entry's file group is dead: the table no
longer has it. Then the key is unknown, and older runs are not searched. An older entry is an
address that the row has left: the row moved, and a purge removed its new group. At most an old
tombstone is there, and an older entry would revive that row at an older position. Without an
address the next change becomes an insert, which is right. So the index must never lose the newest
entry of a key, and merges keep entries of dead groups (see `index_merge`).

A rebuilt index replaces all runs and has only entries of live groups. Runs stay valid while a table
is parked, since no row moves then.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lakesplice.formats.rowindex.encode import bucket_of
from lakesplice.formats.rowindex.layout import ENTRY_WORDS
from lakesplice.formats.rowindex.run import Run
from lakesplice.model.arrays import Integers, KeyHashes, Mask, RowAddresses, Unsigned

UNKNOWN = -1
# What the first step of a search pulled into the caches is still there for its later ones. Larger
# blocks lose more to missed address translations than they save in calls (benchmarks/locate.py).
KEYS_PER_BLOCK = 2048


def locate(runs: Sequence[Run], keys: KeyHashes, live: Integers) -> RowAddresses:
    """Return the addresses of the keys; group and row are -1 if a key is unknown.

    `runs` are ordered oldest first; `live` are the live file groups, ascending. The keys may be in
    any order and repeat; they are found fastest if `high` ascends. Only the parts of the runs
    around the keys are read. Raises `CorruptFileError` for an entry that names no group.
    """
    high, count = keys.high, len(keys.high)
    if (high[1:] < high[:-1]).any():
        order = np.argsort(high)
        group, row = np.empty(count, np.int64), np.empty(count, np.int64)
        group[order], row[order] = locate(runs, keys.only(order), live)
        return RowAddresses(group, row)
    group = np.full(count, UNKNOWN, np.int64)
    row = np.full(count, UNKNOWN, np.int64)
    pending = np.arange(count)
    for run in reversed(runs):
        found, words = _search(run, keys)
        numbers, rows = run.numbers_and_rows(words)
        groups = np.where(contains(live, run.groups), run.groups, UNKNOWN)[numbers]
        at = pending[found]
        group[at] = groups
        row[at] = np.where(groups == UNKNOWN, UNKNOWN, rows)
        if run is not runs[0]:
            rest = ~found
            pending, keys = pending[rest], keys.only(rest)
    return RowAddresses(group, row)


def _search(run: Run, keys: KeyHashes) -> tuple[Mask, Unsigned]:
    """Return which keys (ascending by `high`) the run has, and the address words of these."""
    high = keys.high
    found = np.zeros(len(high), bool)
    words = [np.empty(0, np.uint64)]
    if len(run):
        # Large batches write one run per range of hashes, so most keys are outside of such a run.
        first = np.searchsorted(high, run.words[0], "left")
        last = np.searchsorted(high, run.words[-ENTRY_WORDS], "right")
        for start in range(int(first), int(last), KEYS_PER_BLOCK):
            block = slice(start, min(start + KEYS_PER_BLOCK, int(last)))
            found[block], addresses = _search_block(run, keys.only(block))
            words.append(addresses)
    return found, np.concatenate(words)


def _search_block(run: Run, keys: KeyHashes) -> tuple[Mask, Unsigned]:
    high, low = keys
    words, last = run.words, len(run.words) - ENTRY_WORDS
    at = _lower_bound(run, high)
    # The last entry has no next one to compare with; if it is reached, it is too small itself.
    np.minimum(at, last, out=at)
    same_high = words.take(at, mode="clip") == high
    found = same_high & (words.take(at + 1, mode="clip") == low)
    # Another key has the same `high`: the entry, if there is one, is among those that follow.
    open_keys = np.flatnonzero(same_high & ~found)
    while len(open_keys):
        at[open_keys] += ENTRY_WORDS
        open_keys = open_keys[at[open_keys] <= last]
        open_keys = open_keys[words.take(at[open_keys]) == high[open_keys]]
        hit = words.take(at[open_keys] + 1) == low[open_keys]
        found[open_keys[hit]] = True
        open_keys = open_keys[~hit]
    return found, words.take(at[found] + 2)


def _lower_bound(run: Run, high: Unsigned) -> Integers:
    """Return per key the first entry whose `high` isn't smaller, as an index into `run.words`.

    All keys of a block are halved equally often, as the widest gap between two fences needs. A step
    past a key's own fence only finds larger hashes and does nothing.
    """
    words, last = run.words, len(run.words) - ENTRY_WORDS
    fence = bucket_of(high, run.fence_bits)
    at = run.fences.take(fence, mode="clip").astype(np.int64)
    fence += 1
    widest = int((run.fences.take(fence, mode="clip") - at).max())
    at *= ENTRY_WORDS
    probe = np.empty_like(at)
    value = np.empty_like(high)
    below = np.empty(len(high), bool)
    for step in (ENTRY_WORDS << bit for bit in reversed(range(widest.bit_length()))):
        np.add(at, step - ENTRY_WORDS, out=probe)
        np.minimum(probe, last, out=probe)
        words.take(probe, out=value, mode="clip")
        np.less(value, high, out=below)
        np.multiply(below, step, out=probe)
        at += probe
    return at


def contains(sorted_values: Integers, values: Integers) -> Mask:
    """Return which of `values` are among `sorted_values`, which ascend."""
    if not len(sorted_values):
        return np.zeros(len(values), bool)
    at = np.searchsorted(sorted_values, values)
    np.minimum(at, len(sorted_values) - 1, out=at)
    same: Mask = sorted_values[at] == values
    return same
