"""TRUNCATEs and DROPs among a partition's records, and what the table's policy does about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.arrays import Integers
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.sources.dropped_tables import ADVICE
from lakesplice.planning.versions.ends_of_all_rows import ends_of_all_rows

_TRUNCATED = (
    "the table was truncated at the source; set schema_changes.truncate_table to evolve (its"
    " rows are deleted) or ignore (they are kept) and give `lakesplice unpark`"
)
_DROPPED = f"the table was dropped at the source; {ADVICE}"


def fence_of(fences: Fences, file: Integers, limit: RecordIndex, policy: SchemaPolicy) -> Position:
    """Return the highest position of a TRUNCATE or DROP before the record `limit` that empties the
    table; `BEFORE_ALL` without one. `file` has the upper halves of their positions.

    Later nothing shows that a DROP was among the records, so a DROP that is followed is applied at
    once.
    """
    counts = np.where(fences.dropped, policy.drops, policy.truncates)
    counts &= fences.rows < limit
    places = zip(file[counts].tolist(), fences.position_offset[counts].tolist(), strict=True)
    return max((Position(*place) for place in places), default=BEFORE_ALL)


def row_ends(
    fences: Fences,
    file: Integers,
    limit: RecordIndex,
    policy: SchemaPolicy,
    schema: TableSchema,
    *,
    shard: Mapping[str, str],
) -> tuple[tuple[Integers, pa.Table], ...]:
    """Return the ends of all rows of a history table, with the indexes of their records.

    A table without columns doesn't get them: it has no rows yet.
    """
    mask = np.where(fences.dropped, policy.drops, policy.truncates)
    mask &= fences.rows < limit
    if not schema.keeps_versions or not mask.any():
        return ()
    ends = fences.filter(mask)
    return ((ends.rows, ends_of_all_rows(ends, file[mask], schema, shard)),)


def parking_truncations(
    fences: Fences, policy: SchemaPolicy
) -> Iterator[tuple[RecordIndex, ParkCode, str]]:
    """Yield the first records at which the table has to park, with the code and the reason; most
    policies have none.
    """
    for rows, parks, code, detail in (
        (fences.rows[~fences.dropped], policy.parks_truncated, ParkCode.TRUNCATED, _TRUNCATED),
        (fences.rows[fences.dropped], policy.parks_dropped, ParkCode.DROPPED, _DROPPED),
    ):
        if parks and len(rows):
            yield RecordIndex(int(rows[0])), code, detail
