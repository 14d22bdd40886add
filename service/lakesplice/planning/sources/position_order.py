"""Order within one topic partition: what a lower position means.

A topic partition has its source's changes in order, so positions rise or stay equal (rows of one
snapshot, the two halves of a key update). There are two reasons for a lower position, or for the
highest one again, which look alike:

    a repetition    the connector restarted and sends again what it had sent: harmless, since a
                    change at or below its row's position has no effect
    another source  after a failover or with a reset binlog positions start over, and by the same
                    rule new changes would silently have no effect

The GTID distinguishes them: a change is a repetition if its GTID counts as met, and
`met_gtids.py` says which do. Every other lower position is a violation, also that of a row without
a GTID; `epochs.py` decides which of them another server explains. The highest position again is a
violation only under a GTID that doesn't count as met: one server never writes two transactions at
one place.

Snapshot rows have no GTID: their position is the one where their snapshot began. A snapshot that is
started again begins at or above everything that was sent, so snapshot rows at a lower position are
unexplained. Server ids prove nothing: they name the server where a change originated, and alternate
behind replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.change import above
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import MetGtids, Transaction
from lakesplice.planning.sources.gtids import GtidStreams, read_gtid_set
from lakesplice.planning.sources.met_gtids import Gtid, Memory


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """What a partition's positions showed.

    `first_violation` is the row from which on nothing may be applied, `detail` the reason for an
    operator (empty if there is none). The rest includes the rows before it: `high` is the highest
    position, `met` are the GTIDs that count as met, and `repetitions` counts rows at lower
    positions.
    """

    first_violation: int | None
    detail: str
    high: Position
    met: MetGtids
    repetitions: int = 0


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """Rows with their GTIDs, compared with the positions before them. Those `below` are lower;
    `suspect` need a proof; `rising` have a GTID and a new highest position, and so do the
    `returned` ones, which were passed over before. Between those in `after_missing` and the rows
    before them records are missing.
    """

    file: Integers
    offset: Integers
    gtid: pa.StringArray
    streams: GtidStreams
    below: Mask
    suspect: Mask
    rising: Mask
    returned: Mask
    after_missing: Mask

    @classmethod
    def of(
        cls,
        position_file: Integers,
        position_offset: Integers,
        gtid: pa.StringArray,
        start: Position,
        met: MetGtids,
        *,
        known: Mask | None = None,
        after_missing: Mask | None = None,
    ) -> ComparedRows:
        """Compare the rows of one partition, in offset order.

        `start` is the highest position that the partition had before, `met` its GTIDs that count as
        met. Those of other partitions must not be included: if one is ahead, changes of a new
        source that this partition hasn't had yet would look like repetitions. A GTID that is null
        or can't be read explains nothing. Rows marked in `known` are known to be repetitions;
        before those in `after_missing` there are records that could not be read.
        """
        below, again = not_above_high(position_file, position_offset, start)
        streams = GtidStreams.of(gtid, met.highest)
        none = np.zeros(len(gtid), np.bool_)
        known = none if known is None else known
        named = streams.stream >= 0
        return cls(
            file=position_file,
            offset=position_offset,
            gtid=gtid,
            streams=streams,
            below=below,
            suspect=(below | (again & named)) & ~known,
            rising=~(below | again | known) & named,
            returned=~(below | again) & known & named,
            after_missing=none if after_missing is None else after_missing,
        )

    def between(self, start: int, stop: int) -> ComparedRows:
        """Return the rows from `start` up to `stop`, unless they are `from_sets`."""
        part = slice(start, stop)
        return ComparedRows(
            file=self.file[part],
            offset=self.offset[part],
            gtid=self.gtid.slice(start, stop - start),
            streams=self.streams.between(start, stop),
            below=self.below[part],
            suspect=self.suspect[part],
            rising=self.rising[part],
            returned=self.returned[part],
            after_missing=self.after_missing[part],
        )

    def position(self, row: int) -> Position:
        """Return a row's position."""
        return Position(int(self.file[row]), int(self.offset[row]))

    def high(self, start: Position, stop: int | None = None) -> Position:
        """Return the highest position up to the row `stop`; `start` is the one before all rows."""
        return _high(self.file[:stop], self.offset[:stop], start)


def check_order(rows: ComparedRows, start: Position, met: MetGtids) -> OrderCheck:
    """Check the rows of one partition, which were compared with `start` and `met`."""
    forward = met_going_forward(rows, met)
    first, met = _row_by_row(rows, met, start) if forward is None else (None, forward)
    high = rows.high(start, first)
    detail = ""
    if first is not None:
        name = rows.gtid[first].as_py()
        under = f"under GTID {name}, which is new," if name else "without a GTID"
        falls = (
            "is the highest one again" if rows.position(first) == high else f"falls below {high}"
        )
        detail = f"position {rows.position(first)} {under} {falls}"
    return OrderCheck(first, detail, high, met, int(np.count_nonzero(rows.below[:first])))


def met_going_forward(rows: ComparedRows, met: MetGtids) -> MetGtids | None:
    """Return what counts as met after the rows if the connector went forward all along, as it
    usually does; None if it didn't, or isn't sure.
    """
    found = met_before_each(rows, met, [len(rows.file)])
    return None if found is None else found[0]


