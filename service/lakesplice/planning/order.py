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
import polars as pl
import pyarrow as pa

from lakesplice.model.position import Position

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
    """Per row the stream and the number of its GTID; the stream is null where there is no GTID."""

    rows: pl.DataFrame

    @classmethod
    def of(cls, gtid: pa.StringArray) -> _Streams:
        """Read `domain-server-number` (MariaDB) and `uuid:number`, `uuid:tag:number` (MySQL)."""
        frame = pl.DataFrame({"gtid": pl.Series(pl.from_arrow(gtid), dtype=pl.String)})
        # The rows of a transaction follow each other: reading each run's first is enough.
        run = frame.select(pl.col("gtid").rle_id()).to_series()
        firsts = frame.select(pl.col("gtid").filter(pl.col("gtid").rle_id().is_first_distinct()))
        parts = firsts.select(
            mysql=pl.col("gtid").str.splitn(":", 3), mariadb=pl.col("gtid").str.splitn("-", 3)
        ).select(
            source=pl.col("mysql").struct[0],
            middle=pl.col("mysql").struct[1],
            last=pl.col("mysql").struct[2],
            domain=pl.col("mariadb").struct[0],
            number=pl.col("mariadb").struct[2],
        )
        tagged = pl.concat_str("source", "middle", separator=":")
        stream = (
            pl.when(pl.col("middle").is_null())
            .then("domain")
            .when(pl.col("last").is_null())
            .then("source")
            .otherwise(tagged)
        )
        number = (
            pl.when(pl.col("middle").is_null())
            .then("number")
            .when(pl.col("last").is_null())
            .then("middle")
            .otherwise("last")
        ).cast(pl.Int64, strict=False)
        read = parts.select(stream=pl.when(number.is_not_null()).then(stream), number=number)
        return cls(read[run])

    def head(self, count: int) -> _Streams:
        return _Streams(self.rows.head(count))

    def highest(self, seen: Mapping[str, int]) -> dict[str, int]:
        """Return `seen` raised by the rows."""
        grouped = self.rows.drop_nulls("stream").group_by("stream").agg(pl.col("number").max())
        met = dict(grouped.iter_rows())
        return {name: max(met.get(name, 0), seen.get(name, 0)) for name in sorted({*met, *seen})}

    def met_before(self, asked: Mask, seen: Mapping[str, int]) -> Mask:
        """Mark the rows asked about whose GTID isn't above the highest before them."""
        found = np.zeros(len(asked), dtype=np.bool_)
        stream = self.rows["stream"]
        # A handful of streams: the servers or domains that ever wrote to the source.
        for name in stream.filter(pl.Series(asked)).drop_nulls().unique():
            rows = (stream == name).fill_null(False).arg_true().to_numpy()
            numbers = self.rows["number"].gather(rows).to_numpy()
            before = np.maximum.accumulate(np.concatenate(([seen.get(name, -1)], numbers)))[:-1]
            found[rows] = numbers <= before
        return found
