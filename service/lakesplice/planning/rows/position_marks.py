"""Which rows or changes stand at or below a position."""

from __future__ import annotations

import pyarrow as pa

from lakesplice.model.arrays import Mask
from lakesplice.model.names import POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import Position


def at_or_below(rows: pa.Table, limit: Position) -> Mask:
    """Mark rows or changes whose position is at or below one."""
    file, offset = rows[POSITION_FILE].to_numpy(), rows[POSITION_OFFSET].to_numpy()
    mask: Mask = (file < limit.file) | ((file == limit.file) & (offset <= limit.offset))
    return mask
