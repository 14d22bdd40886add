"""Decimals as Kafka Connect sends them: the unscaled value as big-endian two's complement."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.lines import Mask, text_bytes
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType

_DECIMAL_BYTES = 16
_SIGN_BIT = 7


def decimals_from_bytes(values: pa.Array, type_: ColumnType) -> tuple[pa.Array, Mask]:
    """Return the decimals, null where the value is null or not of the type, and a mask of the
    latter.

    Shape: as many as `values`, a binary array. No bytes at all are no number.
    """
    data, offsets = text_bytes(values)
    lengths = np.diff(offsets)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    wrong: Mask = valid & ((lengths == 0) | (lengths > _DECIMAL_BYTES))
    usable = valid & ~wrong
    words = np.zeros((len(values), _DECIMAL_BYTES), np.uint8)
    lengths = np.where(usable, lengths, 0)
    if len(data):
        last = offsets[1:] - 1
        first = data[np.minimum(offsets[:-1], len(data) - 1)]
        negative = usable & (first >> _SIGN_BIT == 1)
        words[negative] = 0xFF
        for place in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > place)
            words[rows, place] = data[last[rows] - place]
    wide = _from_words(words, pa.decimal128(DECIMAL_PRECISION_MAX, type_.scale))
    least, most = decimal_limits(type_, wide.type)
    fits = pc.and_(pc.greater_equal(wide, least), pc.less_equal(wide, most))
    wrong |= usable & ~fits.to_numpy(zero_copy_only=False)
    return _from_words(words, type_.arrow, valid & ~wrong), wrong


def decimal_limits(type_: ColumnType, wide: pa.DataType) -> tuple[pa.Scalar, pa.Scalar]:
    """Return the least and the largest decimal of a type, as one of a wider type."""
    nines = (9,) * type_.precision
    least, most = (pa.scalar(Decimal((sign, nines, -type_.scale)), wide) for sign in (1, 0))
    return least, most


def _from_words(
    words: npt.NDArray[np.uint8], type_: pa.DataType, valid: Mask | None = None
) -> pa.Array:
    bits = None if valid is None or valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(type_, len(words), [bits, pa.py_buffer(words)])