def met_before_each(
    rows: ComparedRows, met: MetGtids, places: Sequence[int]
) -> list[MetGtids] | None:
    """Return what counts as met before some of the rows, whose numbers rise, if the connector went
    forward all along, as it usually does; None if it didn't, or isn't sure.
    """
    streams = rows.streams
    uneven = rows.suspect | rows.returned | rows.after_missing
    if uneven.any() or streams.from_sets:
        return None
    first = _first_of_transactions(rows, met.last)
    memory, highest = Memory(met), met.highest
    for at in np.unique(streams.stream[first]).tolist():
        name = streams.names[at]
        own = streams.number[first[streams.stream[first] == at]]
        rises = own[0] > highest.get(name, -1) and not np.any(own[1:] <= own[:-1])
        if not (rises and memory.is_at_end() and memory.follows(name, int(own[0]))):
            return None
    own_stream = streams.stream[first]
    # Of transactions of one stream in a row, only the last one has to be noted.
    is_last = np.append(own_stream[1:] != own_stream[:-1], True)
    found, noted = [], 0
    for end in np.searchsorted(first, places).tolist():
        if end > noted:
            for row in (*first[noted : end - 1][is_last[noted : end - 1]], first[end - 1]):
                gtid = Gtid(streams.names[int(streams.stream[row])], int(streams.number[row]))
                memory.note(gtid, rows.position(row), BEFORE_ALL)
            met, noted = memory.met(), end
        found.append(met)
    return found


def _first_of_transactions(rows: ComparedRows, last: Transaction | None) -> Integers:
    """Return the rows at new highest positions that don't continue the transaction before them."""
    rising = np.flatnonzero(rows.rising)
    if not len(rising):
        return rising
    stream, number = rows.streams.stream[rising], rows.streams.number[rising]
    file = rows.file[rising]
    first = np.ones(len(rising), np.bool_)
    changes = (part[1:] != part[:-1] for part in (stream, number, file))
    first[1:] = np.logical_or.reduce([*changes])
    if last is not None:
        begins = (rows.streams.names[int(stream[0])], int(number[0]), int(file[0]))
        first[0] = begins != (last.stream, last.number, last.position.file)
    return rising[first]


def _row_by_row(rows: ComparedRows, met: MetGtids, high: Position) -> tuple[int | None, MetGtids]:
    """Return the first violation, and what counts as met before it; `high` is the highest position
    before the rows.

    Each row decides what the next one means. Few batches need this.
    """
    memory = Memory(met)
    suspect, rising = rows.suspect.tolist(), rows.rising.tolist()
    returned, after_missing = rows.returned.tolist(), rows.after_missing.tolist()
    for row, gtid in enumerate(_gtids_of(rows)):
        position = rows.position(row)
        if after_missing[row] or returned[row]:
            memory.pass_missing()
        if suspect[row] and (gtid is None or not memory.proves(gtid, position)):
            return row, memory.met()
        if gtid is not None and (suspect[row] or rising[row] or returned[row]):
            memory.note(gtid, position, high)
        if returned[row]:
            memory.pass_missing()
        high = max(high, position)
    return None, memory.met()


def _gtids_of(rows: ComparedRows) -> list[Gtid | None]:
    if rows.streams.from_sets:
        encoded = rows.gtid.dictionary_encode()
        texts = [*encoded.dictionary.to_pylist(), None]
        found = [read_gtid_set(text) if text else None for text in texts]
        sets = [Gtid.of_set(executed) if executed else None for executed in found]
        return [sets[code] for code in encoded.indices.fill_null(len(sets) - 1).to_pylist()]
    names = rows.streams.names
    pairs = zip(rows.streams.stream.tolist(), rows.streams.number.tolist(), strict=True)
    return [Gtid(names[at], number) if at >= 0 else None for at, number in pairs]


def gtid_at(gtid: pa.StringArray, row: int) -> Gtid | None:
    """Return the GTID of a row; None if it has none that can be read."""
    part = gtid.slice(row, 1)
    streams = GtidStreams.of(part, {})
    if streams.from_sets:
        executed = read_gtid_set(part[0].as_py())
        return Gtid.of_set(executed) if executed else None
    found = streams.at(0)
    return None if found is None else Gtid(*found)


def accept_repetitions(
    position_file: Integers, position_offset: Integers, start: Position, met: MetGtids
) -> OrderCheck:
    """Check the rows of one partition whose positions come from one clock that never goes back: a
    position below the highest is a repetition, from any sender.
    """
    below, _ = not_above_high(position_file, position_offset, start)
    high = _high(position_file, position_offset, start)
    return OrderCheck(None, "", high, met, int(np.count_nonzero(below)))


def not_above_high(file: Integers, offset: Integers, start: Position) -> tuple[Mask, Mask]:
    """Mark the rows that are below the highest position before them, and those that are at it."""
    files = np.concatenate((np.array([start.file], np.int64), file))
    offsets = np.concatenate((np.array([start.offset], np.int64), offset))
    falls = above(files[:-1], offsets[:-1], files[1:], offsets[1:])
    if not falls.any():
        return falls, (files[1:] == files[:-1]) & (offsets[1:] == offsets[:-1])
    order = np.lexsort((offsets, files))
    rises = np.ones(len(order), dtype=np.int64)
    rises[1:] = (np.diff(files[order]) != 0) | (np.diff(offsets[order]) != 0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(rises)
    highest = np.maximum.accumulate(rank)[:-1]
    return rank[1:] < highest, rank[1:] == highest


def _high(file: Integers, offset: Integers, start: Position) -> Position:
    if not len(file):
        return start
    highest = file.max()
    return max(start, Position(int(highest), int(offset[file == highest].max())))
