"""Tables fed by hand: how rows of a call become changes, and the transaction that the call may
name.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, KeyHashes, Mask, RowAddresses
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
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.changed_columns import bitmap_bytes, bitmaps

_NUMBER_LIMIT = 1 << 63


def checked_transaction(given: object) -> tuple[str, int] | None:
    """Return a transaction as (application, number) in the manifest's types; `UsageError` if it is
    invalid.
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
        "a transaction must be (application, number): a text that isn't empty, and a whole"
        " number of at most 64 bits that rises with each call",
        transaction=given,
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repeated_key(keys: KeyHashes) -> int | None:
    """Return the index of a key that occurs more than once, by its hash; None if there is none."""
    high, low = keys
    ascending = np.sort(high)
    if not (ascending[1:] == ascending[:-1]).any():
        return None
    order = np.lexsort((low, high))
    same = (high[order][1:] == high[order][:-1]) & (low[order][1:] == low[order][:-1])
    return int(order[int(np.argmax(same))]) if same.any() else None


def same_keys(one: KeyHashes, other: KeyHashes) -> tuple[Integers, Integers]:
    """Return the places in both at which the same key is, ascending by the second."""
    sides = [
        pl.DataFrame({"high": keys.high, "low": keys.low}).with_row_index(name)
        for keys, name in ((one, "one"), (other, "other"))
    ]
    found = sides[0].join(sides[1], on=["high", "low"]).sort("other", "one")
    return found["one"].to_numpy().astype(np.int64), found["other"].to_numpy().astype(np.int64)


def near_keys(keys: pa.Table, schema: TableSchema) -> pc.Expression | None:
    """Return a condition that is true for all rows with these keys, and by which row groups can be
    skipped; None if there is none.
    """
    first = keys.column(schema.key[0])
    if not keys.num_rows or pa.types.is_boolean(first.type):
        return None
    ends, field = pc.min_max(first), pc.field(schema.key[0])
    return (field >= ends["min"]) & (field <= ends["max"])


def updates(
    rows: pa.Table,
    revived: Mask,
    at: RowAddresses,
    position: int,
    now: pa.Scalar,
    schema: TableSchema,
) -> pa.Table:
    """Return located changes that give rows of the table new values.

    `rows` have stored names. Rows marked `revived` were deleted: they get every column, missing
    ones as null. In other rows missing columns stay unchanged.
    """
    count = rows.num_rows
    given = [name for name in rows.column_names if name not in schema.key]
    if revived.any():
        rows = widened(rows, schema)
    op = np.where(revived, Op.CREATE, Op.UPDATE)
    sets = _named_columns(count, given, ~revived, schema)
    return _changes(
        rows=rows,
        op=pa.array(op, pa.int8()),
        changed=sets,
        at=at,
        position=position,
        now=now,
        schema=schema,
    )


def deletes(
    keys: pa.Table,
    at: RowAddresses,
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
        at=at,
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
    rows: pa.Table,
    op: pa.Array,
    changed: pa.Array,
    at: RowAddresses,
    position: int,
    now: pa.Scalar,
    schema: TableSchema,
) -> pa.Table:
    count = rows.num_rows
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {
        GROUP: pa.array(at.group, pa.int64()),
        ROW: pa.array(at.row, pa.int64()),
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


def widened(rows: pa.Table, schema: TableSchema) -> pa.Table:
    """Return rows with all of the user's columns; those that they lack are null."""
    fields = pa.schema(schema.user_fields)
    there = frozenset(rows.column_names)
    absent = {
        field.name: pa.nulls(rows.num_rows, field.type)
        for field in fields
        if field.name not in there
    }
    columns = [absent[name] if name in absent else rows.column(name) for name in fields.names]
    return pa.Table.from_arrays(columns, schema=fields)


def _named_columns(
    count: int, names: Collection[str], known: Mask, schema: TableSchema
) -> pa.Array:
    """Return a bitmap of these columns for every row; null, meaning all, for rows that aren't
    `known`.
    """
    one = np.zeros(bitmap_bytes(schema), np.uint8)
    for column in schema.columns:
        if column.name in names:
            one[column.id // 8] |= 1 << (column.id % 8)
    return bitmaps(np.broadcast_to(one, (count, len(one))), known)
