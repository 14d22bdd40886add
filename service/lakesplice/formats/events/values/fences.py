"""Records that say that a table was truncated or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers, Mask
from lakesplice.model.moments import EpochUs
from lakesplice.model.position import Position

_TIMES = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Fence:
    """The position at which a record says that the table was truncated, or `dropped`, its
    transaction, and the time at the source; None if the record doesn't say it.
    """

    position: Position
    gtid: str | None = None
    dropped: bool = False
    moment: EpochUs | None = None


@dataclass(frozen=True, slots=True)
class Fences:
    """Records that truncated the table, or `dropped` it: their indexes, ascending, positions,
    transactions, and times at the source.
    """

    rows: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    position_file: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    position_offset: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    gtid: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    dropped: Mask = field(default_factory=lambda: np.empty(0, np.bool_))
    source_ts: pa.Array = field(default_factory=lambda: pa.array([], _TIMES))

    @classmethod
    def of(cls, found: Mapping[int, Fence]) -> Fences:
        """Return fences given by the indexes of their records."""
        rows = sorted(found)
        positions = [found[row].position for row in rows]
        return cls(
            np.array(rows, np.int64),
            np.array([position.file for position in positions], np.int64),
            np.array([position.offset for position in positions], np.int64),
            pa.array([found[row].gtid for row in rows], pa.string()),
            np.array([found[row].dropped for row in rows], np.bool_),
            pa.array([found[row].moment for row in rows], _TIMES),
        )

    def filter(self, mask: Mask) -> Fences:
        """Return the marked ones."""
        chosen = pa.array(mask)
        return Fences(
            self.rows[mask],
            self.position_file[mask],
            self.position_offset[mask],
            self.gtid.filter(chosen),
            self.dropped[mask],
            self.source_ts.filter(chosen),
        )
