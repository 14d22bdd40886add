"""Key hashes: 128 bits of BLAKE3 over a key's canonical bytes.

The row index, the shuffle and the folds know a key only by this hash, so it is part of the format
and never changes. A key's canonical bytes are its columns' parts in key order, each part being

    length   4 bytes, unsigned big-endian: how many value bytes follow
    value    by the column's type:
             byte, short, integer, long   8 bytes, two's complement big-endian
             boolean                      the same, true being 1
             date                         the same, days since 1970-01-01
             timestamp                    the same, microseconds since 1970-01-01 UTC
             float, double                8 bytes, IEEE 754 double big-endian, -0.0 as 0.0
             decimal                      16 bytes, two's complement big-endian: the unscaled value
             string                       its UTF-8 bytes
             binary                       its bytes

The lengths make the encoding of composite keys injective: ("ab", "c") and ("a", "bc") differ.
Integers have one width, so that widening a key column keeps its hashes. A decimal's scale belongs
to the column. Strings are compared as bytes; a source that compares them otherwise (by a
case-insensitive collation) still has one key per row and deletes the old spelling of a changed one.

The hash is the first 16 bytes of the BLAKE3 digest: `high` is bytes 0 to 7 read as an unsigned
big-endian integer, `low` is bytes 8 to 15. Two given keys share a hash once in 2**128; among 10**12
keys any two do with a chance below 2**-48.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import polars_hash as plh
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lakesplice.errors import UnsupportedError
from lakesplice.model.arrays import Bytes, KeyHashes, Unsigned
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import Primitive

ROWS_PER_BLOCK = 1 << 17
HEX_DIGITS = 64
HASH_DIGITS = 32
_BLAKE3: pl.Expr = plh.col("key").chash.blake3()


def key_hash(table: pa.Table, schema: TableSchema) -> KeyHashes:
    """Return the hash of each row's key; `table` holds at least the key columns.

    Raises `UnsupportedError` for a schema without a key and for a null in a key column.
    """
    keys = _key_columns(schema)
    blocks = [
        _hash(_canonical(batch, keys))
        for batch in table.select(list(schema.key)).to_batches(max_chunksize=ROWS_PER_BLOCK)
        if batch.num_rows
    ]
    words = np.concatenate(blocks) if blocks else np.empty((0, 2), np.uint64)
    return KeyHashes(np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1]))


def salted_hash(keys: KeyHashes, salt: bytes) -> KeyHashes:
    """Return, for each key hash, the hash of it and of a salt: who has the result and doesn't guess
    the key learns nothing of it.
    """
    if not len(keys.high):
        return keys
    halves = [_bytes_of(half.astype(">u8")) for half in keys]
    salts = np.tile(np.frombuffer(salt, np.uint8), (len(keys.high), 1))
    words = _hash(_fixed(np.concatenate((salts, *halves), axis=1)))
    return KeyHashes(np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1]))


def canonical_keys(table: pa.Table, schema: TableSchema) -> pa.ChunkedArray:
    """Return the canonical key bytes per row as large binary; errors as `key_hash`."""
    keys = _key_columns(schema)
    chunks = [_canonical(batch, keys) for batch in table.select(list(schema.key)).to_batches()]
    return pa.chunked_array(chunks, pa.large_binary())


def _key_columns(schema: TableSchema) -> list[Column]:
    if not schema.key:
        raise UnsupportedError("the table has no key; give it a primary key at the source")
    columns = {column.name: column for column in schema.columns}
    return [columns[name] for name in schema.key]


def _canonical(batch: pa.RecordBatch, keys: list[Column]) -> pa.Array:
    parts = [_part(batch.column(column.name), column) for column in keys]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, _EMPTY)


def _part(values: pa.Array, column: Column) -> pa.Array:
    if values.null_count:
        raise UnsupportedError(
            "a key column holds a null; make it NOT NULL at the source", column=column.source_name
        )
    values = values.cast(column.type.arrow)
    if column.type.kind in (Primitive.STRING, Primitive.BINARY):
        raw = values.cast(pa.large_binary())
        lengths = pc.binary_length(raw).to_numpy().astype(">u4")
        return pc.binary_join_element_wise(_fixed(_bytes_of(lengths)), raw, _EMPTY)
    value = _value_bytes(values, column.type.kind)
    prefix = np.full(len(values), value.shape[1], ">u4")
    return _fixed(np.concatenate((_bytes_of(prefix), value), axis=1))


def _value_bytes(values: pa.Array, kind: Primitive) -> Bytes:
    """Return the value bytes of a fixed-width type as a matrix, one row per value."""
    if kind is Primitive.DECIMAL:
        # pyarrow has no cast from decimals to their bytes; the buffer holds them little-endian.
        raw = np.frombuffer(values.buffers()[1], np.uint8)
        first, last = values.offset * 16, (values.offset + len(values)) * 16
        return raw[first:last].reshape(-1, 16)[:, ::-1]
    if kind in (Primitive.FLOAT, Primitive.DOUBLE):
        return _bytes_of((values.cast(pa.float64()).to_numpy() + 0.0).astype(">f8"))
    if kind is Primitive.DATE:
        values = values.cast(pa.int32())
    return _bytes_of(values.cast(pa.int64()).to_numpy(zero_copy_only=False).astype(">i8"))


def _bytes_of(values: NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize)


def _fixed(matrix: Bytes) -> pa.Array:
    """Return the rows of a byte matrix as large binary values."""
    rows, width = matrix.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int64)
    data = pa.py_buffer(np.ascontiguousarray(matrix))
    return pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), data])


def _hash(keys: pa.Array) -> Unsigned:
    """Return the first two big-endian words of each key's BLAKE3 digest, as an [n, 2] array."""
    frame = pl.Series("key", keys, dtype=pl.Binary).to_frame()
    digests = frame.select_seq(_BLAKE3).to_series()
    text = digests.to_arrow(compat_level=pl.CompatLevel.oldest())
    first = np.frombuffer(text.buffers()[1], np.int64)[text.offset]
    digits = np.frombuffer(text.buffers()[2], np.uint8)[first : first + len(keys) * HEX_DIGITS]
    digits = digits.reshape(-1, HEX_DIGITS)[:, :HASH_DIGITS]
    # '0' to '9' are 0x30 to 0x39, 'a' to 'f' 0x61 to 0x66: bit 6 is set for letters, whose value is
    # 9 more.
    nibbles = (digits & 15) + 9 * (digits >> 6)
    octets = np.ascontiguousarray(nibbles[:, 0::2] << 4 | nibbles[:, 1::2])
    return octets.view(">u8").astype(np.uint64)


_EMPTY = pa.scalar(b"", pa.large_binary())
