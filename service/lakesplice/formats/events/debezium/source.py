"""What Debezium's operations do, of many events at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Marks, Mask
from lakesplice.model.change import Op

_OPS = pa.array(["c", "u", "d", "r"])
_OP_OF_PLACE = np.array([Op.CREATE, Op.UPDATE, Op.DELETE, Op.READ], np.int8)


_OF_SNAPSHOT = pa.array(
    ["first", "first_in_data_collection", "true", "last_in_data_collection", "last"]
)
_FIRST_LAST = 3


def snapshot_marks(stated: pa.Array | None, op: Marks) -> Marks | None:
    """Return what `source.snapshot` says, as `ImageBlock` has it; an incremental snapshot, which
    comes among other changes, is none.
    """
    if stated is None or not (op == Op.READ).any():
        return None
    places = pc.index_in(stated, _OF_SNAPSHOT).fill_null(-1).to_numpy()
    marks: Marks = np.where(places >= _FIRST_LAST, 2, np.where(places >= 0, 1, 0))
    return np.where(op == Op.READ, marks, 0).astype(np.int8)


def with_reads(op: Marks, stated: pa.Array | None) -> Marks:
    """Return operations in which a row of a snapshot is one, as `source.snapshot` says: Debezium
    before 1.5 calls it created.
    """
    if stated is None or not (op == Op.CREATE).any():
        return op
    of_snapshot = pc.is_in(stated, _OF_SNAPSHOT).to_numpy(zero_copy_only=False)
    return np.where((op == Op.CREATE) & of_snapshot, Op.READ, op).astype(np.int8)


def operations(op: pa.Array) -> tuple[Marks, Mask]:
    """Return operations, and which rows have one that changes rows."""
    places = pc.index_in(op, _OPS).fill_null(-1).to_numpy()
    return _OP_OF_PLACE[places], places >= 0
