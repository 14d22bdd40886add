"""The GTIDs that a partition has met: proof that a change under one of them is a repetition.

A change counts as met only if its row has it, or a newer one, under the highest position that the
row ever had. So GTIDs are forgotten where records are missing, and where changes may have been
applied again over newer ones (`planning/sources/met_gtids.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from lakesplice.model.position import Position


class GtidNumbers(NamedTuple):
    """Numbers of one stream that count as met, half-open; `stop` is one above the highest number
    that was met at a new highest position, also if none counts.
    """

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Transaction:
    """The last transaction that had a new highest position: the stream of its GTID, its number, and
    the first such position. More of its changes may follow, from this server or another one.
    """

    stream: str
    number: int
    position: Position


@dataclass(frozen=True, slots=True)
class MetGtids:
    """What a partition has met: per stream the numbers that count, and the last transaction.

    `whole`: nothing was forgotten since the partition's first record, so a stream that isn't among
    the `numbers` was never met. `last` is None if there was no transaction yet, or it was forgotten
    or is not known.
    """

    numbers: Mapping[str, GtidNumbers] = field(default_factory=dict)
    whole: bool = True
    last: Transaction | None = None

    @property
    def highest(self) -> dict[str, int]:
        """Return per stream the highest number that was met at a new highest position."""
        return {name: numbers.stop - 1 for name, numbers in self.numbers.items()}


NOTHING_MET = MetGtids(whole=False)
"""What counts as met after a loss of records, or in a new epoch: nothing."""
