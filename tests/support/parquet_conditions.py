"""Conditions for readers' filters: in Arrow, and in the SQL of each reader."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Value = bool | int | float | str | bytes | dt.date | dt.datetime | Decimal
OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": lambda column, value: column == value,
    "<": lambda column, value: column < value,
    ">=": lambda column, value: column >= value,
}


@dataclass(frozen=True)
class Condition:
    """`column operator value`; the operator may be `=`, `<`, `>=`, `in`, `is null`."""

    column: str
    operator: str
    values: tuple[Value, ...] = ()

    def holds(self, table: pa.Table) -> Any:
        """For each row of `table`, whether it matches."""
        return np.asarray(pc.fill_null(self.expressed(table.column(self.column)), False))

    def expressed(self, column: Any) -> Any:
        """The condition on an Arrow column or a field of a dataset."""
        if self.operator == "is null":
            return column.is_null() if isinstance(column, pc.Expression) else pc.is_null(column)
        if self.operator == "in":
            # pyarrow's own `is_in` takes the zeros for two values.
            equal = [Condition(self.column, "=", (one,)).expressed(column) for one in self.values]
            return reduce(or_ if isinstance(column, pc.Expression) else pc.or_, equal)
        value = _scalar(self.values[0])
        if isinstance(column, pc.Expression):
            return OPERATORS[self.operator](column, value)
        dense = column.cast(_dense(column.type))
        return _COMPARED[self.operator](dense, value.cast(dense.type))

    def unsure(self, table: pa.Table, *, zeros: bool) -> Any:
        """For each row of what a reader made, whether readers may differ on it.

        Some find NaN to be greater than all numbers. Without `zeros` either zero is left out where
        one is asked for.
        """
        column = table.column(self.column)
        if not pa.types.is_floating(column.type) or self.operator == "is null":
            return np.zeros(table.num_rows, np.bool_)
        values = column.to_numpy()
        asked = not zeros and any(value == 0 for value in self.values)
        return np.isnan(values) & column.is_valid().to_numpy() | (asked & (values == 0))

    def sql(self, literal: Callable[[Value], str]) -> str:
        """The condition in SQL."""
        name = f'"{self.column}"'
        if self.operator == "is null":
            return f"{name} is null"
        if self.operator == "in":
            return f"{name} in ({', '.join(literal(value) for value in self.values)})"
        return f"{name} {self.operator} {literal(self.values[0])}"


def _scalar(value: Value) -> pa.Scalar:
    """It in Arrow; a number without a sign where it can be, which all integers compare with."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return pa.scalar(value, next(kind for kind in _UNSIGNED if value < 1 << kind.bit_width))
    return pa.scalar(value)


_UNSIGNED = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_COMPARED = {"=": pc.equal, "<": pc.less, ">=": pc.greater_equal}


def _dense(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _cast(value: Value) -> str | None:
    """What all dialects say alike."""
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
            assert isinstance(exponent, int)
            width = max(len(digits), -exponent, 1)
            return f"cast('{value:f}' as decimal({width},{-exponent}))"
        case dt.date() if not isinstance(value, dt.datetime):
            return f"date '{value.isoformat()}'"
        case str():
            return f"'{value}'"
        case float():
            return f"cast('{value!r}' as double)"
        case int():
            return str(value)
    return None


def in_duckdb(value: Value) -> str:
    match value:
        case bytes():
            escaped = "".join(f"\\x{byte:02X}" for byte in value)
            return f"'{escaped}'::blob"
        case dt.datetime():
            kind = "timestamp" if value.tzinfo is None else "timestamptz"
            return f"{kind} '{value.isoformat(' ')}'"
    return str(_cast(value))


def in_datafusion(value: Value) -> str:
    match value:
        case bytes():
            return f"x'{value.hex()}'"
        case dt.datetime():
            kind = "Millisecond, None" if value.tzinfo is None else 'Microsecond, Some("UTC")'
            return f"arrow_cast('{value.isoformat()}', 'Timestamp({kind})')"
    return str(_cast(value))


def in_spark(value: Value) -> str:
    match value:
        case bytes():
            return f"x'{value.hex()}'"
        case dt.datetime():
            kind = "timestamp_ntz" if value.tzinfo is None else "timestamp"
            return f"{kind} '{value.isoformat(' ')}'"
    return str(_cast(value))


def in_clickhouse(value: Value) -> str:
    match value:
        case Decimal():
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)
            return f"toDecimal128('{value:f}', {-exponent})"
        case bytes():
            return f"unhex('{value.hex()}')"
        case dt.datetime():
            digits = 3 if value.tzinfo is None else 6
            text = value.replace(tzinfo=None).isoformat(" ")
            return f"toDateTime64('{text}', {digits}, 'UTC')"
        case dt.date():
            return f"toDate32('{value.isoformat()}')"
        case float():
            return repr(value)
    return str(_cast(value))
