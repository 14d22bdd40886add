"""Positions: the place of a change in its source's order.

A position is (epoch, binlog file number, offset in the file, row in the event, rank), compared as
numbers and kept as two signed 64-bit integers, so that every engine can compare them:

    _position_file    epoch  (31 bits) << 32 | binlog file number (32 bits)
    _position_offset  offset (41 bits) << 22 | row (21 bits) << 1 | rank (1 bit)

The rank puts a delete before a create at the same place: a primary-key update is both, at one
offset and row. Equal positions mean the same change.

In a table fed by hand a position is (0, the version that the upsert was meant to become). Another
commit may take that version first; a second upsert never does without being planned again. So each
upsert's position is above all earlier ones' and at most its version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lakesplice.errors import UnsupportedError

EPOCH_BITS = 31
FILE_BITS = 32
OFFSET_BITS = 41
ROW_BITS = 21
TIMESTAMP_BITS = 62
RANK_DELETE = 0
RANK_OTHER = 1


class Ordering(StrEnum):
    """What positions are; one table never mixes two orderings.

    BINLOG: places in the source's binlog, as packed in this module. KAFKA: offsets of the records
    in a topic of one partition, as offsets of a file 0, if the source has no other order. TIDB:
    commit timestamps of TiDB, which all come from one clock, in bits 62 to 1 of the second integer.
    COMMIT: versions of the table, which is fed by hand; each change was computed from the rows that
    it is applied to.
    """

    BINLOG = "binlog"
    KAFKA = "kafka"
    TIDB = "tidb"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in its two-integer form; the ordering of the pair is the source's order."""

    file: int
    offset: int

    @classmethod
    def of(cls, epoch: int, file: int, offset: int, row: int, rank: int) -> Position:
        """Pack the five parts. A part that is too large for its bits raises `UnsupportedError`; it
        is never truncated.
        """
        parts = (
            (epoch, EPOCH_BITS),
            (file, FILE_BITS),
            (offset, OFFSET_BITS),
            (row, ROW_BITS),
            (rank, 1),
        )
        if any(not 0 <= value < 1 << bits for value, bits in parts):
            raise UnsupportedError(
                "a position's part is out of range",
                epoch=epoch,
                file=file,
                offset=offset,
                row=row,
                rank=rank,
            )
        return cls(epoch << FILE_BITS | file, offset << (ROW_BITS + 1) | row << 1 | rank)

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """(epoch, binlog file number, offset in bytes, row, rank)."""
        return (
            self.file >> FILE_BITS,
            self.file & ((1 << FILE_BITS) - 1),
            self.offset >> (ROW_BITS + 1),
            (self.offset >> 1) & ((1 << ROW_BITS) - 1),
            self.offset & 1,
        )

    def __str__(self) -> str:
        epoch, file, offset, row, rank = self.parts
        return f"{epoch}:{file}:{offset}:{row}:{rank}"


def below_snapshot(position: Position) -> Position:
    """Return the position just below a snapshot's, whose rows are no deletes."""
    return Position(position.file, position.offset - RANK_OTHER + RANK_DELETE)


BEFORE_ALL = Position(-1, -1)
AFTER_ALL = Position((1 << 63) - 1, (1 << 63) - 1)
