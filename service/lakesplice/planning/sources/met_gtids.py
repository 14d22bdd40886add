"""What proves that a change at a lower position is no change of another server.

A connector sends its source's changes in their order. It may go back and send changes again, from
any server, at higher or lower positions. Records may be missing among those that are read: the
broker's compaction or retention removed them, or an operator skipped them. A row takes a change
only if its position is above the row's. So a change at a lower position would be lost if its row
has an older state at a higher position.

**The invariant**: if a row lacks a change, it is at or below the position that is kept for that
change's number (`GtidRange.above`); no position is kept if no row lacks it. So a change above that
position needs no proof: its row takes it, or has it or a later one. Any other change at a position
that isn't a new highest one begins an epoch, in which it is above all rows.

These rules keep the invariant, whatever is missing:

    A change that is read may stand over later ones of its key, which are at lower positions. So for
    all later numbers its position is kept, unless theirs is higher.

    If nothing is missing between two changes, and the second one is later, then it follows the
    first one in the source's order. So all numbers up to it were read and no position is kept for
    them.

    If records are missing before a later change, then for the numbers before it the highest
    position that there was is kept: every row is at or below it.

As long as the connector stays at one server, positions rise with numbers. So whatever it sends
again, and whatever was missing, is above what is kept, and no epoch begins.

Numbers order transactions of one stream. Streams are in the order in which they were read. Behind
missing records a stream's place isn't sure until it was read again: then only what is before it for
sure is kept, and the rest is forgotten.

A transaction has many changes under one number. A connector may continue it at another server. So
while it is the last one that was read, its changes count only at or above its first position: a
transaction is never at two places of one server, nor in two files. If its first change may be
missing, its file alone counts.

What is read again (after an operator went back) is applied under its former position, and changes
nothing. Where an epoch begins, all is forgotten: positions of before say nothing about those in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import (
    GtidNumbers,
    GtidRange,
    GtidRanges,
    MetGtids,
    Transaction,
    split_off,
)

_FIRST = Position(0, 0)  # below every change's, but not as if nothing were missing
RANGES_MAX = 32
"""Bounds the manifest's size: the oldest ranges are joined beyond this."""


@dataclass(frozen=True, slots=True)
class Gtid:
    """A change's GTID: a stream and a number in it.

    If it is a set of all that was `executed` up to the change, the stream is the names of the set's
    streams, and the number the sum of theirs.
    """

    stream: str
    number: int
    executed: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of_set(cls, executed: Mapping[str, int]) -> Gtid:
        """Return a set's place in the order of sets with the same streams."""
        return cls(",".join(sorted(executed)), sum(executed.values()), executed)


