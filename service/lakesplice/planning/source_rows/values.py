"""Converts canonical texts to the values that streaming gives the same column.

The conversions are those of change events (`formats/events/cells`), so both ways give the same
value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.cells.column import Column, wrong_type
from lakesplice.formats.events.cells.conversion import convert
from lakesplice.formats.events.cells.geometry import extended_wkb, of_mysql
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive
from lakesplice.planning.source_rows.columns import ReadColumn, TextForm

_NUMBERS = (TextForm.DAYS, TextForm.MICROS, TextForm.TIME)
_DOUBLE_DIGITS = 16  # hexadecimal ones


def text_type(column: ReadColumn) -> pa.DataType:
    """Return the type in which a column's texts are read: an integer if every text is one."""
    return pa.int64() if column.form in _NUMBERS else pa.string()


def values_of(column: ReadColumn, texts: pa.Array) -> Column:
    """Return the values of canonical texts, in the column's type.

    `texts` has the type of `text_type`; for bytes it may hold the bytes themselves. A text whose
    value doesn't fit the type is a flaw, as in an event.
    """
    return _CONVERSIONS[column.form](column, texts)


def _converted(raw: pa.Array, type_: ColumnType, encoding: Encoding, source: str = "") -> Column:
    (column,) = convert([(raw, Cell("", type_, encoding, source))])
    return column


def _digits(column: ReadColumn, texts: pa.Array) -> Column:
    kind = column.type.kind
    if kind is Primitive.BOOLEAN:
        return _converted(texts, column.type, Encoding.BOOLEAN_TEXT)
    if kind is Primitive.BINARY:
        return _converted(texts, column.type, Encoding.BITS_TEXT, f"bit({column.bits})")
    if kind is Primitive.DECIMAL:
        return _converted(texts, column.type, Encoding.DECIMAL_TEXT)
    if kind in WHOLE_NUMBERS:
        return _converted(texts, column.type, Encoding.INTEGER_TEXT)
    if kind is Primitive.STRING:
        return Column(texts)
    return _converted(texts, column.type, Encoding.FLOAT_TEXT)


def _days(column: ReadColumn, numbers: pa.Array) -> Column:
    return _converted(numbers, column.type, Encoding.DATE_DAYS)


def _micros(column: ReadColumn, numbers: pa.Array) -> Column:
    return _converted(numbers, column.type, Encoding.TIMESTAMP_MICROS)


def _time(column: ReadColumn, numbers: pa.Array) -> Column:
    unit = column.unit
    values = pc.multiply(numbers, -unit) if unit < 0 else pc.divide(numbers, unit)
    return Column(values.cast(column.type.arrow))


def _float_bits(column: ReadColumn, texts: pa.Array) -> Column:
    octets, wrong = _hexadecimal(texts)
    sized = pc.equal(pc.binary_length(octets), _DOUBLE_DIGITS // 2)
    zero = pa.scalar(bytes(_DOUBLE_DIGITS // 2), pa.binary())
    whole = pc.if_else(pc.fill_null(sized, False), octets, zero).cast(pa.binary(8))
    numbers = np.frombuffer(whole.buffers()[1], "<f8", len(whole), 8 * whole.offset)
    with np.errstate(over="ignore"):
        values = numbers.astype(column.type.arrow.to_pandas_dtype())
    mask = np.asarray(pc.invert(pc.fill_null(sized, False)))
    bad = mask & np.asarray(texts.is_valid())
    return Column(
        pa.array(values, column.type.arrow, mask=mask), wrong_type(bad if bad.any() else wrong)
    )


def _characters(_: ReadColumn, texts: pa.Array) -> Column:
    return Column(texts)


def _octets(_: ReadColumn, texts: pa.Array) -> Column:
    octets, wrong = _hexadecimal(texts)
    return Column(octets, wrong_type(wrong))


def _geometry(_: ReadColumn, texts: pa.Array) -> Column:
    octets, wrong = _hexadecimal(texts)
    values, unshaped = extended_wkb(of_mysql(octets))
    flaws = ((unshaped, DeadReason.WRONG_TYPE),) if unshaped.any() else ()
    return Column(values, (*wrong_type(wrong), *flaws))


def _hexadecimal(texts: pa.Array) -> tuple[pa.Array, Mask | None]:
    if pa.types.is_binary(texts.type):
        return texts, None
    decoded = pl.Series(texts).str.decode("hex", strict=False).to_arrow().cast(pa.binary())
    if decoded.null_count == texts.null_count:
        return decoded, None
    return decoded, np.asarray(pc.and_(decoded.is_null(), texts.is_valid()))


_CONVERSIONS: dict[TextForm, Callable[[ReadColumn, pa.Array], Column]] = {
    TextForm.DIGITS: _digits,
    TextForm.FLOAT_BITS: _float_bits,
    TextForm.DAYS: _days,
    TextForm.MICROS: _micros,
    TextForm.TIME: _time,
    TextForm.CHARACTERS: _characters,
    TextForm.OCTETS: _octets,
    TextForm.GEOMETRY: _geometry,
}
