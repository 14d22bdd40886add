"""Decimals of deltas in Avro: `decimal` over `bytes`, big-endian two's complement of one width.

The width is the least that holds every value of the precision, so a column's values are all as
long, signs extended, which Avro allows. Polars is shown plain bytes, since its version 2.1 wrote
decimals wrongly, so that these files couldn't be written by it: it left out the leading zero byte
that tells 42300 (00 a5 3c) from -23236 (a5 3c), and wrote zero as nothing at all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

_ARROW_BYTES = 16
_SIGN_BIT = 7


def decimal_bytes(type_: pa.DataType) -> int:
    """The width of a decimal type's values in a delta, in bytes."""
    # One bit is the sign's.
    return (int(10**type_.precision - 1).bit_length() + 8) // 8


def from_bytes(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """Read a column of such bytes as decimals; `pa.ArrowInvalid` if a value has another width."""
    width = decimal_bytes(type_)
    array = _one_array(column.cast(pa.binary(width)))
    values = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    values = values[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
    words = np.empty((len(array), _ARROW_BYTES), np.uint8)
    words[:, :width] = values[:, ::-1]
    words[:, width:] = np.where(values[:, :1] >> _SIGN_BIT, 0xFF, 0)
    return _from_words(type_, array, words)


def unname_decimals(avro_schema: bytes) -> bytes:
    """Call every decimal column bytes, so that Polars leaves its values alone."""
    schema = json.loads(avro_schema)
    for described in schema["fields"]:
        kinds = described["type"] if isinstance(described["type"], list) else [described["type"]]
        described["type"] = ["bytes" if _is_decimal(kind) else kind for kind in kinds]
    return json.dumps(schema).encode()


def _is_decimal(kind: object) -> bool:
    return isinstance(kind, Mapping) and kind.get("logicalType") == "decimal"


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _from_words(type_: pa.DataType, like: pa.Array, words: np.ndarray) -> pa.Array:
    """An array over `words` that is null where `like` is."""
    valid = like.is_valid().buffers()[1] if like.null_count else None
    return pa.Array.from_buffers(type_, len(like), [valid, pa.py_buffer(words)])
