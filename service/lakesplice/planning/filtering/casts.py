"""Casts of the values of edits: which kinds of values become which, without being altered silently.

Arrow converts more than that: it takes numbers for microseconds or days since 1970, and rounds a
double to a decimal's digits. And the double that it makes of a decimal often isn't the nearest one.
"""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.types import DECIMAL_PRECISION_MAX

_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)$"
Values = TypeVar("Values", pa.Array, pc.Expression)


def cast_value(value: pc.Expression, of: pa.DataType, to: pa.DataType) -> pc.Expression | None:
    """Return a value of one type in another, None if there is no such cast.

    Where digits would be lost, its evaluation fails; only to a floating-point number decimals
    become the nearest one, and of a moment a cast to a date takes the day. A text without a time
    zone is a moment in UTC.
    """
    if not is_castable(of, to):
        return None
    if _is_text(to):
        return _as_text(value, of)
    if _is_text(of) and pa.types.is_timestamp(to):
        in_utc = pc.binary_join_element_wise(value, "Z", "")
        value = pc.if_else(pc.match_substring_regex(value, _ZONE), value, in_utc)
    return nearest(value, of, to)


def nearest(values: Values, of: pa.DataType, to: pa.DataType) -> Values:
    """Return numbers of one type in another, rounded to its nearest ones."""
    return (values.cast(pa.string()) if is_rounded(of, to) else values).cast(to)


def _as_text(values: Values, of: pa.DataType) -> Values:
    """Return values as the texts that Spark writes, moments in UTC: `2026-01-31 08:00:00.25`.

    Arrow writes all digits of a moment and a `Z`, a small decimal with an exponent, and `1` for a
    double. Of doubles with an exponent each engine has another spelling, and Arrow's stays.
    """
    if pa.types.is_timestamp(of):
        texts = values.cast(pa.timestamp("us")).cast(pa.string())
        return pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")
    texts = values.cast(pa.string())
    if pa.types.is_floating(of):
        is_whole = pc.match_substring_regex(texts, r"^-?\d+$")
        return pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    if pa.types.is_decimal(of) and of.scale <= DECIMAL_PRECISION_MAX - 2:
        return _without_exponent(values, texts, of)
    return texts


def _without_exponent(values: Values, texts: Values, of: pa.DataType) -> Values:
    """Return decimals as digits: a small one has those behind the point that it has beside 1."""
    has_exponent = pc.match_substring(texts, "E")
    small = pc.if_else(has_exponent, pc.abs(values), pa.scalar(None, of))
    beside_one = pc.add_checked(
        small.cast(pa.decimal128(max(of.scale, 1), of.scale)), pa.scalar(1, pa.decimal128(1, 0))
    )
    digits = pc.replace_substring_regex(beside_one.cast(pa.string()), "^1", "0")
    negative = pc.binary_replace_slice(digits, 0, 0, "-")
    digits = pc.if_else(pc.starts_with(texts, "-"), negative, digits)
    return pc.if_else(has_exponent, digits, texts)


def is_castable(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether values of a type may become values of another: all but numbers and moments."""
    kinds = {_is_moment(of), _is_moment(to)}
    return kinds != {True, False} or any(map(_is_text, (of, to))) or pa.types.is_null(of)


def fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values in the type of their column; `UsageError` if one isn't the same there.

    Texts become what they say.
    """
    of = values.type
    try:
        if not is_castable(of, kind):
            raise pa.ArrowInvalid(f"{of} isn't {kind}")
        found = _as_text(values, of) if _is_text(kind) else nearest(values, of, kind)
        if _may_alter(of, kind) and found.cast(of) != values:
            raise pa.ArrowInvalid(f"{values[0]} isn't {found[0]}")
    except pa.ArrowException as error:
        raise UsageError("a value doesn't fit its column", cause=str(error)) from error
    return found


def is_rounded(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether one is a decimal's type and the other that of floating-point numbers."""
    kinds = [(pa.types.is_floating(kind), pa.types.is_decimal(kind)) for kind in (of, to)]
    return kinds in ([(True, False), (False, True)], [(False, True), (True, False)])


def _may_alter(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether Arrow alters values without an error."""
    if pa.types.is_boolean(to):
        return bool(pa.types.is_integer(of) or pa.types.is_decimal(of))
    return bool(pa.types.is_floating(of)) or (_is_moment(of) and _is_moment(to))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))