class Memory:
    """What counts as met, followed change by change; not thread-safe."""

    def __init__(self, met: MetGtids) -> None:
        self._load(met)

    def _load(self, met: MetGtids) -> None:
        self._ranges = list(met.read.ranges)
        self._whole = met.read.whole
        self._since_missing = dict(met.read.since_missing)
        self._last = met.last

    def met(self) -> MetGtids:
        """Return what counts as met now."""
        since = {} if self._whole else dict(self._since_missing)
        return MetGtids(GtidRanges(tuple(self._ranges), self._whole, since), self._last)

    def is_at_end(self) -> bool:
        """Whether the transaction that was read last is the latest one in the ranges."""
        if self._last is None or not self._ranges:
            return not self._ranges
        numbers = self._ranges[-1].numbers.get(self._last.stream)
        return numbers is not None and numbers.stop == self._last.number + 1

    def follows(self, stream: str, number: int) -> bool:
        """Whether a transaction that isn't in the ranges is surely later than all that was read
        since records were missing.
        """
        if self._whole:
            return True
        return self._last is not None and number > self._since_missing.get(stream, number)

    def pass_missing(self) -> None:
        """Note that records are missing here."""
        self._load(self.met().before_missing())

    def proves(self, gtid: Gtid, position: Position) -> bool:
        """Whether each row that lacks this change is below its position."""
        at = self._place(gtid)
        if at is None:
            return False
        part, last = self._ranges[at], self._last
        is_last = last is not None and _same(gtid, last)
        if last is not None and is_last and position < last.position:
            return False
        # A range of several streams has the position of its own last transaction, too.
        return position > part.above or (is_last and len(part.numbers) > 1)

    def is_surely_read(self, gtid: Gtid, position: Position, high: Position) -> bool:
        """Whether no row lacks this change, unless it waits as a dead letter; `high` is the highest
        position.
        """
        at, last = self._place(gtid), self._last
        if at is None:
            return False
        if last is not None and _same(gtid, last):
            return last.position.offset > 0 and last.position <= position <= high
        part, just_below = self._ranges[at], Position(position.file, position.offset - 1)
        # A transaction that was read last has what is below its first change (`split_off`).
        is_first = part.numbers.get(gtid.stream) == (gtid.number, gtid.number + 1)
        known = part.above == BEFORE_ALL or (is_first and part.above == just_below)
        return known and len(part.numbers) == 1

    def note(self, gtid: Gtid, position: Position, high: Position) -> None:
        """Note a change that is read. It is proven, or its position is above `high`, the highest
        one before it.
        """
        last, rises = self._last, position > high
        if last is not None and _same(gtid, last) and position.file == last.position.file:
            self._cover(gtid, position, rises=rises)
            return
        if self._place(gtid) is None:
            first = self._append(gtid, position, high)
        else:
            first = self._enter(gtid, position)
            self._cover(gtid, position, rises=rises)
        self._last = Transaction(gtid.stream, gtid.number, first, gtid.executed)
        highest = self._since_missing.get(gtid.stream, gtid.number)
        self._since_missing[gtid.stream] = max(gtid.number, highest)
        self._ranges = joined(self._ranges)

    def _place(self, transaction: Gtid | Transaction) -> int | None:
        """Return the number of the range that holds a transaction, if there is one."""
        stream, number = transaction.stream, transaction.number
        found = (at for at, part in enumerate(self._ranges) if part.holds(stream, number))
        return next(found, None)

    def _enter(self, gtid: Gtid, position: Position) -> Position:
        """Go to a transaction in the ranges, one of which ends behind it then. Return the position
        from which on its changes count.
        """
        last = self._last
        if last is not None:
            self._split_behind(last)
        at, left = self._place(gtid), None if last is None else self._place(last)
        if at is None or left is None or left >= at:
            self._ranges = split_off(self._ranges, last)
            self._split_behind(gtid)
            several = at is not None and len(self._ranges[at].numbers) > 1
            return position if several else Position(position.file, 0)
        self._split_behind(gtid)
        is_split = len(self._ranges[at].numbers) == 1
        for passed in range(left + 1, at + 1 if is_split else at):
            self._ranges[passed] = replace(self._ranges[passed], above=BEFORE_ALL)
        return position

    def _split_behind(self, transaction: Gtid | Transaction) -> None:
        at = self._place(transaction)
        if at is not None:
            before, behind = self._ranges[at].split(transaction.stream, transaction.number + 1)
            self._ranges[at : at + 1] = [*before, *behind]

    def _cover(self, gtid: Gtid, position: Position, *, rises: bool) -> None:
        """Keep a change's position for all later numbers; if it is a new highest one, to forget
        them is the same.
        """
        self._split_behind(gtid)
        at = self._place(gtid)
        if at is None:
            return
        part, behind = self._ranges[at], self._ranges[at + 1 :]
        if not rises:
            if len(part.numbers) > 1:  # any of them may be later
                self._ranges[at] = part.raised(position)
            self._ranges[at + 1 :] = [later.raised(position) for later in behind]
            return
        if behind or len(part.numbers) > 1:
            own = GtidNumbers(part.numbers[gtid.stream].start, gtid.number + 1)
            self._ranges[at:] = [replace(part, numbers={gtid.stream: own})]
            self._since_missing = {gtid.stream: gtid.number}

    def _append(self, gtid: Gtid, position: Position, high: Position) -> Position:
        """Take a transaction that isn't in the ranges, at a new highest position. Return the one
        from which on its changes count.
        """
        follows = self._follows_last(gtid)
        if not follows:
            self._ranges = split_off(self._ranges, self._last)
            self._whole = self._whole and not gtid.executed
            if gtid.number <= self._since_missing.get(gtid.stream, -1):
                self._since_missing = {}
        del self._ranges[self._count_of_earlier(gtid, follows=follows) :]
        own = [part.numbers[gtid.stream] for part in self._ranges if gtid.stream in part.numbers]
        start = own[-1].stop if own else 0
        if follows and not self._whole:  # what was read before may have been forgotten
            start = max(start, self._since_missing.get(gtid.stream, -1) + 1)
        above, whole = (BEFORE_ALL, self._whole) if follows else (max(high, _FIRST), False)
        numbers = start, gtid.number + 1
        self._ranges.append(GtidRange.of(gtid.stream, numbers, above, from_start=whole))
        return position if follows else Position(position.file, 0)

    def _follows_last(self, gtid: Gtid) -> bool:
        """Whether a transaction that isn't in the ranges surely is the next one."""
        last = self._last
        if gtid.executed and last is not None and last.executed:
            return all(gtid.executed.get(name, -1) >= at for name, at in last.executed.items())
        if gtid.executed and self._ranges:
            known = any(gtid.stream in part.numbers for part in self._ranges)
            return known and self.follows(gtid.stream, gtid.number)
        return self.follows(gtid.stream, gtid.number)

    def _count_of_earlier(self, gtid: Gtid, *, follows: bool) -> int:
        """Return how many ranges are surely before a transaction that is in none of them."""
        own = [at for at, part in enumerate(self._ranges) if gtid.stream in part.numbers]
        if own and gtid.number < self._ranges[own[-1]].numbers[gtid.stream].stop:
            return 0
        if follows and self._whole:
            return len(self._ranges)
        if follows:
            last = None if self._last is None else self._place(self._last)
            return 1 + max([*own, -1 if last is None else last])
        if gtid.executed:
            return 1 + max(own, default=-1)
        whole = [at for at, part in enumerate(self._ranges) if part.from_start]
        return 1 + max([*own, *whole], default=-1)


