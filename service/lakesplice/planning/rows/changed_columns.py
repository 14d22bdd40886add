"""Sets of changed columns: one bitmap per change; bit n is the column with id n, lowest bit first.

A bitmap is as long as the ids of its schema need. One that was written under an earlier version is
shorter, and its missing bits count as unset. Null instead of a bitmap means unknown: every column
may have changed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Bytes, Mask
from lakesplice.model.schema import TableSchema


def bitmap_bytes(schema: TableSchema) -> int:
    """Return the length of the bitmaps of changes under `schema`."""
    return max((column.id for column in schema.columns), default=-1) // 8 + 1


def bitmaps(rows: Bytes, known: Mask) -> pa.Array:
    """Turn a matrix of one bitmap a row into a binary array, null where not `known`."""
    lengths = np.where(known, rows.shape[1], 0)
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return pa.Array.from_buffers(
        pa.binary(),
        len(rows),
        [
            pa.py_buffer(np.packbits(known, bitorder="little")),
            pa.py_buffer(offsets),
            pa.py_buffer(np.ascontiguousarray(rows[known])),
        ],
        null_count=int(len(rows) - np.count_nonzero(known)),
    )


def bitmap_rows(changed: pa.Array, width: int) -> tuple[Bytes, Mask]:
    """Return `changed` as a matrix with `width` bytes per row, and which rows are known.

    Unknown rows have no bit set. Bytes beyond `width` are dropped: they name no column of the
    schema.
    """
    count = len(changed)
    known: Mask = np.asarray(changed.is_valid())
    rows: Bytes = np.zeros((count, width), dtype=np.uint8)
    _, offsets, data = changed.buffers()
    if not count or data is None or not width:
        return rows, known
    edges = np.frombuffer(offsets, np.int32, count + 1, changed.offset * 4)
    lengths, found = np.diff(edges), np.frombuffer(data, np.uint8)
    if known.all() and (lengths == lengths[0]).all():  # all under one version of the schema
        each = found[edges[0] : edges[-1]].reshape(count, lengths[0])[:, :width]
        rows[:, : each.shape[1]] = each
        return rows, known
    lengths = np.where(known, np.minimum(lengths, width), 0)
    inside = np.arange(width) < lengths[:, None]
    source = edges[:-1, None] + np.arange(width)
    rows[inside] = found[source[inside]]
    return rows, known


def changes_column(rows: Bytes, known: Mask, column_id: int) -> Mask:
    """Return per change whether it may have changed the column: its bit is set, or the set is
    unknown.
    """
    if column_id // 8 >= rows.shape[1]:
        return ~known
    return ~known | ((rows[:, column_id // 8] >> (column_id % 8)) & 1).astype(np.bool_)
