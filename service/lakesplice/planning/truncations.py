"""TRUNCATEs among a partition's records, and what the table's policy makes of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.decoded import Fences
from lakesplice.planning.policy import SchemaPolicy

_DETAIL = (
    "the table was truncated at the source; set schema_changes.truncate_table to evolve (its rows"
    " go) or ignore (they stay) and give `lakesplice unpark`"
)


def fence_of(
    fences: Fences, file: npt.NDArray[np.int64], limit: int, policy: SchemaPolicy
) -> Position:
    """Return the highest position of a TRUNCATE before the record `limit` that empties the table;
    `BEFORE_ALL` without one. `file` has the upper halves of their positions.
    """
    if not policy.truncates:
        return BEFORE_ALL
    places = zip(file.tolist(), fences.position_offset.tolist(), strict=True)
    count = int(np.searchsorted(fences.rows, limit))
    return max((Position(*place) for place in list(places)[:count]), default=BEFORE_ALL)


def parking_truncations(fences: Fences, policy: SchemaPolicy) -> Iterator[tuple[int, str]]:
    """Yield the first record that the table has to park at, and why; none by most policies."""
    if policy.parks_truncated and len(fences.rows):
        yield int(fences.rows[0]), _DETAIL
