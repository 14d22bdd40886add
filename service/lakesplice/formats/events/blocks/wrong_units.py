"""Finds moments whose number shows another unit than the connector's settings say.

Without a schema nothing shows whether 1700000000000 is milliseconds or microseconds. A DATETIME
ends with the year 9999; a later one was counted in a smaller unit. A moment in the first weeks of
1970 with a fraction of a second was counted in a larger unit: the present time with three or six
digits too few is in these weeks, and its whole seconds become fractions.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.encoding import MICROS_MAX, Cell, Encoding
from lakesplice.model.arrays import Mask

# How many of each unit a second has.
_A_SECOND = {
    Encoding.TIMESTAMP_MILLIS: 1_000,
    Encoding.TIMESTAMP_MICROS: 1_000_000,
    Encoding.TIMESTAMP_NANOS: 1_000_000_000,
}
# From 1990 to 2100, in seconds.
_PRESENT = (631_152_000, 4_102_444_800)


def of_another_unit(raw: pa.Array, cell: Cell) -> Mask | None:
    """Mark numbers that can't be in the unit of the cell's encoding; None if there are none, or if
    the unit doesn't depend on a setting.
    """
    second = _A_SECOND.get(cell.encoding)
    if not cell.by_setting or second is None or raw.null_count == len(raw):
        return None
    # 64 bits of nanoseconds end in 2262.
    last_moment = min((MICROS_MAX // 1_000_000 + 1) * second - 1, np.iinfo(np.int64).max)
    wrong = pc.greater(raw, last_moment)
    whole = pc.multiply(pc.divide(raw, second), second)
    fraction = pc.not_equal(whole, raw)
    for smaller in _A_SECOND.values():
        if smaller < second:
            first, last = (moment * smaller for moment in _PRESENT)
            there = pc.and_(pc.greater_equal(raw, first), pc.less(raw, last))
            wrong = pc.or_(wrong, pc.and_(there, fraction))
    mask: Mask = np.asarray(wrong.fill_null(False))
    return mask if mask.any() else None
