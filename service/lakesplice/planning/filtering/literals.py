"""Converts SQL literals to scalars: in the type of the value with which they are combined, or in
the type of their spelling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from math import isinf

import pyarrow as pa
from sqlglot import exp

from lakesplice.errors import UnsupportedError
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType

# Digits of whole numbers, by their bits.
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


def literal_scalar(node: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """Return a literal as a scalar that compares exactly with values of a type, None if it can't.

    Raises Arrow's errors, `ValueError`, `OverflowError` and `InvalidOperation` for a text that
    isn't one.
    """
    if isinstance(node, exp.Boolean):
        return pa.scalar(bool(node.this)) if pa.types.is_boolean(kind) else None
    if isinstance(node, exp.HexString):
        data = int(node.this, 16).to_bytes((len(node.this) + 1) // 2)
        return pa.scalar(data, kind) if _holds_bytes(kind) else None
    if isinstance(node, exp.Cast):  # DATE '…', TIMESTAMP '…', CAST(… AS …)
        own = _of_its_type(node)
        if own is not None and pa.types.is_timestamp(own.type) and pa.types.is_timestamp(kind):
            return literal_scalar(node.this, kind)
        return None if own is None else _compared_with(own, kind)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        return None if node.this.is_string else _number(f"-{node.this.this}", kind)
    if not isinstance(node, exp.Literal):
        return None
    return _text(node.this, kind) if node.is_string else _number(node.this, kind)


def _of_its_type(node: exp.Cast) -> pa.Scalar | None:
    """A literal as a scalar of the type that is written with it."""
    try:
        kind = ColumnType.parse(type_name(node.args["to"])).arrow
    except UnsupportedError:
        return None
    found = literal_scalar(node.this, kind)
    return None if found is None else found.cast(kind)


def _compared_with(value: pa.Scalar, kind: pa.DataType) -> pa.Scalar | None:
    """A scalar that compares with values of a type as one of its own type does, None if none
    does.
    """
    if value.type == kind:
        return value
    if pa.types.is_date(value.type) and pa.types.is_timestamp(kind):
        return value.cast(kind)
    if not _is_number(value.type):
        return None
    found = _number(str(value.as_py()), kind)
    is_same = found is not None and (
        not pa.types.is_floating(value.type) or found.as_py() == value.as_py()
    )
    return found if is_same or found is None or pa.types.is_decimal(found.type) else None


def _number(text: str, kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_floating(kind):
        return _double(text, kind)
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        # It has its own precision, since the column's may be too small for it.
        return pa.scalar(Decimal(text))
    return None


def _double(text: str, kind: pa.DataType) -> pa.Scalar:
    """The nearest number; `OverflowError` for digits beyond the largest one."""
    found = pa.scalar(float(text), kind)
    if isinf(found.as_py()) and any(map(str.isdigit, text)):
        raise OverflowError("a number is beyond the largest one")
    return found


def _text(text: str, kind: pa.DataType) -> pa.Scalar | None:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.scalar(text, kind)
    if pa.types.is_timestamp(kind):
        return _moment(text, kind)
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.scalar(text).cast(kind)
    return _number(text, kind)


def _moment(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A moment without a time zone is in UTC, as all moments of a table; local times have none."""
    found = datetime.fromisoformat(text)
    if kind.tz is None:
        return None if found.tzinfo else pa.scalar(found, kind)
    return pa.scalar(found if found.tzinfo else found.replace(tzinfo=UTC), kind)


def _holds_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def is_literal(node: exp.Expr) -> bool:
    """Whether it is a number, a text, NULL, bytes, or a moment such as `DATE '…'`."""
    if isinstance(node, exp.Paren):
        return is_literal(node.this)
    if isinstance(node, exp.Neg):
        return isinstance(node.this, exp.Literal) and not node.this.is_string
    return isinstance(node, exp.Literal | exp.Null | exp.HexString) or _is_moment(node)


