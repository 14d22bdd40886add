"""Row digests: 64 bits over a row's values, which prove that a set of changed columns fits the row.

    digest(row) = mix(sum of part(column, value) over the columns that are not null, mod 2^64)
    part(column, value):
        seed = XXH3-64 of Column.identity in UTF-8, so a column dropped and added again is a new one
        h    = mix(seed xor word 0)
        h    = mix(h xor word 1)             only for types of two words
    mix = the finaliser of splitmix64:
        x ^= x >> 30; x *= 0xbf58476d1ce4e5b9; x ^= x >> 27; x *= 0x94d049bb133111eb; x ^= x >> 31

A value's words, unsigned and 64 bits wide:

    boolean                      0 or 1
    byte, short, integer, long   the value, sign-extended
    date, timestamp              days, microseconds since 1970, sign-extended
    float, double                the IEEE 754 bits (a float's zero-extended); every NaN is the quiet
                                 one with an empty payload; -0.0 and 0.0 differ
    decimal                      the unscaled value in two's complement, low 64 bits; with more than
                                 18 digits also the high 64 bits as word 1
    string, binary               XXH3-64 of the bytes

A column of the change (`Column.of_change`) or a copy (`copy_of`) has no part. A null adds nothing,
so the order of columns does not matter and a column added later leaves the digests of rows where it
is null as they were. The digest is stored as a signed integer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

import numpy as np
import numpy.typing as npt
import polars as pl
import polars_hash as plh
import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, Unsigned
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)

# Up to 18 digits a decimal's high word only repeats the sign of the low one.
_ONE_WORD_DIGITS = 18

_SIGNED: dict[Primitive, type[np.signedinteger]] = {
    Primitive.BYTE: np.int8,
    Primitive.SHORT: np.int16,
    Primitive.INTEGER: np.int32,
    Primitive.LONG: np.int64,
    Primitive.DATE: np.int32,
    Primitive.TIMESTAMP: np.int64,
}


def row_digest(images: pa.Table, schema: TableSchema) -> Integers:
    """Return the digest of every row of `images`, in their order.

    `images` has columns by stored name in their exact types. A column of `schema` that it lacks
    counts as null, and a column that `schema` lacks is ignored. `UsageError` for a column of
    another type.
    """
    total = np.zeros(images.num_rows, dtype=np.uint64)
    for column, values in _digested(images, schema):
        total += _column_part(column, values)
    return _mix(total).view(np.int64)


def both_digests(
    before: pa.Table, after: pa.Table, schema: TableSchema, equal: Collection[str]
) -> tuple[Integers, Integers]:
    """Return the digests of the rows of two tables with the same columns, as `row_digest` does; the
    columns in `equal` have the same values in both, so they are computed once.
    """
    old_total, new_total = np.zeros((2, after.num_rows), dtype=np.uint64)
    for (column, old), (_, new) in zip(
        _digested(before, schema), _digested(after, schema), strict=True
    ):
        part = _column_part(column, old)
        old_total += part
        new_total += part if column.name in equal else _column_part(column, new)
    return _mix(old_total).view(np.int64), _mix(new_total).view(np.int64)


def _digested(images: pa.Table, schema: TableSchema) -> Iterator[tuple[Column, pa.Array]]:
    """Yield the columns that count, with their values."""
    at = {name: number for number, name in enumerate(images.column_names)}
    for column in schema.columns:
        if column.name not in at or column.of_change or column.copy_of is not None:
            continue
        values = contiguous(images.column(at[column.name]))
        if values.type != column.type.arrow:
            raise UsageError(
                "a column to digest is not of its stored type; cast it where it is decoded",
                column=column.name,
                expected=str(column.type.arrow),
                found=str(values.type),
            )
        yield column, values


def _column_part(column: Column, values: pa.Array) -> Unsigned:
    part = _part(column.identity, column_words(values, column.type))
    if values.null_count:
        part[np.asarray(values.is_null())] = 0
    return part


def contiguous(values: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array, without a copy if it is one already."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def column_words(values: pa.Array, kind: ColumnType) -> tuple[Unsigned, ...]:
    """Return each value's words as defined at the head of this module; those of a null are
    arbitrary.

    Two values of a fixed-width type are equal exactly if their words are.
    """
    if kind.kind in (Primitive.STRING, Primitive.BINARY):
        return (_bytes_hash(values),)
    if kind.kind is Primitive.BOOLEAN:
        return (np.asarray(values.fill_null(False)).astype(np.uint64),)
    if kind.kind is Primitive.FLOAT:
        return (_float_bits(_buffer(values, np.float32), np.uint32, 0x7FC00000).astype(np.uint64),)
    if kind.kind is Primitive.DOUBLE:
        return (_float_bits(_buffer(values, np.float64), np.uint64, 0x7FF8000000000000),)
    if kind.kind is Primitive.DECIMAL:
        halves = _buffer(values, np.dtype((np.uint64, 2)))
        low, high = np.ascontiguousarray(halves[:, 0]), halves[:, 1]
        return (low,) if kind.precision <= _ONE_WORD_DIGITS else (low, np.ascontiguousarray(high))
    return (_buffer(values, _SIGNED[kind.kind]).astype(np.int64).view(np.uint64),)


def _buffer(values: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[np.generic]:
    """View an array's fixed-width values, including those under nulls."""
    width = np.dtype(dtype)
    data = values.buffers()[1]
    if data is None or not len(values):
        return np.zeros(len(values), dtype=width)
    return np.frombuffer(
        data, dtype=width, count=len(values), offset=values.offset * width.itemsize
    )


def _float_bits(
    values: npt.NDArray[np.generic], bits: type[np.unsignedinteger], nan: int
) -> Unsigned:
    words: Unsigned = values.view(bits).copy()
    words[np.isnan(values)] = nan
    return words


_XXH3: pl.Expr = plh.col("v").nchash.xxh3_64()


def _bytes_hash(values: pa.Array) -> Unsigned:
    # Without a table and a thread pool: most batches are small, and then these would take longest.
    held = pl.Series("v", values.cast(pa.large_binary())).to_frame()
    hashed = held.select_seq(_XXH3).to_series()
    return (hashed.fill_null(0) if hashed.null_count() else hashed).to_numpy()


@cache
def _seed(identity: str) -> np.uint64:
    return np.uint64(_bytes_hash(pa.array([identity.encode()], pa.binary()))[0])


def _part(identity: str, words: tuple[Unsigned, ...]) -> Unsigned:
    mixed = _mix(words[0] ^ _seed(identity))
    for word in words[1:]:
        mixed = _mix(mixed ^ word)
    return mixed


def _mix(words: Unsigned) -> Unsigned:
    """Apply the finaliser of splitmix64 in place; `words` must belong to the caller."""
    words ^= words >> _SHIFT_1
    words *= _MIX_1
    words ^= words >> _SHIFT_2
    words *= _MIX_2
    words ^= words >> _SHIFT_3
    return words
