"""Searches a topic for a place of the source: the first record that isn't before it.

Within a partition, positions and GTIDs rise, so a few records at a time show on which side of them
the place is. Records that a source sent twice don't matter: wherever the search ends, each change
that isn't before the place is in the records from there on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lakesplice.errors import UsageError
from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.model.position import OFFSET_BITS, ROW_BITS, Ordering
from lakesplice.planning.sources.gtids import read_gtid_set

# How many records of a partition are read at once. To read from all partitions once costs as much
# as some thousand records.
WINDOW = 500
_PLACE = re.compile(r"(?P<base>.+\.)?(?P<file>\d{1,9}):(?P<offset>\d{1,12})")
_NO_BINLOG = {
    Ordering.KAFKA: "the changes have no position in a binlog; give offsets, or a moment",
    Ordering.TIDB: "the changes have commit timestamps of TiDB, and no position in a binlog; give"
    " offsets, or a moment",
}


@dataclass(frozen=True, slots=True)
class BinlogPlace:
    """A place in the binlog of the source's present server: a file's number and an offset in it."""

    file: int
    offset: int

    @classmethod
    def of(cls, text: str) -> BinlogPlace:
        """Read `binlog.000003:1234`; `UsageError` for anything else."""
        found = _PLACE.fullmatch(text)
        if found is None or int(found["offset"]) >> OFFSET_BITS:
            raise UsageError(
                "write a place in a binlog as FILE:POSITION, such as binlog.000003:1234", given=text
            )
        return cls(int(found["file"]), int(found["offset"]))

    def is_before_it(self, block: ImageBlock) -> tuple[Mask, Mask]:
        """Return which changes have a position, and which of them are before the place."""
        offset = block.position_offset >> (ROW_BITS + 1)
        before = above(self.file, self.offset, block.position_file, offset)
        return np.ones(len(block), np.bool_), before


@dataclass(frozen=True, slots=True)
class GtidPlace:
    """A set of transactions that a server had executed: per stream the highest number."""

    numbers: Mapping[str, int]

    @classmethod
    def of(cls, text: str) -> GtidPlace:
        """Read a set as `gtid_executed` or `gtid_binlog_pos` has it; `UsageError` for anything
        else, and for a set that leaves out transactions in between.
        """
        numbers = read_gtid_set(text)
        if not numbers:
            raise UsageError(
                "that isn't a set of GTIDs; write it as MySQL shows it in gtid_executed, or MariaDB"
                " in gtid_binlog_pos",
                given=text,
            )
        if re.search(r":\d+(-\d+)?:\d", text):
            raise UsageError(
                "the set lacks transactions in between; give the set of a server that has executed"
                " all of them",
                given=text,
            )
        return cls(numbers)

    def is_before_it(self, block: ImageBlock) -> tuple[Mask, Mask]:
        """Return which changes have a GTID, and which of these are in the set."""
        encoded = block.gtid.dictionary_encode()
        sets = [read_gtid_set(text) or {} for text in encoded.dictionary.to_pylist()]
        known = [bool(found) for found in sets]
        executed = [
            all(number <= self.numbers.get(name, -1) for name, number in found.items())
            for found in sets
        ]
        rows = encoded.indices.fill_null(len(sets)).to_numpy()
        return np.array([*known, False])[rows], np.array([*executed, False])[rows]


Place = BinlogPlace | GtidPlace


@dataclass(frozen=True)
class PlacedRecords:
    """Some records of a partition that have a position, by offset, and which are before a place."""

    offsets: Integers
    before: Mask


Probe = Callable[[OffsetRanges], Mapping[int, PlacedRecords]]


def placed_records(offsets: Integers, decoded: Decoded, place: Place) -> PlacedRecords:
    """Return which of some records have a position, and whether it is before a place.

    `UsageError` if they can't be decoded, or aren't ordered by the source's binlog.
    """
    for block in decoded.blocks:
        if block.ordering in _NO_BINLOG:
            raise UsageError(_NO_BINLOG[block.ordering])
    if decoded.stops and not decoded.blocks:
        stop = decoded.stops[0]
        raise UsageError(
            "a record can't be read, so no position can be looked for; give offsets, or a moment",
            cause=stop.detail,
            offset=int(offsets[stop.row]),
        )
    rows: list[Integers] = [np.zeros(0, np.int64)]
    befores: list[Mask] = [np.zeros(0, np.bool_)]
    for block in decoded.blocks:
        known, before = place.is_before_it(block)
        rows.append(block.rows[known])
        befores.append(before[known])
    row, isbefore = np.concatenate(rows), np.concatenate(befores)
    order = np.argsort(row, kind="stable")
    return PlacedRecords(offsets[row[order]], isbefore[order])


def find_offsets(ranges: OffsetRanges, probe: Probe, window: int = WINDOW) -> dict[int, Offset]:
    """Return per partition an offset from which on all records are that aren't before a place: one
    after the last record that is before it.

    `ranges` has each partition's first offset and the one after its last. `probe` reads some
    offsets of each partition that it is given, and is called some twenty times for a billion
    records. `UsageError` if no record of any partition has a position.
    """
    searches = {at: _Search(start, end) for at, (start, end) in ranges.items() if start < end}
    while asked := {at: one.window(window) for at, one in searches.items() if not one.is_done}:
        found = probe(asked)
        for at, (start, end) in asked.items():
            searches[at].narrow(start, end, found.get(at))
    if searches and not any(one.has_met for one in searches.values()):
        raise UsageError(
            "no record of the topic has such a position; give offsets, or a moment",
        )
    return {at: searches[at].low if at in searches else end for at, (_, end) in ranges.items()}


@dataclass
class _Search:
    """All records below `low` are before the place; all from `high` on aren't, or there are none.
    `skipped` is the number of records without a position that follow the middle.
    """

    low: Offset
    high: Offset
    skipped: int = 0
    has_met: bool = False

    @property
    def is_done(self) -> bool:
        return self.low >= self.high

    def window(self, size: int) -> OffsetRange:
        """Return the offsets to read next."""
        if self.high - self.low <= size:
            return OffsetRange(self.low, self.high)
        start = Offset(self.low + (self.high - self.low) // 2 + self.skipped)
        return OffsetRange(start, min(self.high, Offset(start + max(size, self.skipped))))

    def narrow(self, start: Offset, end: Offset, found: PlacedRecords | None) -> None:
        """Take what was read between two offsets into account."""
        if found is None or not len(found.offsets):
            self._pass_over(start, end)
            return
        self.has_met = True
        middle, self.skipped = Offset(start - self.skipped), 0
        after = np.flatnonzero(~found.before)
        if not len(after):
            self.low = Offset(int(found.offsets[-1]) + 1)
        elif after[0] > 0:
            self.low = self.high = Offset(int(found.offsets[after[0] - 1]) + 1)
        else:
            self.high = middle if start > self.low else self.low

    def _pass_over(self, start: Offset, end: Offset) -> None:
        """Nothing between two offsets has a position, such as tombstones and heartbeats."""
        if start == self.low:
            self.high = self.low
        elif end == self.high:
            self.high, self.skipped = Offset(start - self.skipped), 0
        else:
            self.skipped += end - start
