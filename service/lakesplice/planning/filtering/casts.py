"""Casts of the values of edits: which kinds of values become which, without being altered silently.

Arrow converts more than that: it takes numbers for microseconds or days since 1970, and rounds a
double to a decimal's digits.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError


def cast_value(value: pc.Expression, of: pa.DataType, to: pa.DataType) -> pc.Expression | None:
    """Return a value of one type in another, None if there is no such cast.

    Where digits would be lost, its evaluation fails; only to a floating-point number decimals
    become the nearest one, and of a moment a cast to a date takes the day.
    """
    if not is_castable(of, to):
        return None
    if _is_rounded(of, to):
        return value.cast(pa.string()).cast(to)
    return value.cast(to)


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
        found = values.cast(pa.string()).cast(kind) if _is_rounded(of, kind) else values.cast(kind)
        if _may_alter(of, kind) and found.cast(of) != values:
            raise pa.ArrowInvalid(f"{values[0]} isn't {found[0]}")
    except pa.ArrowException as error:
        raise UsageError("a value doesn't fit its column", cause=str(error)) from error
    return found


def _is_rounded(of: pa.DataType, to: pa.DataType) -> bool:
    return bool(pa.types.is_floating(of) and pa.types.is_decimal(to))


def _may_alter(of: pa.DataType, to: pa.DataType) -> bool:
    """Whether Arrow alters values without an error."""
    if pa.types.is_boolean(to):
        return bool(pa.types.is_integer(of) or pa.types.is_decimal(of))
    return bool(pa.types.is_floating(of)) or (_is_moment(of) and _is_moment(to))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind))
