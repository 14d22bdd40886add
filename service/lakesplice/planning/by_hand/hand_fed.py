"""Tables fed by hand: what given Arrow data means to one, and what becomes of its rows.

A type is taken if a column can hold all its values exactly; values of a narrower or wider type of
the same sort are taken if they fit. A timestamp without a zone shows its wall clock in UTC, as
everywhere in the product; one column takes only timestamps with a zone or only without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, Mask, Unsigned
from lakesplice.model.change import Op, delta_schema
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    GROUP,
    IS_DELETED,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.schema import Column, SourceField, SourceSchema, TableSchema
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Kind
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmaps
from lakesplice.planning.schema.evolution import Grows, Unfit, fit

_NUMBER_LIMIT = 1 << 63
# A decimal that holds any 64-bit integer has so many digits before its point.
_LONG_DIGITS = 19


_KINDS: dict[pa.DataType, Kind] = {
    pa.bool_(): Kind.BOOLEAN,
    pa.int8(): Kind.BYTE,
    pa.int16(): Kind.SHORT,
    pa.int32(): Kind.INTEGER,
    pa.int64(): Kind.LONG,
    pa.uint8(): Kind.SHORT,
    pa.uint16(): Kind.INTEGER,
    pa.uint32(): Kind.LONG,
    pa.float16(): Kind.FLOAT,
    pa.float32(): Kind.FLOAT,
    pa.float64(): Kind.DOUBLE,
    pa.string(): Kind.STRING,
    pa.large_string(): Kind.STRING,
    pa.string_view(): Kind.STRING,
    pa.binary(): Kind.BINARY,
    pa.large_binary(): Kind.BINARY,
    pa.binary_view(): Kind.BINARY,
    pa.date32(): Kind.DATE,
}
_WHOLE = frozenset((Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG))
_TAKES: dict[Kind, frozenset[Kind]] = dict.fromkeys(_WHOLE, _WHOLE) | {
    Kind.DECIMAL: frozenset((Kind.DECIMAL, *_WHOLE)),
    Kind.DOUBLE: frozenset((Kind.DOUBLE, Kind.FLOAT)),
}


def column_type(given: pa.DataType) -> ColumnType | None:
    """Return the column type that holds every value of an Arrow type exactly; None without one."""
    if pa.types.is_dictionary(given):
        given = given.value_type
    if pa.types.is_timestamp(given):
        return ColumnType(Kind.TIMESTAMP)
    if pa.types.is_fixed_size_binary(given) and not pa.types.is_decimal(given):
        return ColumnType(Kind.BINARY)
    if pa.types.is_decimal(given):
        fits = given.precision <= DECIMAL_PRECISION_MAX and 0 <= given.scale <= given.precision
        return ColumnType(Kind.DECIMAL, given.precision, given.scale) if fits else None
    kind = _KINDS.get(given)
    return None if kind is None else ColumnType(kind)


def hand_fed_schema(given: pa.Schema, key: Sequence[str]) -> TableSchema:
    """Return the schema of a new table with the columns of `given`; `UsageError` if there is none.

    `key` names its key columns, in key order.
    """
    absent = [name for name in key if name not in given.names]
    repeated = sorted(name for name, count in Counter(given.names).items() if count > 1)
    if not key or absent or repeated or len(set(key)) < len(key):
        raise UsageError(
            "a table needs a key of its own columns, each named once",
            key=list(key),
            columns=given.names,
        )
    for field in given:
        if not field.name:
            raise UsageError("a column needs a name; give it one", columns=given.names)
        if column_type(field.type) is None:
            raise UsageError(
                "a column's type has no exact counterpart; cast it, for example to a string",
                column=field.name,
                type=str(field.type),
            )
    fields = (SourceField(f.name, column_type(f.type), _described(f.type)) for f in given)
    verdict = fit(TableSchema(), SourceSchema(tuple(fields), tuple(key)))
    if not isinstance(verdict, Grows):
        reason = verdict.detail if isinstance(verdict, Unfit) else verdict
        raise UsageError("no table can have these columns", reason=reason)
    _require_own_names(verdict.next)
    return verdict.next


def _require_own_names(schema: TableSchema) -> None:
    """Return if each column can be asked for by the name it was given by."""
    names = stored_names(schema)
    for column in schema.columns:
        if names[column.source_name] != column.name:
            raise UsageError(
                "a column has the name that the table stores another one under; rename it",
                column=column.source_name,
                stored_names=[*names.values()],
            )


def checked_transaction(given: object) -> tuple[str, int] | None:
    """Return a transaction as (application, number) as the manifest can keep it; `UsageError` for
    another.
    """
    if given is None:
        return None
    if isinstance(given, tuple) and len(given) == 2:
        application, number = given
        if isinstance(application, str) and application and _is_unicode(application):
            whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
            if whole and -_NUMBER_LIMIT <= number < _NUMBER_LIMIT:
                return application, int(number)
    raise UsageError(
        "a transaction is (application, number): a text that isn't empty, and a whole number of at"
        " most 64 bits, rising with each call",
        transaction=given,
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def adopted_schema(columns: pa.Schema, key: Sequence[str]) -> TableSchema:
    """Return the schema of a table adopted with these columns; errors as `hand_fed_schema`."""
    return replace(hand_fed_schema(columns, key), adopted=True)


def stored_rows(given: pa.Table, schema: TableSchema, columns: Collection[str] = ()) -> pa.Table:
    """Return given rows by stored names in their columns' types, in the order of the schema.

    Columns that `given` lacks are lacking; with `columns` (stored names) only those are taken. The
    key is there and has no null. `UsageError` for what does not fit.
    """
    names = stored_names(schema)
    asked = {name: names.get(name) for name in given.column_names}
    stored_here = frozenset(schema.names)
    unknown = [name for name, stored in asked.items() if stored not in stored_here]
    wanted = set(columns or schema.names)
    if len(set(asked.values())) < len(given.column_names) or (unknown and not columns):
        raise UsageError(
            "the table has no such column, or it is given twice",
            columns=unknown or given.column_names,
            known=list(schema.names),
        )
    by_stored = {stored: name for name, stored in asked.items() if stored in wanted}
    missing = [name for name in schema.key if name not in by_stored]
    if missing:
        raise UsageError("rows need their whole key", missing=missing)
    taken = [column for column in schema.columns if column.name in by_stored]
    arrays = [stored_values(given.column(by_stored[column.name]), column) for column in taken]
    for column, values in zip(taken, arrays, strict=True):
        if column.name in schema.key and values.null_count:
            raise UsageError("a key column holds a null", column=column.name)
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


def repeated_key(high: Unsigned, low: Unsigned) -> int | None:
    """Return the place of a key that occurs more than once, by its hash; None if none does."""
    ascending = np.sort(high)
    if not (ascending[1:] == ascending[:-1]).any():
        return None
    order = np.lexsort((low, high))
    same = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    return int(order[int(np.argmax(same))]) if same.any() else None


def updates(
    rows: pa.Table, revived: Mask, group: Integers, row: Integers, position: int, now: pa.Scalar,
    schema: TableSchema,
) -> pa.Table:  # fmt: skip
    """Return located changes that give rows of the table new values.

    `rows` have stored names. Where `revived` the row was deleted: it gets every column, those not
    given as null. Elsewhere columns not given are unchanged.
    """
    count = rows.num_rows
    given = [name for name in rows.column_names if name not in schema.key]
    if revived.any():
        rows = _widened(rows, schema)
    op = np.where(revived, Op.CREATE, Op.UPDATE)
    sets = _named_columns(count, given, ~revived, schema)
    return _changes(
        rows=rows,
        op=pa.array(op, pa.int8()),
        changed=sets,
        group=group,
        row=row,
        position=position,
        now=now,
        schema=schema,
    )


def deletes(
    keys: pa.Table,
    group: Integers,
    row: Integers,
    position: int,
    now: pa.Scalar,
    schema: TableSchema,
) -> pa.Table:
    """Return located changes that delete the rows with these keys."""
    count = keys.num_rows
    op = pa.repeat(pa.scalar(int(Op.DELETE), pa.int8()), count)
    sets = _named_columns(count, (), np.ones(count, np.bool_), schema)
    return _changes(
        rows=keys,
        op=op,
        changed=sets,
        group=group,
        row=row,
        position=position,
        now=now,
        schema=schema,
    )


def base_rows(rows: pa.Table, position: int, now: pa.Scalar, schema: TableSchema) -> pa.Table:
    """Return new rows in the layout of base files; columns not given are null."""
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {
        POSITION_FILE: pa.repeat(pa.scalar(0, pa.int64()), count),
        POSITION_OFFSET: pa.repeat(pa.scalar(position, pa.int64()), count),
        IS_DELETED: pa.repeat(pa.scalar(False), count),
        SOURCE_TS: pa.repeat(now, count),
    }
    return pa.Table.from_arrays(
        [columns.get(field.name, pa.nulls(count, field.type)) for field in schema.arrow],
        schema=schema.arrow,
    )


def _changes(
    rows: pa.Table, op: pa.Array, changed: pa.Array, group: Integers, row: Integers, position: int,
    now: pa.Scalar, schema: TableSchema,
) -> pa.Table:  # fmt: skip
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {
        GROUP: pa.array(group, pa.int64()),
        ROW: pa.array(row, pa.int64()),
        OP: op,
        POSITION_FILE: pa.repeat(pa.scalar(0, pa.int64()), count),
        POSITION_OFFSET: pa.repeat(pa.scalar(position, pa.int64()), count),
        BEFORE_DIGEST: pa.nulls(count, pa.int64()),
        ROW_DIGEST: pa.nulls(count, pa.int64()),
        CHANGED: changed,
        SOURCE_TS: pa.repeat(now, count),
    }
    layout = [field for field in delta_schema(schema) if field.name in columns]
    return pa.Table.from_arrays([columns[f.name] for f in layout], schema=pa.schema(layout))


def _widened(rows: pa.Table, schema: TableSchema) -> pa.Table:
    fields = pa.schema(schema.user_fields)
    there = frozenset(rows.column_names)
    absent = {
        field.name: pa.nulls(rows.num_rows, field.type)
        for field in fields
        if field.name not in there
    }
    columns = [absent.get(name) or rows.column(name) for name in fields.names]
    return pa.Table.from_arrays(columns, schema=fields)


def _named_columns(
    count: int, names: Collection[str], known: Mask, schema: TableSchema
) -> pa.Array:
    """Return a bitmap of these columns for every row; null, meaning all, where not `known`."""
    one = np.zeros(bitmap_bytes(schema), np.uint8)
    for column in schema.columns:
        if column.name in names:
            one[column.id // 8] |= 1 << (column.id % 8)
    return bitmaps(np.broadcast_to(one, (count, len(one))), known)


def _described(given: pa.DataType) -> str:
    """What a column remembers of its first type: whether its timestamps have a zone."""
    if pa.types.is_timestamp(given):
        return "timestamp" if given.tz is None else "timestamp with zone"
    kind = column_type(given)
    return "" if kind is None else kind.name


def stored_values(values: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Return given values in a column's type; `UsageError` where they don't fit."""
    given = values.type
    kind = column_type(given)
    fits = kind is not None and (
        kind.kind in _TAKES.get(column.type.kind, frozenset((column.type.kind,)))
    )
    if pa.types.is_timestamp(given):
        fits = fits and _described(given) == column.source_type
    if not fits:
        raise UsageError(
            "a column is not of its type; cast it",
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
        if pa.types.is_integer(values.type) and column.type.kind is Kind.DECIMAL:
            # Cast first to a type that holds any integer: Arrow looks at the type, not at the
            # values.
            scale = column.type.arrow.scale
            values = values.cast(pa.decimal256(_LONG_DIGITS + scale, scale))
        return values.cast(column.type.arrow)
    except pa.ArrowInvalid as error:
        raise UsageError(
            "a column holds values that its type cannot",
            column=column.source_name,
            type=column.type.name,
            cause=str(error),
        ) from error
