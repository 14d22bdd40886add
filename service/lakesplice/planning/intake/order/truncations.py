"""TRUNCATEs and DROPs among a partition's records, and what the table's policy does about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.arrays import Integers
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, FILE_BITS, Position
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.order.emptied import Truncation, is_behind, sent_again, truncations
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.sources.dropped_tables import ADVICE
from lakesplice.planning.versions.ends_of_all_rows import ends_of_all_rows

_TRUNCATED = (
    "the table was truncated at the source; set schema_changes.truncate_table to evolve (its"
    " rows are deleted) or ignore (they are kept) and give `lakesplice unpark`"
)
_DROPPED = f"the table was dropped at the source; {ADVICE}"


def sent_again_records(
    parts: Sequence[ImageBlock | Fences],
    files: Sequence[Integers],
    limit: RecordIndex,
    emptied: Emptied | None,
    epochs: Sequence[Epoch],
) -> frozenset[RecordIndex]:
    """Return the records before `limit` that are from before a TRUNCATE, though their positions are
    above it. `files` has the upper halves of the positions of each part.
    """
    if emptied is None or not is_behind(emptied, epochs):
        return frozenset()
    found: set[RecordIndex] = set()
    for part, file in zip(parts, files, strict=True):
        mask = sent_again(emptied, file, part.position_offset, part.gtid, part.source_ts)
        mask &= part.rows < limit
        if isinstance(part, Fences):  # where positions still have one order, it counts again
            mask &= (file >> FILE_BITS) > (emptied.position.file >> FILE_BITS)
        found.update(map(RecordIndex, part.rows[mask].tolist()))
    return frozenset(found)


def counted(
    fences: Fences,
    file: Integers,
    limit: RecordIndex,
    policy: SchemaPolicy,
    without: Collection[RecordIndex],
) -> tuple[Fences, Integers]:
    """Return the TRUNCATEs and DROPs before the record `limit` that empty the table, `without` some
    records, and the upper halves of their positions.

    Later nothing shows that a DROP was among the records, so a DROP that is followed is applied at
    once.
    """
    mask = np.where(fences.dropped, policy.drops, policy.truncates)
    mask &= (fences.rows < limit) & ~np.isin(fences.rows, list(without))
    return fences.filter(mask), file[mask]


def read_first(
    fences: Fences, file: Integers, offsets: Integers, order: RecordOrder, before: PartitionState
) -> tuple[Truncation, ...]:
    """Return those TRUNCATEs and DROPs that a partition, in the state `before`, reads for the first
    time; `offsets` are those of all records.
    """
    new = offsets[fences.rows] >= before.met_until
    fences, file = fences.filter(new), file[new]
    met = [order.met_before(int(row), before.gtids) for row in fences.rows]
    return truncations(fences, file, met)


def fence_of(fences: Fences, file: Integers) -> Position:
    """Return the highest position of TRUNCATEs and DROPs; `BEFORE_ALL` without one. `file` has the
    upper halves of their positions.
    """
    places = zip(file.tolist(), fences.position_offset.tolist(), strict=True)
    return max((Position(*place) for place in places), default=BEFORE_ALL)


def row_ends(
    fences: Fences, file: Integers, schema: TableSchema, *, shard: Mapping[str, str]
) -> tuple[tuple[Integers, pa.Table], ...]:
    """Return the ends of all rows of a history table, with the indexes of their records.

    A table without columns doesn't get them: it has no rows yet.
    """
    if not schema.keeps_versions or not len(fences.rows):
        return ()
    return ((fences.rows, ends_of_all_rows(fences, file, schema, shard)),)


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
