"""The order of a partition's records: changes of all schemas and fences, by their offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.arrays import Integers, Marks
from lakesplice.model.change import above
from lakesplice.model.position import FILE_BITS, Ordering, Position
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath
from lakesplice.planning.sources.gtids import GtidStreams

RecordIndex = NewType("RecordIndex", int)
"""The number of a record among those taken together; not its offset in the partition."""


@dataclass(frozen=True, slots=True)
class RecordOrder:
    """Changes and fences in the order of their records: the indexes of the records, and the
    positions.

    `order` has, per change in this order, its number when all parts are put together: each block,
    then the fences.
    """

    rows: Integers
    positions: ChangePositions
    order: Integers
    parts: Sequence[ImageBlock | Fences]
    blocks: Sequence[ImageBlock]

    @classmethod
    def of(cls, offsets: Integers, decoded: Decoded, missing: MissingRecords) -> RecordOrder:
        """Bring what was decoded from records with these offsets into their order."""
        parts: Sequence[ImageBlock | Fences] = (*decoded.blocks, decoded.fences)
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        file = np.concatenate([part.position_file for part in parts])[order]
        offset = np.concatenate([part.position_offset for part in parts])[order]
        gtid = pa.concat_arrays([part.gtid for part in parts])
        if len(decoded.blocks) > 1 or len(decoded.fences.rows):
            gtid = gtid.take(pa.array(order))
        after_missing = missing.before_changes(rows)
        positions = ChangePositions(offsets[rows], file, offset, gtid, after_missing)
        return cls(rows, positions, order, parts, decoded.blocks)

    def met_before(self, record: int, met: Mapping[str, int]) -> dict[str, int]:
        """Return the GTIDs that were met before a record; `met` are those before all records."""
        count = int(np.searchsorted(self.rows, record))
        return GtidStreams.of(self.positions.gtid.slice(0, count), met).highest(met)

    def marks(self) -> Marks:
        """Return which changes are rows of a snapshot, with the marks of `sources/snapshots.py`."""
        marks = [np.zeros(len(part.rows), np.int8) for part in self.parts]
        for at, block in enumerate(self.blocks):
            if block.snapshot is not None and block.ordering is Ordering.BINLOG:
                marks[at] = block.snapshot
        return np.concatenate(marks)[self.order]

    def lifted(self, course: EpochPath) -> list[Integers]:
        """Return the upper halves of each part's positions with their epochs."""
        if not course.epoch.any():
            return [part.position_file for part in self.parts]
        epoch = np.zeros(len(self.rows), np.int64)
        epoch[self.order[: course.end]] = course.epoch
        lengths = [len(part.rows) for part in self.parts]
        lifts = np.split(epoch << FILE_BITS, np.cumsum(lengths)[:-1])
        return [part.position_file + lift for part, lift in zip(self.parts, lifts, strict=True)]


def first_from(file: Integers, offset: Integers, until: Position | None) -> int | None:
    """Return the first of these positions at or above `until`, if there is one."""
    if until is None:
        return None
    late = np.flatnonzero(~above(until.file, until.offset, file, offset))
    return int(late[0]) if len(late) else None


def records_in(blocks: Sequence[ImageBlock], limit: RecordIndex) -> int:
    """Return how many records before `limit` are changes; one may be two changes, as an update of a
    key.
    """
    rows = [block.rows[: int(np.searchsorted(block.rows, limit))] for block in blocks]
    return sum(1 + int(np.count_nonzero(np.diff(part))) for part in rows if len(part))
