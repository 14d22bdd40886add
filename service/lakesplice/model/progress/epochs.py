"""Epochs keep positions in order when another server's binlog takes over.

Positions are places in one server's binlog; another server numbers its own files. So each time that
positions start over, a new epoch begins, and the epoch is the highest part of a position. Epochs
are recorded in the manifest, and looked up when records are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import BEFORE_ALL, FILE_BITS, Position


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch after the first one, which is 0 and needs no record.

    It was opened by a change with number `first` of the GTID `stream`, at `position` of the new
    binlog; `stream` is empty if an operator opened it. `before` has the highest number per stream
    that any partition had reached until then. `entered` maps a Kafka partition to the offset of its
    first record in the epoch; partitions that aren't in it still have to enter.
    """

    number: int
    stream: str = ""
    first: int = 0
    position: Position = BEFORE_ALL
    before: Mapping[str, int] = field(default_factory=dict)
    entered: Offsets = field(default_factory=dict)

    def entered_by(self, partition: int, offset: Offset) -> Epoch:
        """Return the epoch with a partition's first record in it."""
        return replace(self, entered={**self.entered, partition: offset})


def entered_epochs(
    epochs: Iterable[Epoch], partition: int, entered: Mapping[int, Offset]
) -> tuple[Epoch, ...]:
    """Return the epochs after a partition entered some of them: `entered` maps their numbers to the
    offset of its first record in each.
    """
    return tuple(
        epoch.entered_by(partition, entered[epoch.number]) if epoch.number in entered else epoch
        for epoch in epochs
    )


def epoch_at(epochs: Iterable[Epoch], partition: int, offset: Offset) -> int:
    """Return the recorded epoch of a partition's record."""
    passed = (
        epoch.number for epoch in epochs if epoch.entered.get(partition, offset + 1) <= offset
    )
    return max(passed, default=0)


def in_epoch(position: Position, epoch: int) -> Position:
    """Return a place in a server's binlog, whose epoch is 0, as a position of an epoch."""
    return Position(position.file + (epoch << FILE_BITS), position.offset)
