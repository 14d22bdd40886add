"""Decimals of at most eight bytes out of base64, for whole columns in some twenty array operations.

Nearly all decimals are that short. The general way, bytes first and then words of 16 bytes
(`binary.py`, `decimals.py`), takes three times as long: 345 µs for 5,000 values, here 112. It
decides about all other texts: what this module doesn't read isn't wrong.
"""

from __future__ import annotations

import string

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakesplice.formats.events.json_reading.texts import text_bytes
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.types import ColumnType

# Four characters, a quad, stand for three bytes. Three quads are nine bytes, so the last one of
# three needs padding.
_QUAD_BITS, _PAD_BITS, _QUADS_MAX = 24, 8, 3
_WORD_BITS = 64
_DIGITS_OF_A_WORD = 18
_ALPHABET = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()
_INVALID = np.int32(-1)
_QUAD = np.int32((1 << _QUAD_BITS) - 1)
# Bits of a quad that its padding leaves out; a canonical text has zeros there.
_LEFT_OUT = np.array([0, 0xFF, 0xFFFF], np.int32)

Quads = npt.NDArray[np.int32]


def short_decimals(raw: pa.Array, type_: ColumnType) -> tuple[pa.Array, Mask] | None:
    """Return what `decimals_from_bytes` returns for the bytes that base64 texts stand for; None if
    a text isn't the canonical base64 of one to eight bytes.

    Shape: as many as `raw`, an array of texts.
    """
    data, offsets = text_bytes(raw)
    present = raw.is_valid().to_numpy(zero_copy_only=False)
    starts, ends = offsets[:-1][present], offsets[1:][present]
    lengths = ends - starts
    # Nulls have no bytes, so that all quads belong to texts.
    if not len(data) or int(lengths.sum()) != len(data):
        return None
    if lengths.min() == 0 or lengths.max() > 4 * _QUADS_MAX or (lengths & 3).any():
        return None
    pairs = data.view("<u2")
    quads = _FIRST_PAIRS[pairs[0::2]] | _SECOND_PAIRS[pairs[1::2]]
    if quads.min() < 0:
        return None
    found = _numbers(quads & _QUAD, quads >> _QUAD_BITS, starts >> 2, lengths >> 2)
    return None if found is None else _decimals(found, present, type_)


def _numbers(bits: Quads, padding: Quads, first: Integers, count: Integers) -> Integers | None:
    """Return the signed number of each text, whose quads begin at `first`; None if a text isn't
    canonical or too long.
    """
    padded = padding[first + count - 1]
    within = np.count_nonzero(padding) != np.count_nonzero(padded)
    if within or (bits & _LEFT_OUT[padding]).any():
        return None
    # The first byte is put where a word's sign is, so that one shift spreads the sign.
    number: Integers = bits[first].astype(np.int64) << (_WORD_BITS - _QUAD_BITS)
    second = np.flatnonzero(count > 1)
    number[second] |= bits[first[second] + 1].astype(np.int64) << (_WORD_BITS - 2 * _QUAD_BITS)
    third = np.flatnonzero(count == _QUADS_MAX)
    if len(third):
        if not padded[third].all():
            return None
        number[third] |= bits[first[third] + 2].astype(np.int64) >> _PAD_BITS
    number >>= _WORD_BITS - (_QUAD_BITS * count - _PAD_BITS * padded)
    return number


def _decimals(numbers: Integers, present: Mask, type_: ColumnType) -> tuple[pa.Array, Mask]:
    wrong = np.zeros(len(present), np.bool_)
    if type_.precision <= _DIGITS_OF_A_WORD:
        limit = 10**type_.precision
        wrong[present] = (numbers >= limit) | (numbers <= -limit)
    words = np.zeros((len(present), 2), "<i8")
    words[present, 0] = numbers
    words[present, 1] = numbers >> (_WORD_BITS - 1)
    valid = present & ~wrong
    validity = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_.arrow, len(present), [validity, pa.py_buffer(words)]), wrong


def _tables() -> tuple[Quads, Quads]:
    """Return what two characters stand for as the first and as the second pair of a quad, by their
    number as little-endian; only a second pair may have padding, whose count is above its bits.
    """
    value = np.full(256, _INVALID, np.int32)
    value[list(_ALPHABET)] = np.arange(len(_ALPHABET))
    low, high = value[np.newaxis, :], value[:, np.newaxis]
    pair = np.where((low < 0) | (high < 0), _INVALID, low << 6 | high)
    second = pair.copy()
    pad = ord("=")
    second[pad, :] = np.where(value < 0, _INVALID, value << 6 | 1 << _QUAD_BITS)
    second[pad, pad] = 2 << _QUAD_BITS
    first = np.where(pair < 0, _INVALID, pair << 12)
    return first.reshape(-1).astype(np.int32), second.reshape(-1).astype(np.int32)


_FIRST_PAIRS, _SECOND_PAIRS = _tables()
