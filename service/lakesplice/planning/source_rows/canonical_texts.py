"""Converts values of the lake to the canonical texts that the source's database returns
(`columns.py`).

It is the inverse of `values.py`: a value that was read from a text gets the same text.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.types import Kind
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm

_SYSTEM_FLAG = 0x20
_FLAG_AT, _SYSTEM_AT, _SHAPE_AT = 4, 5, 9


def has_canonical_texts(column: ReadColumn) -> str:
    """Return why a column's values no longer have their source's texts; empty if they have them."""
    kind = column.type.kind
    if column.form is TextForm.DIGITS and kind in (Kind.FLOAT, Kind.DOUBLE):
        return "the table holds floating-point numbers instead of exact ones"
    if (
        column.form is TextForm.DIGITS
        and kind is Kind.DECIMAL
        and column.type.scale != column.scale
    ):
        return "the table and the database hold different numbers of digits"
    return ""


def canonical_texts(column: ReadColumn, values: pa.Array) -> pl.Series:
    """Return the texts of values of the column's type; null stays null, and characters stay as they
    are.
    """
    return _TEXTS[column.form](column, values)


def _digits(column: ReadColumn, values: pa.Array) -> pl.Series:
    kind = column.type.kind
    if kind is Kind.BOOLEAN:
        return pl.Series(values.cast(pa.int8()).cast(pa.string()))
    if kind is Kind.BINARY:
        return _bits(values)
    if kind is Kind.DECIMAL:
        # Arrow writes small ones with an exponent: 0E-7.
        return pl.Series(values).cast(pl.String)
    return pl.Series(values.cast(pa.string()))


def _bits(values: pa.Array) -> pl.Series:
    """The numbers that whole bytes represent, the least significant byte first."""
    numbers = [None if v is None else str(int.from_bytes(v, "little")) for v in values.to_pylist()]
    return pl.Series(numbers, dtype=pl.String)


def _days(_: ReadColumn, values: pa.Array) -> pl.Series:
    return pl.Series(values.cast(pa.int32()).cast(pa.string()))


def _micros(_: ReadColumn, values: pa.Array) -> pl.Series:
    return pl.Series(values.cast(pa.int64()).cast(pa.string()))


def _time(column: ReadColumn, values: pa.Array) -> pl.Series:
    whole, unit = values.cast(pa.int64()), column.unit
    micros = pc.divide(whole, -unit) if unit < 0 else pc.multiply(whole, unit)
    return pl.Series(micros.cast(pa.string()))


def _float_bits(_: ReadColumn, values: pa.Array) -> pl.Series:
    numbers = np.ascontiguousarray(
        values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False).astype("<f8")
    )
    octets = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(8), len(values), [None, pa.py_buffer(numbers)]
    ).cast(pa.binary())
    return _hexadecimal(pc.if_else(values.is_valid(), octets, pa.scalar(None, pa.binary())))


def _characters(_: ReadColumn, values: pa.Array) -> pl.Series:
    return pl.Series(values)


def _octets(_: ReadColumn, values: pa.Array) -> pl.Series:
    return _hexadecimal(values)


def _geometry(_: ReadColumn, values: pa.Array) -> pl.Series:
    """The server's bytes for a geometry: the reference system, then the shape without it."""
    return _hexadecimal(pa.array([_of_server(v) for v in values.to_pylist()], pa.binary()))


def _of_server(value: bytes | None) -> bytes | None:
    if value is None or len(value) < _SHAPE_AT or not value[_FLAG_AT] & _SYSTEM_FLAG:
        return None if value is None else bytes(4) + value
    flagless = bytes([value[_FLAG_AT] & ~_SYSTEM_FLAG])
    return value[_SYSTEM_AT:_SHAPE_AT] + value[:_FLAG_AT] + flagless + value[_SHAPE_AT:]


def _hexadecimal(octets: pa.Array) -> pl.Series:
    return pl.Series(octets, dtype=pl.Binary).bin.encode("hex").str.to_uppercase()


_TEXTS: dict[TextForm, Callable[[ReadColumn, pa.Array], pl.Series]] = {
    TextForm.DIGITS: _digits,
    TextForm.FLOAT_BITS: _float_bits,
    TextForm.DAYS: _days,
    TextForm.MICROS: _micros,
    TextForm.TIME: _time,
    TextForm.CHARACTERS: _characters,
    TextForm.OCTETS: _octets,
    TextForm.GEOMETRY: _geometry,
}
