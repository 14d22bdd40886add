"""Finds positions that several changes share: they give no order, so a row could end up wrong.

A position belongs to one change; if it comes twice, the change is a repetition. A source that
writes one position for a whole transaction breaks this rule: the later one of two changes of a row
would look like a repetition of the earlier. MariaDB from 11.4 on does so unless it is configured
otherwise; so does Debezium for a transaction that MySQL compressed, since all its row events get
the position of the one event that contains them.

The changes of a transaction follow each other in a partition, so a change is compared with the
first one at the highest position before it. That change is kept from batch to batch, so the result
doesn't depend on where batches end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers, KeyHash
from lakesplice.model.change import Op, above
from lakesplice.model.names import KEY_HIGH, KEY_LOW, OP, POSITION_FILE, POSITION_OFFSET, ROW_DIGEST
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import HighestChange
from lakesplice.planning.intake.order.record_order import RecordIndex

SHARED = (
    "the change has the same position as another one, so their order isn't known; start"
    " MariaDB from 11.4 on with binlog_legacy_event_pos=1, and MySQL with"
    " binlog_transaction_compression=OFF; then reload the table with `lakesplice reset --anew`"
)

Found = Sequence[tuple[Integers, pa.Table]]
"""Changes in `changes_schema`, each table with the indexes of the records that they come from."""

_BEFORE_ALL_RECORDS = -1
_IDENTITY = (KEY_HIGH, KEY_LOW, OP)


@dataclass(frozen=True)
class SharedPositions:
    """The changes of a partition's next records, in their order, after the highest change before
    them.

    `columns` are by name, integers of 64 bits; `schema_version` is that of their digests.
    """

    record: Integers
    columns: dict[str, Integers]
    before: HighestChange | None
    schema_version: int

    @classmethod
    def of(cls, found: Found, before: HighestChange | None, schema_version: int) -> SharedPositions:
        """Take changes. Rows of a snapshot don't count, since they all share the snapshot's
        position.
        """
        kept = [table[OP].to_numpy() != int(Op.READ) for _, table in found]
        records = [rows[mask] for (rows, _), mask in zip(found, kept, strict=True)]
        head = [] if before is None else [_BEFORE_ALL_RECORDS]
        record = np.concatenate([np.array(head, np.int64), *records])
        arrival = np.argsort(record, kind="stable")

        def column(name: str) -> Integers:
            known = [] if before is None else [_known(before)[name]]
            parts = [
                _integers(table[name])[mask] for (_, table), mask in zip(found, kept, strict=True)
            ]
            return np.concatenate([np.array(known, np.uint64).view(np.int64), *parts])[arrival]

        names = (POSITION_FILE, POSITION_OFFSET, *_IDENTITY, ROW_DIGEST)
        return cls(record[arrival], {n: column(n) for n in names}, before, schema_version)

    def first_shared(self) -> RecordIndex | None:
        """Return the first record whose change has the position of another, earlier change."""
        if not len(self.record) or self._rise():
            return None
        place = self._places()
        _, firsts, which = np.unique(place, return_index=True, return_inverse=True)
        first = firsts[which]
        at_highest = np.arange(len(place)) != first
        at_highest[1:] &= place[1:] == np.maximum.accumulate(place)[:-1]
        differs = np.zeros(len(place), np.bool_)
        for name in _IDENTITY:
            differs |= self.columns[name] != self.columns[name][first]
        # Under another schema a row has another digest, so the two can't be compared.
        comparable = (first > 0) | (self.before is None)
        if self.before is not None:
            comparable |= self.before.schema_version == self.schema_version
        digest = self.columns[ROW_DIGEST]
        differs |= comparable & (digest != digest[first])
        shared = self.record[at_highest & differs]
        return RecordIndex(int(shared[0])) if len(shared) else None

    def highest(self, limit: RecordIndex) -> HighestChange | None:
        """Return the change at the highest position once the records before `limit` are taken."""
        count = int(np.searchsorted(self.record, limit))
        if not count:
            return None
        at = count - 1 if self._rise() else int(np.argmax(self._places()[:count]))
        if self.before is not None and at == 0:
            return self.before
        value = {name: int(values[at]) for name, values in self.columns.items()}
        return HighestChange(
            Position(value[POSITION_FILE], value[POSITION_OFFSET]),
            KeyHash(*(value[name] % (1 << 64) for name in (KEY_HIGH, KEY_LOW))),
            value[OP],
            value[ROW_DIGEST],
            self.schema_version,
        )

    def _rise(self) -> bool:
        """Whether each place is above the one before, which is usual."""
        file, offset = self.columns[POSITION_FILE], self.columns[POSITION_OFFSET]
        return bool(above(file[1:], offset[1:], file[:-1], offset[:-1]).all())

    def _places(self) -> Integers:
        """Number the positions in their order, from 0."""
        file, offset = self.columns[POSITION_FILE], self.columns[POSITION_OFFSET]
        order = np.lexsort((offset, file))
        rises = (np.diff(file[order]) != 0) | (np.diff(offset[order]) != 0)
        place = np.zeros(len(order), np.int64)
        place[order[1:]] = np.cumsum(rises)
        return place


def _known(change: HighestChange) -> dict[str, int]:
    """The columns of the highest change, as unsigned integers."""
    signed = {
        POSITION_FILE: change.position.file,
        POSITION_OFFSET: change.position.offset,
        KEY_HIGH: change.key.high,
        KEY_LOW: change.key.low,
        OP: change.op,
        ROW_DIGEST: change.digest,
    }
    return {name: value % (1 << 64) for name, value in signed.items()}


def _integers(column: pa.ChunkedArray) -> Integers:
    """The values of a column as signed integers of 64 bits; 0 for null."""
    values = pc.fill_null(column, pa.scalar(0, column.type)).to_numpy()
    wraps = values.dtype == np.uint64
    signed: Integers = values.view(np.int64) if wraps else values.astype(np.int64, copy=False)
    return signed
