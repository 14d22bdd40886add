"""What Debezium's operations do, of many events at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values import Mask
from lakesplice.model.change import Op

_OPS = pa.array(["c", "u", "d", "r"])
_OP_OF_PLACE = np.array([Op.CREATE, Op.UPDATE, Op.DELETE, Op.READ], np.int8)


def operations(op: pa.Array) -> tuple[npt.NDArray[np.int8], Mask]:
    """Return operations, and which rows have one that changes rows."""
    places = pc.index_in(op, _OPS).fill_null(-1).to_numpy()
    return _OP_OF_PLACE[places], places >= 0
