"""What proves that a change at a lower position is a repetition.

A connector sends its source's changes in their order. It may go back and send changes again, from
any server, at higher or lower positions. A change at a lower position may be taken as a repetition
only if it need not be applied any more: its row has this change, or a later one of the source, and
has it at a position that any server's later change is above, or in whose place a new epoch begins.

**The invariant**: a number counts as met only if the partition has read its change, and if that
change isn't later, in the source's order, than the last change at a new highest position. For that
one and all before it were applied where they stand; what is later may have been covered by an
earlier change that was applied again at a higher position.

Numbers of a stream rise with the source's order. So these rules keep the invariant:

    A change at a new highest position under a number above the highest one of its stream goes
    forward: its number counts, too, and so do those between, which other partitions have.

    A change at a new highest position under any other number, or in a stream of which nothing is
    known since records were missing, may be one that is applied again. Its own stream counts up to
    it. Of other streams nothing counts until they go forward: which of their changes are earlier
    isn't known.

    Where records are missing between two that were read, all is forgotten. The broker's compaction
    removes a record only if a later one has its key, but that one may be an older change that is
    sent again, and what is removed may come again at lower positions.

    Where an epoch begins, all is forgotten: positions of before say nothing about those in it.

    What is read again (after an operator went back) is applied under its former position, over
    which other changes may have been applied. It changes nothing of what counts.

A transaction has many changes under one number. A connector may continue it at another server. So
of the last transaction a change counts only at or above the first position of it that was read: a
transaction is never at two places of one server, nor in two files.

The opposite error costs less: a repetition that isn't recognised begins an epoch, in which rows
show an older state until the connector has sent the rest again. Nothing is lost by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from lakesplice.model.position import Position
from lakesplice.model.progress.met_gtids import GtidNumbers, MetGtids, Transaction

Gtid = TypeVar("Gtid")


class Memory(Generic[Gtid]):
    """What counts as met, followed change by change; not thread-safe."""

    def __init__(self, met: MetGtids) -> None:
        self._numbers = dict(met.numbers)
        self._whole = met.whole
        self._last = met.last

    def met(self) -> MetGtids:
        """Return what counts as met now."""
        return MetGtids(dict(self._numbers), self._whole, self._last)

    def forget(self) -> None:
        """Let nothing count any more: records are missing."""
        self._numbers, self._whole, self._last = {}, False, None

    def proves(self, gtid: Gtid, position: Position) -> bool:
        """Whether a change at this lower position is proven to be a repetition by its GTID."""
        raise NotImplementedError

    def rise(self, gtid: Gtid, position: Position) -> None:
        """Note a change at a new highest position."""
        raise NotImplementedError

    def _continues(self, position: Position) -> bool:
        """Whether a change at this position may belong to the last transaction."""
        return self._last is not None and position.file == self._last.position.file


class SingleGtids(Memory[tuple[str, int]]):
    """Each change has one GTID: a stream and a number."""

    def proves(self, gtid: tuple[str, int], position: Position) -> bool:
        """See `Memory.proves`."""
        stream, number = gtid
        start, stop = self._numbers.get(stream, (0, 0))
        if not start <= number < stop:
            return False
        last = self._last
        is_last = last is not None and gtid == (last.stream, last.number)
        return last is None or not is_last or position >= last.position

    def rise(self, gtid: tuple[str, int], position: Position) -> None:
        """See `Memory.rise`."""
        stream, number = gtid
        last = self._last
        if last is not None and gtid == (last.stream, last.number) and self._continues(position):
            return
        met = self._numbers.get(stream)
        if met is None and self._whole:
            start = 0
        elif met is not None and number >= met.stop:
            start = met.start
        else:
            start = met.start if met is not None and met.start <= number else number
            self._numbers = {
                name: GtidNumbers(stop, stop) for name, (_, stop) in self._numbers.items()
            }
            self._whole = False
        self._numbers[stream] = GtidNumbers(start, number + 1)
        self._last = Transaction(stream, number, position)


class GtidSets(Memory[Mapping[str, int]]):
    """Each change has the set of all GTIDs that were executed up to it: per stream the highest
    number. So a set shows by itself that a connector went back.
    """

    def proves(self, gtid: Mapping[str, int], position: Position) -> bool:
        """See `Memory.proves`."""
        unmet = GtidNumbers(0, 0)
        if not gtid or any(
            number >= self._numbers.get(name, unmet).stop for name, number in gtid.items()
        ):
            return False
        last = self._last
        is_last = not self._is_behind(gtid)
        return self._covers(gtid) and (last is None or not is_last or position >= last.position)

    def rise(self, gtid: Mapping[str, int], position: Position) -> None:
        """See `Memory.rise`."""
        if not gtid:
            return
        is_new = any(
            name not in self._numbers or number >= self._numbers[name].stop
            for name, number in gtid.items()
        )
        is_behind = self._is_behind(gtid)
        if not is_new and not is_behind and self._continues(position):
            return
        known = self._numbers if self._covers(gtid) and (self._numbers or self._whole) else None
        met = {
            name: GtidNumbers(
                number if known is None else known.get(name, (0, 0))[0],
                number + 1,
            )
            for name, number in gtid.items()
        }
        self._numbers = met if is_behind else {**self._numbers, **met}
        self._whole = self._whole and not is_behind
        name, number = next(iter(gtid.items()))
        self._last = Transaction(name, number, position)

    def _is_behind(self, gtid: Mapping[str, int]) -> bool:
        return any(gtid.get(name, -1) < numbers.stop - 1 for name, numbers in self._numbers.items())

    def _covers(self, gtid: Mapping[str, int]) -> bool:
        """Whether a set is not below the first that counts."""
        return all(
            not start or gtid.get(name, -1) >= start for name, (start, _) in self._numbers.items()
        )
