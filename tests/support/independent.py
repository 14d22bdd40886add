"""Hashes, registers and index runs, implemented only from docs/format.md, without our code."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import xxhash

MASK_64 = (1 << 64) - 1
_MASK_32 = (1 << 32) - 1
_IV = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip
_ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_MIXED = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip
_ONE_BLOCK = 1 | 2 | 8  # chunk start, chunk end, root


def blake3_of_one_block(data: bytes) -> bytes:
    """BLAKE3 of at most 64 bytes: one compression."""
    assert len(data) <= 64
    words = list(struct.unpack("<16I", data.ljust(64, b"\0")))
    state = [*_IV, *_IV[:4], 0, 0, len(data), _ONE_BLOCK]
    for _ in range(7):
        for pair, (a, b, c, d) in enumerate(_MIXED):
            _quarter(state, a, b, c, d, words[2 * pair], words[2 * pair + 1])
        words = [words[at] for at in _ORDER]
    return struct.pack("<8I", *(state[at] ^ state[at + 8] for at in range(8)))


def _quarter(state: list[int], a: int, b: int, c: int, d: int, first: int, second: int) -> None:
    for word, by_d, by_b in ((first, 16, 12), (second, 8, 7)):
        state[a] = (state[a] + state[b] + word) & _MASK_32
        state[d] = _rotated(state[d] ^ state[a], by_d)
        state[c] = (state[c] + state[d]) & _MASK_32
        state[b] = _rotated(state[b] ^ state[c], by_b)


def _rotated(word: int, by: int) -> int:
    return (word >> by | word << (32 - by)) & _MASK_32


def digest(parts: dict[str, int]) -> int:
    """The row digest of columns that aren't null: identity -> its one word."""
    total = 0
    for identity, word in parts.items():
        total += _mix(xxhash.xxh3_64_intdigest(identity.encode()) ^ word & MASK_64)
    signed = _mix(total & MASK_64)
    return signed - (1 << 64) if signed >> 63 else signed


def text_word(text: str) -> int:
    """The word of a string."""
    return xxhash.xxh3_64_intdigest(text.encode())


def _mix(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK_64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK_64
    return x ^ x >> 31


def hash_of_key(*values: int | str) -> tuple[int, int]:
    """The `high` and `low` of a key of whole numbers and strings, together of at most 64 bytes."""
    parts = (
        value.to_bytes(8, "big", signed=True) if isinstance(value, int) else value.encode()
        for value in values
    )
    data = b"".join(struct.pack(">I", len(part)) + part for part in parts)
    high, low = struct.unpack(">QQ", blake3_of_one_block(data)[:16])
    return high, low


def registers(has: Sequence[bool]) -> bytes:
    """The column positions of a change whose image has these columns, by their identities."""
    marks = [0 if known else 1 for known in [*has, False]]
    entry = struct.pack("<qqB", -1, -1, 0)
    return struct.pack(f"<H{len(marks)}H", len(marks), *marks) + entry


def index_run(entries: Mapping[tuple[int, int], tuple[int, int]]) -> bytes:
    """A run of the row index that leads from key hashes to file groups and rows."""
    ordered = sorted(entries.items())
    groups = list(dict.fromkeys(group for _, (group, _) in ordered))
    bits = max(-(-len(ordered) // 2) - 1, 0).bit_length()
    firsts = [high >> (64 - bits) for (high, _), _ in ordered]
    fences = [sum(first < bound for first in firsts) for bound in range((1 << bits) + 1)]
    sections = [
        b"LKSPRUN1".ljust(64, b"\0"),
        b"".join(
            struct.pack("<QQQ", high, low, groups.index(group) << 32 | row)
            for (high, low), (group, row) in ordered
        ),
        struct.pack(f"<{len(fences)}I", *fences),
        struct.pack(f"<{len(groups)}q", *groups),
        struct.pack("<QQI36x", len(ordered), len(groups), bits) + b"LKSPRUN1",
    ]
    return b"".join(section + bytes(-len(section) % 64) for section in sections)
