"""Row images: what Delta's change feed says of rows that a commit changes in base files.

    exists before and after, with another value   a before-image and an after-image
    exists only before                            a delete, with the before-image
    exists only after                             an insert, with the after-image
    moves to another file                         a before-image here, an after-image there

A row has no image if the values that readers see stay the same, or if it stays deleted. Every image
has `_is_deleted` false. So readers that hide deleted rows see all images, and see no deleted row of
a file that is added or removed as a whole.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.arrays import Integers, KeyHashes, Mask
from lakesplice.model.names import (
    CHANGE_TYPE,
    COMMIT_TIME,
    COMMIT_VERSION,
    FEED_COLUMNS,
    IS_DELETED,
    SYSTEM_COLUMNS,
)
from lakesplice.model.schema import TableSchema
from lakesplice.planning.rows.edits import Edits, apply_edits

FEED_FIELDS = (
    pa.field(CHANGE_TYPE, pa.string(), nullable=False),
    pa.field(COMMIT_VERSION, pa.int64(), nullable=False),
    pa.field(COMMIT_TIME, pa.timestamp("us", tz="UTC"), nullable=False),
)
INSERT, DELETE = "insert", "delete"
UPDATE_BEFORE, UPDATE_AFTER = "update_preimage", "update_postimage"
_KINDS = (INSERT, DELETE, UPDATE_BEFORE, UPDATE_AFTER)
_NO_IMAGE = -1
_KIND = pa.field(CHANGE_TYPE, pa.dictionary(pa.int8(), pa.string()), nullable=False)
# As many before-images are followed by their after-images. Of more, a page would often end between
# the two, and then neither is compressed by the other.
ROWS_TOGETHER = 2_048
_ROWS_TOGETHER_MIN = 64
_REPEATED_WITHIN = 256 * 1024


def is_feedable(schema: TableSchema) -> bool:
    """Whether a table can have a change feed: no column has a name of the feed's, whatever its
    case, since engines don't distinguish case.
    """
    return not _feed_names_in(schema)


def require_feedable(schema: TableSchema) -> None:
    """Check that a table can have a change feed; else `UsageError`."""
    if taken := _feed_names_in(schema):
        raise UsageError(
            "Delta's change feed has columns of these names itself; rename them first",
            columns=taken,
        )


def _feed_names_in(schema: TableSchema) -> list[str]:
    return [name for name in schema.shown if name.lower() in FEED_COLUMNS]


def image_layout(schema: TableSchema) -> pa.Schema:
    """Return the columns of a file of images: those that readers of the log see, and last the kind
    of change. Partition columns are left out, since the log has their values.
    """
    names = (*schema.shown, *SYSTEM_COLUMNS)
    fields = [schema.arrow.field(name) for name in names if name not in schema.partitioned_by]
    return pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])


def rewritten_images(before: pa.Table, edits: Edits, differs: Mask, moves: Mask) -> pa.Table:
    """Return the before-images and after-images of edited rows, with the columns of `before` and
    the kind of change.

    `before` has the rows before `edits`. `differs` marks the rows in which a column that readers
    see gets another value. `moves` marks rows that get an address in another file, which has their
    after-image. Here they get a before-image and no delete: a reader that applies changes by key
    would otherwise lose the row. The before-images of some rows are followed by their after-images:
    most of their values are equal, which makes them smaller, and no value is copied.
    """
    before = before.combine_chunks()
    after = apply_edits(before, edits)
    lived, lives = live(before), live(after)
    updated, gone = lived & lives & differs, lived & ~lives
    kinds = np.full((2, before.num_rows), _NO_IMAGE, np.int8)
    kinds[0, gone & ~moves] = _KINDS.index(DELETE)
    kinds[0, updated | (gone & moves)] = _KINDS.index(UPDATE_BEFORE)
    kinds[1, updated] = _KINDS.index(UPDATE_AFTER)
    kinds[1, ~lived & lives] = _KINDS.index(INSERT)
    sides = []
    for rows, kind in zip((before, after), kinds, strict=True):
        of_kind = rows.append_column(_KIND, _kinds(kind))
        imaged = kind != _NO_IMAGE
        sides.append(of_kind if imaged.all() else of_kind.filter(pa.array(imaged)))
    cuts = np.append(np.arange(0, before.num_rows, _rows_together(before)), before.num_rows)
    starts = np.cumsum(np.insert(kinds != _NO_IMAGE, 0, False, axis=1), axis=1)[:, cuts]
    parts = [
        side.slice(start, stop - start)
        for both in zip(starts[:, :-1].T.tolist(), starts[:, 1:].T.tolist(), strict=True)
        for side, start, stop in zip(sides, *both, strict=True)
        if stop > start
    ]
    return pa.concat_tables(parts) if parts else sides[0]


def _rows_together(rows: pa.Table) -> int:
    """How many before-images come before their after-images: compression finds what is repeated
    within `_REPEATED_WITHIN` bytes of a column.
    """
    widest: int = max(column.nbytes for column in rows.columns) // max(rows.num_rows, 1)
    return max(_ROWS_TOGETHER_MIN, min(_REPEATED_WITHIN // max(widest, 1), ROWS_TOGETHER))


def images(rows: pa.Table, marked: Mask, kind: str, schema: TableSchema) -> pa.Table:
    """Return images of one kind of the marked rows."""
    layout = image_layout(schema)
    chosen = rows.select(layout.names[:-1]).filter(pa.array(marked))
    kinds = np.full(chosen.num_rows, _KINDS.index(kind), np.int8)
    return chosen.cast(pa.schema([*layout][:-1])).append_column(_KIND, _kinds(kinds))


def _kinds(codes: Integers) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(_KINDS))


def live(rows: pa.Table) -> Mask:
    """Mark the rows that aren't deleted."""
    alive: Mask = ~rows.column(IS_DELETED).to_numpy()
    return alive


def among(keys: KeyHashes, others: KeyHashes) -> Mask:
    """Mark the keys that are among others."""
    marks: Mask = np.asarray(pc.is_in(_as_bytes(keys), value_set=_as_bytes(others)))
    return marks


def _as_bytes(keys: KeyHashes) -> pa.Array:
    words = np.stack((keys.high, keys.low), axis=1)
    buffer = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.binary(16), len(words), [None, buffer])
