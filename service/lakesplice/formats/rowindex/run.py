"""The bytes of a run -> views on its entries, fences and groups, without a copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakesplice.errors import CorruptFileError
from lakesplice.formats.rowindex.encode import Entries, bucket_of
from lakesplice.formats.rowindex.layout import (
    ENTRY_WORDS,
    FENCE_BITS_MAX,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    ROW_BITS,
    TRAILER,
    TRAILER_BYTES,
    Sections,
)
from lakesplice.model.arrays import Integers, KeyHash, KeyHashes, Unsigned

ENTRIES_PER_BLOCK = 1 << 18
_ROW_MASK = np.uint64((1 << ROW_BITS) - 1)
_REMEDY = "rebuild the index (`lakesplice index rebuild`)"


@dataclass(frozen=True, eq=False)
class Run:
    """One run. `words` are its entries, three numbers each; see `layout.py` for all three arrays.

    The arrays are read-only views; when the buffer is a mapped file, only what is touched is read.
    """

    path: str
    words: Unsigned
    fences: NDArray[np.uint32]
    groups: Integers
    fence_bits: int

    @classmethod
    def from_buffer(cls, buffer: pa.Buffer | memoryview | bytes, path: str) -> Run:
        """Open the bytes of a run; `CorruptFileError` if their structure is wrong.

        Sizes, magics, gaps and fences are checked, so that no lookup can leave the file. What only
        reading every entry would show is `verify`'s; the caller has compared the checksum.
        """
        view = memoryview(buffer)
        sections = _sections(view, path)
        words = np.frombuffer(view[HEADER_BYTES : sections.entries_end], "<u8")
        fences = np.frombuffer(view[sections.fences_start : sections.fences_end], "<u4")
        groups = np.frombuffer(view[sections.groups_start : sections.groups_end], "<i8")
        if fences[0] != 0 or fences[-1] != sections.entries or not _rises(fences):
            raise CorruptFileError(f"the fences of an index run don't rise; {_REMEDY}", path=path)
        if len(groups) and (groups.min() < 0 or len(np.unique(groups)) != len(groups)):
            raise CorruptFileError(
                f"the groups of an index run are not distinct; {_REMEDY}", path=path
            )
        return cls(path, words, fences, groups, sections.fence_bits)

    def __len__(self) -> int:
        return len(self.words) // ENTRY_WORDS

    @property
    def high(self) -> Unsigned:
        """Bits 127 to 64 of the key hashes, rising."""
        return self.words[0::ENTRY_WORDS]

    @property
    def low(self) -> Unsigned:
        """Bits 63 to 0 of the key hashes."""
        return self.words[1::ENTRY_WORDS]

    @property
    def group(self) -> Integers:
        """File groups of the entries, as a new array."""
        return self.entries(0, len(self)).group

    @property
    def row(self) -> Integers:
        """Row positions of the entries, as a new array."""
        return self.entries(0, len(self)).row

    def entries(self, start: int, stop: int) -> Entries:
        """Return entries [start, stop) as new arrays."""
        words = self.words[start * ENTRY_WORDS : stop * ENTRY_WORDS].reshape(-1, ENTRY_WORDS)
        group, row = self.addresses(words[:, 2])
        return Entries(words[:, 0].copy(), words[:, 1].copy(), group, row)

    def addresses(self, words: Unsigned) -> tuple[Integers, Integers]:
        """Return (file groups, row positions) of address words; `CorruptFileError` for no group."""
        numbers, row = self.numbers_and_rows(words)
        return self.groups[numbers], row

    def numbers_and_rows(self, words: Unsigned) -> tuple[Integers, Integers]:
        """Return (numbers in the group table, row positions) of address words, as `addresses`."""
        numbers = (words >> np.uint64(ROW_BITS)).astype(np.int64)
        if len(numbers) and int(numbers.max()) >= len(self.groups):
            raise CorruptFileError(
                f"an entry of an index run names no group; {_REMEDY}", path=self.path
            )
        return numbers, (words & _ROW_MASK).astype(np.int64)

    def boundary(self, part: int, bits: int) -> int:
        """Return how many entries have, as the first `bits` bits of `high`, less than `part`."""
        if bits <= self.fence_bits:
            return int(self.fences[part << (self.fence_bits - bits)])
        if part >> bits:
            return len(self)
        fence = part >> (bits - self.fence_bits)
        start, stop = int(self.fences[fence]), int(self.fences[fence + 1])
        below = self.high[start:stop] < np.uint64(part << (64 - bits))
        return start + int(np.count_nonzero(below))

    def verify(self) -> None:
        """Read every entry; `CorruptFileError` if order, fences or groups are wrong."""
        last = KeyHash(-1, -1)
        for start in range(0, len(self), ENTRIES_PER_BLOCK):
            stop = min(start + ENTRIES_PER_BLOCK, len(self))
            high, low, _, _ = self.entries(start, stop)
            rising = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
            if not rising.all() or KeyHashes(high, low).at(0) <= last:
                raise CorruptFileError(
                    f"the entries of an index run don't rise; {_REMEDY}", path=self.path
                )
            last = KeyHashes(high, low).at(-1)
            places = np.arange(start, stop)
            fence = bucket_of(high, self.fence_bits)
            if (self.fences[fence] > places).any() or (self.fences[fence + 1] <= places).any():
                raise CorruptFileError(
                    f"a fence of an index run is wrong; {_REMEDY}", path=self.path
                )


def _sections(view: memoryview, path: str) -> Sections:
    if view.nbytes < HEADER_BYTES + TRAILER_BYTES or view[:HEADER_BYTES] != HEADER:
        raise CorruptFileError(
            f"a file isn't an index run; {_REMEDY}", path=path, bytes=view.nbytes
        )
    trailer = bytes(view[-TRAILER_BYTES:])
    entries, groups, fence_bits, _ = TRAILER.unpack(trailer)
    sections = Sections(entries, groups, min(fence_bits, FENCE_BITS_MAX + 1))
    canonical = TRAILER.pack(entries, groups, fence_bits, MAGIC) == trailer
    if not canonical or fence_bits > FENCE_BITS_MAX or sections.size != view.nbytes:
        raise CorruptFileError(
            f"an index run is cut off or its trailer is damaged; {_REMEDY}",
            path=path,
            bytes=view.nbytes,
        )
    gaps = (
        (sections.entries_end, sections.fences_start),
        (sections.fences_end, sections.groups_start),
        (sections.groups_end, sections.trailer_start),
    )
    if any(any(view[start:stop]) for start, stop in gaps):
        raise CorruptFileError(f"a gap of an index run is not empty; {_REMEDY}", path=path)
    return sections


def _rises(fences: NDArray[np.uint32]) -> bool:
    # By blocks, so that a mapped file is not doubled in memory.
    for start in range(0, len(fences), ENTRIES_PER_BLOCK):
        block = fences[start : start + ENTRIES_PER_BLOCK + 1]
        if (block[1:] < block[:-1]).any():
            return False
    return True