def _same(one: Gtid, other: Transaction) -> bool:
    return one.number == other.number and one.stream == other.stream


def joined(ranges: list[GtidRange]) -> list[GtidRange]:
    """Join neighbours that say the same, and the oldest ones if there are too many."""
    kept: list[GtidRange] = []
    for part in ranges:
        if kept and _say_the_same(kept[-1], part):
            part = _union(kept.pop(), part)
        kept.append(part)
    while len(kept) > RANGES_MAX:
        # Where positions rise with numbers it costs nothing to keep a position for what is behind
        # missing records, too.
        older = range(RANGES_MAX // 2)
        at = next((at for at in older if kept[at].above > kept[at + 1].above), 0)
        kept[at : at + 2] = [_union(kept[at], kept[at + 1])]
    return kept


def _say_the_same(one: GtidRange, other: GtidRange) -> bool:
    alike = (one.above, one.from_start) == (other.above, other.from_start)
    if not alike or len(one.numbers) > 1 or one.numbers.keys() != other.numbers.keys():
        return False
    return all(numbers.stop == other.numbers[name].start for name, numbers in one.numbers.items())


def _union(one: GtidRange, other: GtidRange) -> GtidRange:
    numbers = dict(one.numbers)
    for name, (start, stop) in other.numbers.items():
        own = numbers.get(name)
        adjoins = own is not None and own.stop == start
        numbers[name] = GtidNumbers(own.start if own and adjoins else start, stop)
    above = max(one.above, other.above)
    return GtidRange(numbers, above, one.from_start and other.from_start)