def is_text(node: exp.Expr | None) -> bool:
    """Whether it is a text between quotes."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _is_moment(node: exp.Expr) -> bool:
    """Whether it is `DATE '…'` or `TIMESTAMP '…'`."""
    return (
        isinstance(node, exp.Cast)
        and not isinstance(node, exp.TryCast)
        and isinstance(node.this, exp.Literal)
        and bool(node.this.is_string)
    )


def common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type that holds all values of these types exactly, except that whole numbers and
    decimals together with floating-point numbers become doubles. None if there is none.
    """
    known = [kind for kind in dict.fromkeys(kinds) if not pa.types.is_null(kind)]
    if len(known) < 2:
        return known[0] if known else pa.null()
    is_number = all(map(_is_number, known))
    if is_number and any(map(pa.types.is_floating, known)):
        return pa.float64()
    if not is_number:
        return None
    if all(map(pa.types.is_integer, known)):
        return pa.int64()
    exact = [
        kind if pa.types.is_decimal(kind) else pa.decimal128(_DIGITS[kind.bit_width], 0)
        for kind in known
    ]
    scale = max(kind.scale for kind in exact)
    precision = scale + max(kind.precision - kind.scale for kind in exact)
    return pa.decimal128(precision, scale) if precision <= DECIMAL_PRECISION_MAX else None


def computed_in(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return the type in which a sum, difference, product or rest is computed; None if Arrow's
    choice is right.

    Whole numbers of less than 64 bits would overflow too early, and Arrow computes with a FLOAT if
    one side is a constant, which has no room for whole numbers beyond 2**24, or for most decimals.
    """
    if all(map(pa.types.is_integer, kinds)):
        return pa.int64()
    others = any(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in kinds)
    floating = any(map(pa.types.is_floating, kinds))
    return pa.float64() if floating and (others or pa.float64() in kinds) else None


def _is_number(kind: pa.DataType) -> bool:
    of = (pa.types.is_integer, pa.types.is_decimal, pa.types.is_floating)
    return any(is_one(kind) for is_one in of)


def matching_literal(node: exp.Expr, kind: pa.DataType) -> pa.Scalar | None:
    """A literal in the type of the value with which it is combined; a number may be wider."""
    found = _or_none(lambda: literal_scalar(node, kind))
    if found is not None and pa.types.is_integer(kind):
        return plain_literal(node)
    return found


def _or_none(convert: Callable[[], pa.Scalar | None]) -> pa.Scalar | None:
    try:
        return convert()
    except (pa.ArrowException, ValueError, OverflowError, InvalidOperation):
        return None


def typed_literal(node: exp.Cast) -> pa.Scalar | None:
    """A literal in the type that is written with it, None if it isn't one of its values."""
    return _or_none(lambda: _of_its_type(node))


def plain_literal(node: exp.Expr) -> pa.Scalar | None:
    """A literal in the type of its spelling: a text, a whole number, a decimal or a double."""
    if isinstance(node, exp.Paren):
        return plain_literal(node.this)
    if isinstance(node, exp.HexString):
        return literal_scalar(node, pa.binary())
    if isinstance(node, exp.Cast):
        return typed_literal(node)
    if isinstance(node, exp.Literal) and node.is_string:
        return pa.scalar(node.this)
    text = f"-{node.this.this}" if isinstance(node, exp.Neg) else str(node.this)
    if "e" in text.lower():
        return _or_none(lambda: _double(text, pa.float64()))
    number = Decimal(text)
    whole = "." not in text and -(1 << 63) <= number < 1 << 63
    return pa.scalar(int(text) if whole else number)


_TYPE_NAMES = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "byte",
    exp.DType.SMALLINT: "short",
    exp.DType.INT: "integer",
    exp.DType.BIGINT: "long",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.TEXT: "string",
    exp.DType.BINARY: "binary",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp",
}


def type_name(to: exp.Expr) -> str:
    """The log's name of an SQL type."""
    if to.this == exp.DType.DECIMAL:
        digits = [part.name for part in to.expressions] or ["10"]
        precision, scale = [*digits, "0"][:2]
        return f"decimal({precision},{scale})"
    return _TYPE_NAMES.get(to.this, str(to.this.value).lower())
