"""Positions that several changes share: then they order nothing, and a row could end wrong.

A change's position is its alone; meeting one twice means that the change is repeated. A source that
writes one position for a whole transaction (MariaDB from 11.4 on, unless it is told to fill them
in) breaks that: of two changes of a row the later one would look like a repetition of the earlier.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.change import Op
from lakesplice.model.names import KEY_HIGH, KEY_LOW, OP, POSITION_FILE, POSITION_OFFSET, ROW_DIGEST

Integers = npt.NDArray[np.int64]

SHARED = (
    "the change stands at the same position as another one, so their order can't be told; from"
    " MariaDB 11.4 on start the server with binlog_legacy_event_pos=1, then take the table anew"
)


Found = Sequence[tuple[Integers, pa.Table]]
"""Changes, in `changes_schema`, each table with the indexes of the records that they come from."""


def first_shared(found: Found) -> int | None:
    """Return the first record whose change stands at the position of another, earlier change.

    Rows read by a snapshot share its position and don't count; nor does a change met again.
    """
    rows, changes = [part[0] for part in found], [part[1] for part in found]
    kept = [table[OP].to_numpy() != int(Op.READ) for table in changes]
    if not any(mask.any() for mask in kept):
        return None
    record = np.concatenate([row[mask] for row, mask in zip(rows, kept, strict=True)])
    arrival = np.argsort(record, kind="stable")

    def column(name: str) -> Integers:
        parts = [
            pc.fill_null(table[name], pa.scalar(0, table[name].type)).to_numpy()[mask]
            for table, mask in zip(changes, kept, strict=True)
        ]
        return np.concatenate(parts)[arrival]

    file, offset = column(POSITION_FILE), column(POSITION_OFFSET)
    if _rise(file, offset):
        return None
    order = np.lexsort((offset, file))
    same_place = (np.diff(file[order]) == 0) & (np.diff(offset[order]) == 0)
    differs = np.zeros(len(same_place), np.bool_)
    for name in (KEY_HIGH, KEY_LOW, OP, ROW_DIGEST):
        values = column(name)[order]
        differs |= values[1:] != values[:-1]
    shared = order[1:][same_place & differs]
    return int(record[arrival][shared].min()) if len(shared) else None


def _rise(file: Integers, offset: Integers) -> bool:
    """Whether each place lies above the one before, as they do as a rule."""
    up = (file[1:] > file[:-1]) | ((file[1:] == file[:-1]) & (offset[1:] > offset[:-1]))
    return bool(up.all())
