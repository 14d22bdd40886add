"""Entries in order -> the bytes of a run, in one pass and without holding them all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.formats.rowindex.layout import (
    ENTRIES_MAX,
    ENTRY_WORDS,
    HEADER,
    MAGIC,
    ROW_BITS,
    TRAILER,
    Sections,
    fence_bits_for,
    padding,
)
from lakesplice.model.arrays import Integers, KeyHash, KeyHashes, Unsigned


class Entries(NamedTuple):
    """Parallel arrays: a key's hash and its row's address."""

    high: Unsigned
    low: Unsigned
    group: Integers
    row: Integers


class RunEncoder:
    """Encodes one run: `add` any number of blocks, each above the one before, then `finish` once.

    `entries_max` bounds how many entries will be added; the nearer, the better fit the fences.
    Every call returns the file's next bytes.
    """

    def __init__(self, entries_max: int) -> None:
        if entries_max > ENTRIES_MAX:
            raise UnsupportedError(
                "a run holds at most 2**32 - 1 entries; split the table", entries=entries_max
            )
        self._entries_max = entries_max
        self._fence_bits = fence_bits_for(entries_max)
        self._per_fence = np.zeros((1 << self._fence_bits) + 1, np.uint32)
        self._groups = np.empty(0, np.int64)
        self._entries = 0
        self._last: KeyHash | None = None
        self._started = False

    def add(self, entries: Entries) -> bytes:
        """Append entries that rise strictly by (high, low); `UsageError` if they don't."""
        count = len(entries.high)
        head = b"" if self._started else HEADER
        self._started = True
        if not count:
            return head
        self._check_order(entries)
        self._entries += count
        if self._entries > self._entries_max:
            raise UsageError(
                "a run got more entries than were announced",
                entries=self._entries,
                announced=self._entries_max,
            )
        self._count(entries.high)
        records = np.empty((count, ENTRY_WORDS), "<u8")
        records[:, 0] = entries.high
        records[:, 1] = entries.low
        records[:, 2] = self._number(entries.group) << ROW_BITS
        records[:, 2] |= _checked_rows(entries.row)
        return head + records.tobytes()

    def finish(self) -> bytes:
        """Return the end of the file."""
        head = b"" if self._started else HEADER
        sections = Sections(self._entries, len(self._groups), self._fence_bits)
        fences = np.cumsum(self._per_fence, out=self._per_fence)
        return b"".join(
            (
                head,
                bytes(padding(sections.entries_end)),
                fences.astype("<u4", copy=False).data,
                bytes(padding(sections.fences_end)),
                self._groups.astype("<i8", copy=False).tobytes(),
                bytes(padding(sections.groups_end)),
                TRAILER.pack(sections.entries, sections.groups, sections.fence_bits, MAGIC),
            )
        )

    def _check_order(self, entries: Entries) -> None:
        high, low = entries.high, entries.low
        rising = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
        hashes = KeyHashes(high, low)
        if not rising.all() or (self._last is not None and hashes.at(0) <= self._last):
            raise UsageError("the entries of a run must rise by key hash; sort and fold them first")
        self._last = hashes.at(-1)

    def _count(self, high: Unsigned) -> None:
        """Count entries per fence, one place up: their running sum is then the number below."""
        buckets = bucket_of(high, self._fence_bits)
        first = int(buckets[0])
        counts = np.bincount(buckets - first)
        self._per_fence[first + 1 : first + 1 + len(counts)] += counts.astype(np.uint32)

    def _number(self, group: Integers) -> Unsigned:
        """Return each group's number in the group table, adding those met for the first time."""
        distinct, places = np.unique(group, return_inverse=True)
        if distinct[0] < 0:
            raise UsageError("an entry has no file group", group=int(distinct[0]))
        order = np.argsort(self._groups)
        at = np.searchsorted(self._groups, distinct, sorter=order)
        known = np.zeros(len(distinct), bool)
        inside = at < len(self._groups)
        known[inside] = self._groups[order[at[inside]]] == distinct[inside]
        numbers = np.empty(len(distinct), np.uint64)
        numbers[known] = order[at[known]]
        numbers[~known] = len(self._groups) + np.arange(np.count_nonzero(~known))
        self._groups = np.concatenate((self._groups, distinct[~known]))
        return numbers[places]


def encode_run(
    high: Unsigned,
    low: Unsigned,
    group: Integers,
    row: NDArray[np.integer],
) -> bytes:
    """Return a run of entries that rise strictly by (high, low); `UsageError` if they don't."""
    encoder = RunEncoder(len(high))
    return encoder.add(Entries(high, low, group, row.astype(np.int64))) + encoder.finish()


def bucket_of(high: Unsigned, bits: int) -> Integers:
    """Return the first `bits` bits of each hash as a number."""
    if bits == 0:
        return np.zeros(len(high), np.int64)
    return (high >> np.uint64(64 - bits)).view(np.int64)


def _checked_rows(row: Integers) -> Unsigned:
    if row.min() < 0 or row.max() >> ROW_BITS:
        raise UnsupportedError(
            "a row position must be below 2**32; write smaller base files", row=int(row.max())
        )
    return row.astype(np.uint64)
