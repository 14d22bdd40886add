"""Converts values of the lake to the canonical texts that the source's database returns
(`columns.py`).

It is the inverse of `values.py`: a value that was read from a text gets the same text. No two
values of a column have the same text, whatever the lake holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.types import Primitive
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm

_SYSTEM_FLAG = 0x20
_FLAG_AT, _SYSTEM_AT, _SHAPE_AT = 4, 5, 9
_NO_SYSTEM = bytes(4)
# With more digits Arrow writes small numbers with an exponent: 0E-7.
_PLAIN_SCALE_MAX = 6
_DIGITS_OF_DOUBLE = 16
# The two hexadecimal digits of each octet, as one little-endian number.
_DIGITS_OF_OCTET = np.array([int.from_bytes(b"%02X" % n, "little") for n in range(256)], "<u2")


def canonical_text_problem(column: ReadColumn) -> str:
    """Return, in words, why a table's values don't have the texts that the source's database
    returns; an empty text if they have them.
    """
    kind = column.type.kind
    if column.form is TextForm.DIGITS and kind in (Primitive.FLOAT, Primitive.DOUBLE):
        return "the table holds floating-point numbers instead of exact ones"
    if (
        column.form is TextForm.DIGITS
        and kind is Primitive.DECIMAL
        and column.type.scale != column.scale
    ):
        return "the table and the database hold different numbers of digits"
    return ""


def canonical_texts(column: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    """Return the texts of values of the column's type; null stays null, and characters stay as they
    are.
    """
    return _CONVERSIONS[column.form](column, values)


def _digits(column: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    kind = column.type.kind
    if kind is Primitive.BOOLEAN:
        return _texts(values.cast(pa.int8()))
    if kind is Primitive.BINARY:
        return _bits(column, values)
    if kind is Primitive.DECIMAL and column.type.scale > _PLAIN_SCALE_MAX:
        return _of_polars(pl.Series(values).cast(pl.String))
    return _texts(values)


def _bits(column: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    """The numbers that whole bytes represent, the least significant byte first."""
    size = -(-column.bits // 8)
    numbers = [None if v is None else _number(v, size) for v in values.to_pylist()]
    return pa.array(numbers, pa.large_string())


def _number(value: bytes, size: int) -> str:
    # A wrong number of bytes is no number of the database's.
    return str(int.from_bytes(value, "little")) if len(value) == size else f"x{value.hex()}"


def _days(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    return _texts(values.cast(pa.int32()))


def _micros(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    return _texts(values.cast(pa.int64()))


def _time(column: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    whole, unit = values.cast(pa.int64()), column.unit
    if unit > 0:
        return _texts(pc.multiply(whole, unit))
    micros = pc.divide(whole, -unit)
    beside = pc.subtract(whole, pc.multiply(micros, -unit))
    texts = _texts(micros)
    if not pc.any(pc.not_equal(beside, 0)).as_py():
        return texts
    # No number of the database's.
    odd = pc.binary_join_element_wise(texts, _texts(beside), pa.scalar("+", pa.large_string()))
    return pc.if_else(pc.equal(beside, 0), texts, odd)


def _float_bits(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    octets = np.ascontiguousarray(numbers.astype("<f8")).view(np.uint8)
    ends = np.arange(len(values) + 1, dtype=np.int64) * _DIGITS_OF_DOUBLE
    digits = pa.py_buffer(_DIGITS_OF_OCTET[octets])
    texts = pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), digits)
    if not values.null_count:
        return texts
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.large_string()))


def _characters(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    return _texts(values)


def _octets(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    return _hexadecimal(values)


def _geometry(_: ReadColumn, values: pa.Array) -> pa.LargeStringArray:
    """The server's bytes for a geometry: the reference system, then the shape without it."""
    return _hexadecimal(pa.array([_of_server(v) for v in values.to_pylist()], pa.binary()))


def _of_server(value: bytes | None) -> bytes | None:
    if value is None:
        return None
    system = value[_SYSTEM_AT:_SHAPE_AT]
    if len(value) < _SHAPE_AT or not value[_FLAG_AT] & _SYSTEM_FLAG or system == _NO_SYSTEM:
        return _NO_SYSTEM + value
    flagless = bytes([value[_FLAG_AT] & ~_SYSTEM_FLAG])
    return system + value[:_FLAG_AT] + flagless + value[_SHAPE_AT:]


def _hexadecimal(octets: pa.Array) -> pa.LargeStringArray:
    return _of_polars(pl.Series(octets, dtype=pl.Binary).bin.encode("hex").str.to_uppercase())


def _of_polars(texts: pl.Series) -> pa.LargeStringArray:
    return texts.to_arrow(compat_level=pl.CompatLevel.oldest())


def _texts(values: pa.Array) -> pa.LargeStringArray:
    return values.cast(pa.large_string())


_CONVERSIONS: dict[TextForm, Callable[[ReadColumn, pa.Array], pa.LargeStringArray]] = {
    TextForm.DIGITS: _digits,
    TextForm.FLOAT_BITS: _float_bits,
    TextForm.DAYS: _days,
    TextForm.MICROS: _micros,
    TextForm.TIME: _time,
    TextForm.CHARACTERS: _characters,
    TextForm.OCTETS: _octets,
    TextForm.GEOMETRY: _geometry,
}
