"""Bytes out of texts: base64, characters that stand for bytes, and zeros that a source left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.texts import text_bytes
from lakesplice.model.arrays import Mask

_TWO_BYTES = 0xC0


def decode_base64(raw: pa.Array) -> tuple[pa.Array, Mask | None]:
    """Return the bytes that base64 texts stand for, and which texts aren't base64."""
    decoded = pl.Series(raw).str.decode("base64", strict=False).to_arrow().cast(pa.binary())
    if decoded.null_count == raw.null_count:
        return decoded, None
    return decoded, pc.and_(decoded.is_null(), raw.is_valid()).to_numpy(zero_copy_only=False)


def padded(values: pa.Array, width: int) -> tuple[pa.Array, Mask | None]:
    """Add the missing zeros to values of fewer than `width` bytes; return also which values had
    more bytes, which become null. A `width` of 0 allows any.
    """
    if not width:
        return values, None
    missing = pc.subtract(width, pc.binary_length(values))
    if pc.any(pc.less(missing, 0)).as_py():
        beyond = pc.less(missing, 0).fill_null(False)
        kept, _ = padded(pc.if_else(beyond, pa.scalar(None, values.type), values), width)
        return kept, beyond.to_numpy(zero_copy_only=False)
    if not pc.any(pc.greater(missing, 0)).as_py():
        return values, None
    zeros = pa.array([bytes(count) for count in range(width + 1)], pa.binary())
    none = pa.scalar(b"", pa.binary())
    return pc.binary_join_element_wise(values, zeros.take(missing), none), None


def bytes_of_latin1(raw: pa.Array) -> tuple[pa.Array, Mask | None]:
    """Return the bytes that were each sent as the character of its number, in UTF-8 one byte, or
    two from 128 on; and which texts have other characters.
    """
    other = pc.match_substring_regex(raw, r"[^\x00-\x{FF}]").fill_null(False)
    texts = pc.if_else(other, pa.scalar(None, pa.string()), raw) if other.true_count else raw
    data, offsets = text_bytes(texts.cast(pa.binary()))
    lead = data >= _TWO_BYTES
    follows = np.zeros(len(data), np.bool_)
    follows[1:] = lead[:-1]
    octets = np.where(follows, data + ((np.roll(data, 1) & 3) << 6) - 0x80, data).astype(np.uint8)
    kept = np.concatenate(([0], np.cumsum(~lead)))
    # The value under a null doesn't matter: the mask marks it as null.
    values = pa.Array.from_buffers(
        pa.binary(),
        len(raw),
        [
            pa.array(texts.is_valid().to_numpy(zero_copy_only=False)).buffers()[1],
            pa.py_buffer(kept[offsets].astype(np.int32)),
            pa.py_buffer(octets[~lead]),
        ],
    )
    flawed = other.to_numpy(zero_copy_only=False) if other.true_count else None
    return values, flawed
