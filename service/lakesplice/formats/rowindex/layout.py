"""The bytes of a run file. All numbers are little-endian; every section starts at a multiple of 64.

    header    64 bytes: magic "LKSPRUN1", then zeros
    entries   24 bytes each, strictly rising by (high, low):
                high     u64   key hash, bits 127 to 64
                low      u64   key hash, bits 63 to 0
                address  u64   number in the group table << 32 | row position
    fences    u32 each, 2**fence_bits + 1 of them: fence b is how many entries have a `high` whose
              first fence_bits bits are a number below b
    groups    i64 each: the group table, distinct file groups in the order of their first use
    trailer   64 bytes: entries u64, groups u64, fence_bits u32, zeros, and "LKSPRUN1" at the end

Gaps are zeros. An entry is one record, so that finding and reading it touches one or two cache
lines. Hashes are uniform, so a fence leaves one or two entries to look at (`FENCE_ENTRIES`); the
fences cost 2 to 4 bytes per entry. What follows from the number of entries stands at the end, so
that a run can be written in one pass. Neither checksums nor key bytes are in the file: the manifest
has the checksum of the whole, and 128 bits of hash stand for the key (`planning/rows/keyhash.py`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

MAGIC = b"LKSPRUN1"
ALIGNMENT = 64
HEADER_BYTES = 64
TRAILER_BYTES = 64
ENTRY_BYTES = 24
ENTRY_WORDS = 3
FENCE_BYTES = 4
GROUP_BYTES = 8
ENTRIES_MAX = (1 << 32) - 1
ROW_BITS = 32
# With fewer the fences outgrow the cache sooner than they save steps (benchmarks/locate.py).
FENCE_ENTRIES = 2
FENCE_BITS_MAX = 31
TRAILER = struct.Struct("<QQI36x8s")
HEADER = MAGIC + bytes(HEADER_BYTES - len(MAGIC))


def fence_bits_for(entries: int) -> int:
    """Return how many leading bits of `high` the fences of a run of this size distinguish."""
    fences = -(-entries // FENCE_ENTRIES)
    return max(fences - 1, 0).bit_length()


def padding(size: int) -> int:
    """Return how many zeros follow a section of `size` bytes."""
    return -size % ALIGNMENT


@dataclass(frozen=True, slots=True)
class Sections:
    """Where the sections of a run lie: offsets in bytes from the file's start."""

    entries: int
    groups: int
    fence_bits: int

    @property
    def entries_end(self) -> int:
        """First byte behind the entries, which begin behind the header."""
        return HEADER_BYTES + self.entries * ENTRY_BYTES

    @property
    def fences_start(self) -> int:
        """First byte of the fences."""
        return self.entries_end + padding(self.entries_end)

    @property
    def fences_end(self) -> int:
        """First byte behind the fences."""
        return self.fences_start + ((1 << self.fence_bits) + 1) * FENCE_BYTES

    @property
    def groups_start(self) -> int:
        """First byte of the group table."""
        return self.fences_end + padding(self.fences_end)

    @property
    def groups_end(self) -> int:
        """First byte behind the group table."""
        return self.groups_start + self.groups * GROUP_BYTES

    @property
    def trailer_start(self) -> int:
        """First byte of the trailer."""
        return self.groups_end + padding(self.groups_end)

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self.trailer_start + TRAILER_BYTES
