"""Decimals as Kafka Connect sends them: the unscaled value as big-endian two's complement."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.texts import text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType

_DECIMAL_BYTES = 16
# A decimal of MySQL has 65 digits at most, which are 27 bytes; Arrow's widest has 76.
_WIDE_BYTES, _WIDE_DIGITS = 32, 76
_SIGN_BIT = 7


def decimals_from_bytes(values: pa.Array, type_: ColumnType) -> tuple[pa.Array, Mask]:
    """Return the decimals, null if the value is null or isn't of the type, and a mask of the
    latter.

    Shape: as many as `values`, a binary array. An empty value is no number.
    """
    data, offsets = text_bytes(values)
    lengths = np.diff(offsets)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    wrong: Mask = valid & ((lengths == 0) | (lengths > _DECIMAL_BYTES))
    valid_numbers = valid & ~wrong
    words = _words(data, offsets, np.where(valid_numbers, lengths, 0), _DECIMAL_BYTES)
    wide = _from_words(words, pa.decimal128(DECIMAL_PRECISION_MAX, type_.scale))
    least, most = decimal_limits(type_, wide.type)
    fits = pc.and_(pc.greater_equal(wide, least), pc.less_equal(wide, most))
    wrong |= valid_numbers & ~fits.to_numpy(zero_copy_only=False)
    return _from_words(words, type_.arrow, valid & ~wrong), wrong


def digits_from_bytes(values: pa.Array, scale: int, precision: int) -> tuple[pa.Array, Mask]:
    """Return decimals of more than 38 digits as digits, `scale` of them after the point, and a mask
    of those that don't fit the precision; these are null, as null values are.
    """
    data, offsets = text_bytes(values)
    lengths = np.diff(offsets)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    wrong: Mask = valid & ((lengths == 0) | (lengths > _WIDE_BYTES))
    words = _words(data, offsets, np.where(valid & ~wrong, lengths, 0), _WIDE_BYTES)
    whole = _from_words(words, pa.decimal256(_WIDE_DIGITS, 0), valid & ~wrong)
    limit = pa.scalar(Decimal((0, (9,) * precision, 0)), whole.type)
    beyond = pc.greater(pc.abs(whole), limit).fill_null(False)
    wrong |= beyond.to_numpy(zero_copy_only=False)
    texts = pc.if_else(beyond, pa.scalar(None, whole.type), whole).cast(pa.string())
    return _pointed(texts, scale), wrong


def _pointed(texts: pa.Array, scale: int) -> pa.Array:
    """Insert the point into the digits of whole numbers."""
    if not scale:
        return texts
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), scale + 1, "0")
    head = pc.utf8_slice_codeunits(digits, 0, -scale)
    tail = pc.utf8_slice_codeunits(digits, -scale, _WIDE_DIGITS)
    return pc.binary_join_element_wise(sign, head, ".", tail, "")


def decimal_limits(type_: ColumnType, wide: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the smallest and the largest decimal of a type, in a wider type."""
    nines = (9,) * type_.precision
    least, most = (pa.scalar(Decimal((sign, nines, -type_.scale)), wide) for sign in (1, 0))
    return least, most


def _words(data: Bytes, offsets: Integers, lengths: Integers, width: int) -> Bytes:
    """Return numbers of different lengths, 0 for none, as little-endian numbers of one width."""
    words = np.zeros((len(lengths), width), np.uint8)
    if len(data):
        last = offsets[1:] - 1
        first = data[np.minimum(offsets[:-1], len(data) - 1)]
        words[(lengths > 0) & (first >> _SIGN_BIT == 1)] = 0xFF
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            words[rows, place] = data[last[rows] - place]
    return words


def _from_words(words: Bytes, type_: pa.DataType, valid: Mask | None = None) -> pa.Array:
    bits = None if valid is None or valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(words), [bits, pa.py_buffer(words)])
