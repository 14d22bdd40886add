"""What docs/format.md says of hashes, written from the document alone and from nothing of ours."""

from __future__ import annotations

import struct

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
