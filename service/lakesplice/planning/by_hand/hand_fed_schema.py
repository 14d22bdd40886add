"""Tables fed by hand: checks and converts Arrow data for a table.

A type is accepted if a column can hold all its values exactly; values of a narrower or wider type
of the same kind are accepted if they fit. A timestamp without a time zone is taken as its wall
clock in UTC, as everywhere in the product; one column accepts only timestamps with a time zone, or
only without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import (
    DECIMAL_PRECISION_MAX,
    WHOLE_DIGITS,
    WHOLE_NUMBERS,
    ColumnType,
    Primitive,
)
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.schema.evolution import Grows, Unfit, fit

_KINDS: dict[pa.DataType, Primitive] = {
    pa.bool_(): Primitive.BOOLEAN,
    pa.int8(): Primitive.BYTE,
    pa.int16(): Primitive.SHORT,
    pa.int32(): Primitive.INTEGER,
    pa.int64(): Primitive.LONG,
    pa.uint8(): Primitive.SHORT,
    pa.uint16(): Primitive.INTEGER,
    pa.uint32(): Primitive.LONG,
    pa.float16(): Primitive.FLOAT,
    pa.float32(): Primitive.FLOAT,
    pa.float64(): Primitive.DOUBLE,
    pa.string(): Primitive.STRING,
    pa.large_string(): Primitive.STRING,
    pa.string_view(): Primitive.STRING,
    pa.binary(): Primitive.BINARY,
    pa.large_binary(): Primitive.BINARY,
    pa.binary_view(): Primitive.BINARY,
    pa.date32(): Primitive.DATE,
}
_TAKES: dict[Primitive, frozenset[Primitive]] = {
    **dict.fromkeys(WHOLE_NUMBERS, frozenset(WHOLE_NUMBERS)),
    Primitive.DECIMAL: frozenset((Primitive.DECIMAL, *WHOLE_NUMBERS)),
    Primitive.DOUBLE: frozenset((Primitive.DOUBLE, Primitive.FLOAT)),
}


def column_type(arrow_type: pa.DataType) -> ColumnType | None:
    """Return the column type that holds every value of an Arrow type exactly; None without one."""
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_timestamp(arrow_type):
        return ColumnType(Primitive.TIMESTAMP)
    if pa.types.is_fixed_size_binary(arrow_type) and not pa.types.is_decimal(arrow_type):
        return ColumnType(Primitive.BINARY)
    if pa.types.is_decimal(arrow_type):
        fits = (
            arrow_type.precision <= DECIMAL_PRECISION_MAX
            and 0 <= arrow_type.scale <= arrow_type.precision
        )
        return (
            ColumnType(Primitive.DECIMAL, arrow_type.precision, arrow_type.scale) if fits else None
        )
    kind = _KINDS.get(arrow_type)
    return None if kind is None else ColumnType(kind)


def hand_fed_schema(arrow_schema: pa.Schema, key: Sequence[str]) -> TableSchema:
    """Return the schema of a new table with the columns of `arrow_schema`; `UsageError` if there is
    none.

    `key` names its key columns, in key order.
    """
    absent = [name for name in key if name not in arrow_schema.names]
    repeated = sorted(name for name, count in Counter(arrow_schema.names).items() if count > 1)
    if not key or absent or repeated or len(set(key)) < len(key):
        raise UsageError(
            "a table needs a key of its own columns, each named once",
            key=list(key),
            columns=arrow_schema.names,
        )
    fields = [source_field(field) for field in arrow_schema]
    verdict = fit(TableSchema(), SourceSchema(tuple(fields), tuple(key)))
    if not isinstance(verdict, Grows):
        reason = verdict.detail if isinstance(verdict, Unfit) else verdict
        raise UsageError("no table can have these columns", reason=reason)
    require_own_names(verdict.next)
    return verdict.next


def source_field(field: pa.Field) -> SourceField:
    """Return a column as a table may store it; `UsageError` if it has no name, or its type no exact
    counterpart.
    """
    if not field.name:
        raise UsageError("a column needs a name; give it one", type=str(field.type))
    kind = column_type(field.type)
    if kind is None:
        raise UsageError(
            "a column's type has no exact counterpart; cast it, for example to a string",
            column=field.name,
            type=str(field.type),
        )
    return SourceField(field.name, kind, _described(field.type))


def require_own_names(schema: TableSchema) -> None:
    """Check that each column can be read by the name that it was given; `UsageError`."""
    names = stored_names(schema)
    for column in schema.columns:
        if names[column.source_name] != column.name:
            raise UsageError(
                "a column has the name under which the table stores another one; rename it",
                column=column.source_name,
                stored_names=[*names.values()],
            )


def adopted_schema(columns: pa.Schema, key: Sequence[str]) -> TableSchema:
    """Return the schema of a table adopted with these columns; errors as `hand_fed_schema`."""
    return replace(hand_fed_schema(columns, key), adopted=True)


def stored_rows(given: pa.Table, schema: TableSchema, columns: Collection[str] = ()) -> pa.Table:
    """Return rows by stored names in their columns' types, in the order of the schema.

    Columns that `given` lacks are missing; with `columns` (stored names) only these are returned.
    The key must be there, without nulls. `UsageError` for anything that doesn't fit.
    """
    names = stored_names(schema)
    asked = {name: names.get(name) for name in given.column_names}
    stored_here = frozenset(schema.names)
    unknown = [name for name, stored in asked.items() if stored not in stored_here]
    wanted = set(columns or schema.names)
    twice = len(set(given.column_names)) < given.num_columns or any(
        count > 1 for stored, count in Counter(asked.values()).items() if stored is not None
    )
    if twice or (unknown and not columns):
        raise UsageError(
            "the table has no such column, or the column is given twice",
            columns=unknown or given.column_names,
            known=list(schema.names),
        )
    by_stored = {stored: name for name, stored in asked.items() if stored in wanted}
    missing = [name for name in schema.key if name not in by_stored]
    if missing:
        raise UsageError(
            "rows need their whole key; give a value for each of its columns", missing=missing
        )
    taken = [column for column in schema.columns if column.name in by_stored]
    arrays = [stored_values(given.column(by_stored[column.name]), column) for column in taken]
    for column, values in zip(taken, arrays, strict=True):
        if column.name in schema.key and values.null_count:
            raise UsageError(
                "a key column has a null; give each row its whole key", column=column.name
            )
        if column.name in schema.key and has_nan(values):
            raise UsageError(
                "a key column holds NaN, which equals nothing; leave the rows out",
                column=column.name,
            )
    fields = [schema.arrow.field(column.name) for column in taken]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def has_nan(values: pa.ChunkedArray) -> bool:
    """Whether a column without nulls has a value that equals none."""
    return pa.types.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _described(arrow_type: pa.DataType) -> str:
    """The source type that a column keeps of its first type: whether its timestamps have a time
    zone.
    """
    if pa.types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz is None else "timestamp with zone"
    kind = column_type(arrow_type)
    return "" if kind is None else kind.name


def stored_values(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Return values in a column's type; `UsageError` if they don't fit."""
    given = values.type
    kind = column_type(given)
    fits = kind is not None and (
        kind.kind in _TAKES.get(column.type.kind, frozenset((column.type.kind,)))
    )
    if pa.types.is_timestamp(given):
        fits = fits and _described(given) == column.source_type
    if not fits:
        raise UsageError(
            "a column is not of its type in the table; cast it",
            column=column.source_name,
            expected=f"{column.type.name} ({column.source_type})",
            found=str(given),
        )
    try:
        values.validate(full=True)  # Arrow checks no text by itself that it is given as UTF-8
        if pa.types.is_dictionary(given):
            values = values.cast(given.value_type)
        if pa.types.is_timestamp(given) and given.tz is None:
            values = pc.assume_timezone(values.cast(pa.timestamp("us")), "UTC")
        if pa.types.is_integer(values.type) and column.type.kind is Primitive.DECIMAL:
            # Cast first to a type that holds any integer: Arrow looks at the type, not at the
            # values.
            scale = column.type.arrow.scale
            values = values.cast(pa.decimal256(WHOLE_DIGITS[Primitive.LONG] + scale, scale))
        return values.cast(column.type.arrow)
    except pa.ArrowInvalid as error:
        raise UsageError(
            "a column has values that its type can't hold",
            column=column.source_name,
            type=column.type.name,
            cause=str(error),
        ) from error
