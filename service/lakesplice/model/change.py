"""Changes in memory: one Arrow table, a row per change, user columns beside what orders them.

The layout serves the whole way through a batch, so that no step converts rows:

    _key_high, _key_low   uint64   the key's hash (128 bits), for the index and the shuffle
    _op                   int8     `Op`
    _position_file/offset int64    the change's position
    _before_digest        int64    digest of the before-image; null: unknown, matches nothing
    _row_digest           int64    digest of the after-image; null for deletes
    _changed              binary   bitmap of column ids that differ between the images, least
                                   significant bit first; null: unknown, every column counts
    _source_ts            timestamp[us, UTC]
    then every user column: the after-image; for a delete the before-image, of which only the key
    matters

A located change adds `_group` and `_row` (int64), its row's address.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.names import (
    BEFORE_DIGEST,
    CHANGED,
    GROUP,
    KEY_HIGH,
    KEY_LOW,
    OP,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema


class Op(IntEnum):
    """What a change did at the source."""

    CREATE = 0
    UPDATE = 1
    DELETE = 2
    READ = 3


KEY_FIELDS = (
    pa.field(KEY_HIGH, pa.uint64(), nullable=False),
    pa.field(KEY_LOW, pa.uint64(), nullable=False),
)
ADDRESS_FIELDS = (
    pa.field(GROUP, pa.int64(), nullable=False),
    pa.field(ROW, pa.int64(), nullable=False),
)
CHANGE_FIELDS = (
    pa.field(OP, pa.int8(), nullable=False),
    pa.field(POSITION_FILE, pa.int64(), nullable=False),
    pa.field(POSITION_OFFSET, pa.int64(), nullable=False),
    pa.field(BEFORE_DIGEST, pa.int64()),
    pa.field(ROW_DIGEST, pa.int64()),
    pa.field(CHANGED, pa.binary()),
    pa.field(SOURCE_TS, pa.timestamp("us", tz="UTC")),
)


def changes_schema(schema: TableSchema) -> pa.Schema:
    """The layout of a table's decoded and folded changes."""
    return pa.schema([*KEY_FIELDS, *CHANGE_FIELDS, *schema.user_fields])


def delta_schema(schema: TableSchema) -> pa.Schema:
    """The layout of located changes: the content of a delta, sorted by address."""
    return pa.schema([*ADDRESS_FIELDS, *CHANGE_FIELDS, *schema.user_fields])


def at_or_below(rows: pa.Table, limit: Position) -> Mask:
    """Mark rows or changes whose position is at or below `limit`."""
    file, offset = rows[POSITION_FILE].to_numpy(), rows[POSITION_OFFSET].to_numpy()
    return ~above(file, offset, limit.file, limit.offset)


def above(
    file: Integers | int,
    offset: Integers | int,
    other_file: Integers | int,
    other_offset: Integers | int,
) -> Mask:
    """Mark the positions, in their two integers, that are above others; one of the two sides may be
    a single position.
    """
    return np.asarray((file > other_file) | ((file == other_file) & (offset > other_offset)))


def at_position(rows: pa.Table, place: Position) -> Mask:
    """Mark rows or changes whose position is `place`."""
    file, offset = rows[POSITION_FILE].to_numpy(), rows[POSITION_OFFSET].to_numpy()
    mask: Mask = (file == place.file) & (offset == place.offset)
    return mask
