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
from lakesplice.model.arrays import KeyHashes, Mask
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


def rewritten_images(
    before: pa.Table, edits: Edits, differs: Mask, moves: Mask, schema: TableSchema
) -> pa.Table:
    """Return the before-images and after-images of edited rows, row by row, in `image_layout`.

    `before` has the rows before `edits`. `differs` marks the rows in which a column that readers
    see gets another value. `moves` marks rows that get an address in another file, which has their
    after-image. Here they get a before-image and no delete: a reader that applies changes by key
    would otherwise lose the row. The two images of a row are next to each other: most of their
    values are equal, so they are compressed to 60 % of the size that they have apart.
    """
    after = apply_edits(before, edits)
    lived, lives = live(before), live(after)
    updated, gone = lived & lives & differs, lived & ~lives
    kinds = np.full((before.num_rows, 2), _NO_IMAGE, np.int8)
    kinds[gone & ~moves, 0] = _KINDS.index(DELETE)
    kinds[updated | (gone & moves), 0] = _KINDS.index(UPDATE_BEFORE)
    kinds[updated, 1] = _KINDS.index(UPDATE_AFTER)
    kinds[~lived & lives, 1] = _KINDS.index(INSERT)
    imaged = np.flatnonzero(kinds.ravel() != _NO_IMAGE)
    row, is_after = imaged >> 1, imaged & 1
    layout = image_layout(schema)
    columns = []
    for name in layout.names[:-1]:
        held, places = before.column(name).combine_chunks(), row
        if name in edits.columns:
            held = pa.concat_arrays([held, after.column(name).combine_chunks()])
            places = row + is_after * before.num_rows
        columns.append(held.take(pa.array(places)))
    codes = pa.array(kinds.ravel()[imaged])
    columns.append(pa.DictionaryArray.from_arrays(codes, pa.array(_KINDS)).cast(pa.string()))
    return pa.table(columns, schema=layout)


def images(rows: pa.Table, marked: Mask, kind: str, schema: TableSchema) -> pa.Table:
    """Return images of one kind of the marked rows."""
    layout = image_layout(schema)
    chosen = rows.select(layout.names[:-1]).filter(pa.array(marked))
    kinds = pa.repeat(pa.scalar(kind), chosen.num_rows)
    return chosen.append_column(layout.field(CHANGE_TYPE), kinds).cast(layout)


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
