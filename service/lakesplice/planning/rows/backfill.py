"""Defaults and copies of columns, for changes that were written before the column existed.

If a source adds a column with a default, every row gets the default, and no event says so. So older
changes get it too, and lose their digests, which don't include the new value: a set of changed
columns computed from them could miss it. A copy, which is added when the source renames a column,
gets the values of that column.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.change import above
from lakesplice.model.column_values import fill_value
from lakesplice.model.names import BEFORE_DIGEST, ROW_DIGEST
from lakesplice.model.position import Position
from lakesplice.model.schema import Column, TableSchema


def with_fills(changes: pa.Table, schema: TableSchema, version: int) -> pa.Table:
    """Return changes that were written under an earlier version of the schema, with its fills and
    copies.

    `changes` has columns of the present schema. With a copy it must also have the copied column.
    """
    filled, copies = schema.filled_since(version), schema.copied_since(version)
    if not filled and not copies:
        return changes
    for column in filled:
        if column.name in changes.column_names:
            values = pa.repeat(_value(column), changes.num_rows)
            changes = _replaced(changes, column.name, values)
    for name, of in copies.items():
        if name in changes.column_names:
            changes = _replaced(changes, name, changes.column(of))
    for name in (BEFORE_DIGEST, ROW_DIGEST):
        if name in changes.column_names:
            changes = _replaced(changes, name, pa.nulls(changes.num_rows, pa.int64()))
    return changes


def filled_column(
    column: Column, since: Position, position_file: np.ndarray, position_offset: np.ndarray
) -> pa.Array:
    """Return an added column for images that lack it: its fill for positions below `since`; null
    for the others, since the source no longer has the column there.
    """
    early = above(since.file, since.offset, position_file, position_offset)
    nothing = pa.scalar(None, column.type.arrow)
    return pc.if_else(pa.array(early), _value(column), nothing)


def _value(column: Column) -> pa.Scalar:
    assert column.fill is not None, "only of columns with a fill"
    return fill_value(column.fill, column.type)


def _replaced(changes: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    at = changes.column_names.index(name)
    return changes.set_column(at, changes.schema.field(name), values)
