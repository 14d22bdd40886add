"""Order within one topic partition: what a position that falls back means.

A topic partition carries its source's changes in order, so positions rise or stay (rows of one
snapshot, the two halves of a key update). They fall back for two reasons that look alike:

    a repetition    the connector restarted and sends again what it had sent: harmless, since a
                    change at or below its row's position does nothing
    another source  a failover or a reset binlog: positions start over, and by the same rule new
                    changes would do nothing, silently

The GTID tells them apart: one that this partition has carried before is a repetition. Per stream of
GTIDs (a MariaDB domain; a MySQL server UUID, with its tag if there is one) numbers only rise, so
"carried before" means: not above the highest met. Whatever else falls back is a violation, a row
without a GTID included. Snapshot rows have none: they stand at the position where their snapshot
began, and a snapshot that is started again begins at or above all that was sent, so rows of one
that fall back come from something that isn't understood. Server ids prove nothing: they name the
server where a change originated and alternate behind replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.position import Position

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_MARIADB_PARTS = 2  # behind the domain
_DIGITS_MAX = 18  # below 2^63


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """What a partition's positions showed.

    `first_violation` is the row from which nothing may be applied, `detail` why, in words for an
    operator (empty without one). `high` and `seen` include the rows before it: the highest
    position, and per stream of GTIDs the highest number. `repetitions` counts the rows before it
    that fell back.
    """

    first_violation: int | None
    detail: str
    high: Position
    seen: Mapping[str, int]
    repetitions: int = 0


def check_order(
    position_file: Integers,
    position_offset: Integers,
    gtid: pa.StringArray,
    start: Position,
    seen: Mapping[str, int],
) -> OrderCheck:
    """Judge the rows of one partition, given in offset order.

    `start` is the highest position the partition showed before, `seen` the highest number it showed
    per stream of GTIDs. Another partition's must not be mixed in: one that is ahead would make
    changes of a new source that this one hasn't carried yet look like repetitions. A GTID that is
    null or can't be read explains nothing.
    """
    below = _below_high(position_file, position_offset, start)
    streams = _Streams.of(gtid)
    unexplained = np.flatnonzero(below & ~streams.met_before(below, seen))
    if not len(unexplained):
        high = _high(position_file, position_offset, start)
        return OrderCheck(None, "", high, streams.highest(seen), int(np.count_nonzero(below)))
    first = int(unexplained[0])
    high = _high(position_file[:first], position_offset[:first], start)
    at = Position(int(position_file[first]), int(position_offset[first]))
    name = gtid[first].as_py()
    under = f"under GTID {name}, which is new," if name else "without a GTID"
    detail = (
        f"position {at} {under} falls below {high}; if the source failed over or its binlog was"
        " reset, reset the table"
    )
    before = int(np.count_nonzero(below[:first]))
    return OrderCheck(first, detail, high, streams.head(first).highest(seen), before)


def accept_repetitions(
    position_file: Integers, position_offset: Integers, start: Position, seen: Mapping[str, int]
) -> OrderCheck:
    """Judge the rows of one partition whose positions come from one clock that never falls back:
    what stands below the highest is a repetition, whoever sends it.
    """
    below = _below_high(position_file, position_offset, start)
    high = _high(position_file, position_offset, start)
    return OrderCheck(None, "", high, dict(seen), int(np.count_nonzero(below)))


def _below_high(file: Integers, offset: Integers, start: Position) -> Mask:
    """Mark the rows that stand below the highest position before them."""
    files = np.concatenate((np.array([start.file], np.int64), file))
    offsets = np.concatenate((np.array([start.offset], np.int64), offset))
    falls: Mask = (files[1:] < files[:-1]) | (
        (files[1:] == files[:-1]) & (offsets[1:] < offsets[:-1])
    )
    if not falls.any():
        return falls
    order = np.lexsort((offsets, files))
    rises = np.ones(len(order), dtype=np.int64)
    rises[1:] = (np.diff(files[order]) != 0) | (np.diff(offsets[order]) != 0)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(rises)
    below: Mask = rank[1:] < np.maximum.accumulate(rank)[:-1]
    return below


def _high(file: Integers, offset: Integers, start: Position) -> Position:
    if not len(file):
        return start
    highest = file.max()
    return max(start, Position(int(highest), int(offset[file == highest].max())))


@dataclass(frozen=True, slots=True)
class _Streams:
    """Per row the stream of its GTID, as an index into `names` or -1 for none, and its number."""

    names: tuple[str, ...]
    stream: Integers
    number: Integers

    @classmethod
    def of(cls, gtid: pa.StringArray) -> _Streams:
        """Read `domain-server-number` (MariaDB) and `uuid:number`, `uuid:tag:number` (MySQL)."""
        alike = _numbers_of_one_stream(gtid)
        if alike is not None:
            name, numbers = alike
            return cls((name,), np.zeros(len(gtid), np.int64), numbers)
        encoded = gtid.dictionary_encode()
        read = [_read(text) for text in encoded.dictionary.to_pylist()]
        names = tuple(sorted({found[0] for found in read if found}))
        place = {name: at for at, name in enumerate(names)}
        # One more for the rows without a GTID.
        streams = np.array([place[found[0]] if found else -1 for found in read] + [-1], np.int64)
        numbers = np.array([found[1] if found else -1 for found in read] + [-1], np.int64)
        rows = encoded.indices.fill_null(len(read)).to_numpy()
        return cls(names, streams[rows], numbers[rows])

    def head(self, count: int) -> _Streams:
        return _Streams(self.names, self.stream[:count], self.number[:count])

    def highest(self, seen: Mapping[str, int]) -> dict[str, int]:
        """Return `seen` raised by the rows."""
        met = {
            name: int(self.number[self.stream == at].max())
            for at, name in enumerate(self.names)
            if np.any(self.stream == at)
        }
        return {name: max(met.get(name, 0), seen.get(name, 0)) for name in sorted({*met, *seen})}

    def met_before(self, asked: Mask, seen: Mapping[str, int]) -> Mask:
        """Mark the rows asked about whose GTID isn't above the highest before them."""
        found = np.zeros(len(asked), dtype=np.bool_)
        # A handful of streams: the servers or domains that ever wrote to the source.
        for at in np.unique(self.stream[asked]):
            if at < 0:
                continue
            rows = np.flatnonzero(self.stream == at)
            numbers = self.number[rows]
            least = seen.get(self.names[at], -1)
            before = np.maximum.accumulate(np.concatenate(([least], numbers)))[:-1]
            found[rows] = numbers <= before
        return found


def _read(gtid: str) -> tuple[str, int] | None:
    """Return a GTID's stream and number."""
    source, *rest = gtid.split(":", 2)
    if rest:
        stream, number = ":".join((source, *rest[:-1])), rest[-1]
    else:
        stream, *rest = gtid.split("-", 2)
        number = rest[-1] if len(rest) == _MARIADB_PARTS else ""
    if not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX):
        return None
    return stream, int(number)


def _numbers_of_one_stream(gtid: pa.StringArray) -> tuple[str, Integers] | None:
    """Return the stream and each row's number where all rows are of one stream; most often they
    are, and then nothing needs to be read one by one.
    """
    if not len(gtid) or gtid.null_count:
        return None
    first = gtid[0].as_py()
    read = _read(first)
    if read is None:
        return None
    prefix = first.rstrip("0123456789")
    if not pc.all(pc.starts_with(gtid, prefix)).as_py():
        return None
    digits = pc.utf8_slice_codeunits(gtid, len(prefix))
    longest = pc.max(pc.utf8_length(digits)).as_py()
    if longest > _DIGITS_MAX or not pc.all(pc.match_substring_regex(digits, "^[0-9]+$")).as_py():
        return None
    return read[0], digits.cast(pa.int64()).to_numpy()
