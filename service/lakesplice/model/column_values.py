"""Values of a column: the fill of existing rows when it was added, as text; the conversion of
values of an earlier type to the present type; and decimals as texts and as doubles.

A fill is written as text, so that schemas stay plain values:

    boolean                     true, false
    whole, floating, decimal    digits
    date, timestamp             days, microseconds since 1970
    string                      itself
    binary                      base64

A column's type only ever changes to one that holds every value of the one before exactly
(`planning/schema/type_changes.py` decides), so `promoted` loses nothing.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.types import WHOLE_DIGITS, ColumnType, Primitive

AnyValues = TypeVar("AnyValues", pa.Scalar, pa.Array)
_COUNTED = {Primitive.DATE: pa.int32(), Primitive.TIMESTAMP: pa.int64()}


def fill_text(value: pa.Scalar, kind: ColumnType) -> str:
    """Return a value of the type, which is not null, as text."""
    if kind.kind is Primitive.BINARY:
        return b64encode(value.as_py()).decode()
    return str(counted(value, kind).cast(pa.string()).as_py())


def fill_value(text: str, kind: ColumnType) -> pa.Scalar:
    """Read back `fill_text`."""
    if kind.kind is Primitive.BINARY:
        return pa.scalar(b64decode(text), pa.binary())
    value = pa.scalar(text)
    if kind.kind in _COUNTED:
        value = value.cast(_COUNTED[kind.kind])
    return value.cast(kind.arrow)


def counted(values: AnyValues, kind: ColumnType) -> AnyValues:
    """Return values of the type, dates and moments among them as whole numbers: days, microseconds
    since 1970.
    """
    return values.cast(_COUNTED[kind.kind]) if kind.kind in _COUNTED else values


_DIGITS = {ColumnType(kind).arrow: digits for kind, digits in WHOLE_DIGITS.items()}

Values = TypeVar("Values", pa.Array, pa.ChunkedArray)
Expressed = TypeVar("Expressed", pa.Array, pc.Expression)


def promoted(values: Values, to: pa.DataType) -> Values:
    """Convert values, of the type or of a type that was changed to it, to the type.

    `pa.ArrowInvalid` if a value doesn't fit, so that it is of neither.
    """
    if values.type == to:
        return values
    if pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        # Arrow would read texts as numbers.
        raise pa.ArrowInvalid(f"no {to} was ever {values.type}")
    if pa.types.is_decimal(to) and values.type in _DIGITS:
        # Arrow wants room for all digits that the integer type could have.
        values = values.cast(pa.decimal128(min(38, _DIGITS[values.type] + to.scale), to.scale))
    return values.cast(to)


def decimal_texts(values: pa.Array) -> pa.Array:
    """Return decimals as plain digits, all those of the scale behind the point: Arrow's own cast
    writes small ones with an exponent, among them a zero of seven places (0E-7).
    """
    scale = values.type.scale
    unscaled = pa.Array.from_buffers(
        pa.decimal128(38, 0), len(values), values.buffers(), values.null_count, values.offset
    )
    texts = unscaled.cast(pa.string())
    if not scale:
        return texts
    sign = pc.if_else(pc.starts_with(texts, "-"), "-", "")
    digits = pc.utf8_lpad(pc.utf8_ltrim(texts, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    return pc.binary_join_element_wise(
        sign, whole, ".", pc.utf8_slice_codeunits(digits, -scale), ""
    )


def decimals_as_doubles(values: Expressed) -> Expressed:
    """Return for decimals, an array or an expression of them, the nearest doubles: Arrow's own cast
    misses those of one decimal(7,2) in seven by a bit.
    """
    return values.cast(pa.string()).cast(pa.float64())
