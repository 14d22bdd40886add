"""The GTIDs that a partition has met: proof that a change under one of them isn't lost if it is
applied, or has no effect, at its lower position.

What a partition has read is kept as ranges of numbers in the source's order. A range says above
which position a change under one of its numbers needs no other proof: no row that lacks the change
is at a higher position (`planning/sources/met_gtids.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lakesplice.model.position import BEFORE_ALL, Position


class GtidNumbers(NamedTuple):
    """Numbers of one stream, half-open."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class GtidRange:
    """Transactions that follow each other in the source's order: numbers of one stream. Or of
    several, whose order among each other isn't known.

    A row that lacks one of their changes is at or below the position `above`, or there is no such
    row if it is `BEFORE_ALL`. `from_start`: all that the source wrote before the range's end was
    read, from the partition's first record on.
    """

    numbers: Mapping[str, GtidNumbers]
    above: Position = BEFORE_ALL
    from_start: bool = False

    @classmethod
    def of(
        cls, stream: str, numbers: tuple[int, int], above: Position, *, from_start: bool
    ) -> GtidRange:
        """Return a range of one stream."""
        return cls({stream: GtidNumbers(*numbers)}, above, from_start)

    def holds(self, stream: str, number: int) -> bool:
        """Whether a transaction is in it."""
        numbers = self.numbers.get(stream)
        return numbers is not None and numbers.start <= number < numbers.stop

    def split(
        self, stream: str, number: int
    ) -> tuple[tuple[GtidRange, ...], tuple[GtidRange, ...]]:
        """Return what is before one of its transactions, and what begins with it.

        Several streams aren't split: their order isn't known. They are returned as what is before.
        """
        if len(self.numbers) > 1:
            return (self,), ()
        start, stop = self.numbers[stream]
        parts = (GtidNumbers(start, number), GtidNumbers(number, stop))
        first, second = (
            (replace(self, numbers={stream: part}),) if part.start < part.stop else ()
            for part in parts
        )
        return first, second

    def raised(self, position: Position) -> GtidRange:
        """Return the range after rows that lack its changes may have come to this position."""
        return self if self.above >= position else replace(self, above=position)


@dataclass(frozen=True, slots=True)
class Transaction:
    """The transaction whose changes were read last: the stream of its GTID and its number. More of
    its changes may follow, from this server or another one; only at or above `position` may they be
    those that were read. `executed` is its GTID if that is a set.
    """

    stream: str
    number: int
    position: Position
    executed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GtidRanges:
    """What a partition has read, in the source's order.

    `whole`: no record was missing since the partition's first one. Otherwise `since_missing` has
    the streams that were read since the last missing ones, with the highest number of each.
    """

    ranges: tuple[GtidRange, ...] = ()
    whole: bool = True
    since_missing: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def up_to(cls, highest: Mapping[str, int]) -> GtidRanges:
        """Return the ranges if all up to these numbers was read, in an unknown order."""
        numbers = {name: GtidNumbers(0, number + 1) for name, number in highest.items()}
        return cls((GtidRange(numbers, from_start=True),) if numbers else ())


@dataclass(frozen=True, slots=True)
class MetGtids:
    """What a partition has met, and the transaction that it read last; that is None if there was
    none yet, if records are missing behind it, or if it isn't known.
    """

    read: GtidRanges = field(default_factory=GtidRanges)
    last: Transaction | None = None

    @property
    def highest(self) -> dict[str, int]:
        """Return per stream the highest number in the ranges."""
        highest: dict[str, int] = {}
        for part in self.read.ranges:
            for name, numbers in part.numbers.items():
                highest[name] = max(numbers.stop - 1, highest.get(name, -1))
        return highest

    def before_missing(self) -> MetGtids:
        """Return what counts behind missing records: the same, but what comes next isn't known."""
        return MetGtids(GtidRanges(tuple(split_off(self.read.ranges, self.last)), whole=False))


def split_off(ranges: Sequence[GtidRange], last: Transaction | None) -> list[GtidRange]:
    """Make the transaction read last a range of its own: not all of its changes may have come."""
    parts: list[GtidRange] = []
    for part in ranges:
        if last is None or not part.holds(last.stream, last.number):
            parts.append(part)
            continue
        before, rest = part.split(last.stream, last.number)
        own, behind = rest[0].split(last.stream, last.number + 1) if rest else ((), ())
        first = Position(last.position.file, last.position.offset - 1)
        parts += [*before, *(one.raised(first) for one in own), *behind]
    return parts


NOTHING_MET = MetGtids(GtidRanges(whole=False))
"""What counts as met in a new epoch: nothing."""
