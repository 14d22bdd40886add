"""What counts as met, checked after each change that one partition reads: no change is taken for
proven if its row would lose it.

`test_failover_laws.py` compares whole tables at the end of a history. Here the invariant of
`planning/sources/met_gtids.py` itself is checked, at each step and for each change at each server,
so that a fault shows in the step that made it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.met_gtids import NOTHING_MET, MetGtids
from lakesplice.planning.sources.met_gtids import Gtid, Memory

KEYS = 3
# Per seed. Values that Hypothesis draws one by one are too rarely the long lives that show faults.
LIVES = 25
_TRANSACTIONS_PER_FILE = 3


class Form(Enum):
    """How a source writes GTIDs: one stream of all writers, one per writer, or sets."""

    ONE_STREAM = auto()
    STREAM_PER_WRITER = auto()
    SETS = auto()


class Change(NamedTuple):
    """One row's change: its transaction, its place in that, its key and its GTID."""

    transaction: int
    row: int
    key: int
    gtid: Gtid


@dataclass(frozen=True)
class Life:
    """What is drawn: the changes in the source's order, how far ahead each server's binlog is, and
    how often records are missing and the connector goes back.
    """

    changes: Sequence[Change]
    lead: Sequence[int]
    missing: float
    jumping: float

    @classmethod
    def drawn(cls, chance: Random, *, servers: int, writers: int) -> Life:
        """Draw a life. A GTID in sets has all that was executed up to it."""
        form = chance.choice(list(Form))
        transactions = [
            (
                chance.randrange(writers),
                chance.choices(range(KEYS), k=chance.choice((1, 1, 1, 2, 3))),
            )
            for _ in range(chance.randint(3, 14))
        ]
        lead = [
            chance.choice((chance.randint(0, 3), chance.randint(0, 30))) for _ in range(servers)
        ]
        missing = chance.choice((0, 0.1, 0.3, 0.6))
        return cls(changes_of(form, transactions), lead, missing, chance.choice((0.05, 0.15, 0.3)))


def changes_of(form: Form, transactions: Sequence[tuple[int, list[int]]]) -> list[Change]:
    """Return the changes in the source's order."""
    changes: list[Change] = []
    numbers: Counter[str] = Counter()
    for number, (writer, keys) in enumerate(transactions):
        stream = "0" if form is Form.ONE_STREAM else f"u{writer}"
        numbers[stream] += 1
        gtid = (
            Gtid.of_set(dict(sorted(numbers.items())))
            if form is Form.SETS
            else Gtid(stream, numbers[stream])
        )
        changes += [Change(number, row, key, gtid) for row, key in enumerate(keys)]
    return changes


class Partition:
    """A partition's memory, and the rows as the changes that were read leave them."""

    def __init__(self, changes: Sequence[Change], lead: Sequence[int]) -> None:
        self._changes, self._lead = changes, lead
        self._memory = Memory(MetGtids())
        self._high = BEFORE_ALL
        self._rows: dict[int, tuple[Position, int]] = {}
        self.epochs = 0

    def place(self, at: int, server: int) -> Position:
        """Return the position that a server gives a change; its binlog has a lead."""
        transaction, row, *_ = self._changes[at]
        file, nth = divmod(transaction + self._lead[server], _TRANSACTIONS_PER_FILE)
        return Position(file, 100 * nth + row + 4)

    def pass_missing(self) -> None:
        """Pass over records that are missing."""
        self._memory.pass_missing()

    def read(self, at: int, server: int) -> None:
        """Read a change as a server sends it. Rows of former epochs are below all that follows."""
        change, position = self._changes[at], self.place(at, server)
        if position <= self._high and not self._memory.proves(change.gtid, position):
            self.epochs += 1
            self._memory, self._high, self._rows = Memory(NOTHING_MET), BEFORE_ALL, {}
        self._memory = Memory(self._memory.met())  # as from one batch to the next
        self._memory.note(change.gtid, position, self._high)
        self._high = max(self._high, position)
        if change.key not in self._rows or position > self._rows[change.key][0]:
            self._rows[change.key] = position, at

    def require_nothing_lost(self) -> None:
        """Check all changes that a row lacks, as each server would send them now.

        Left out are changes of the transaction that the row is from: docs/limits.md has what a
        connector that continues it at another server can cost.
        """
        for at, change in enumerate(self._changes):
            has, newest = self._rows.get(change.key, (BEFORE_ALL, at))
            if newest >= at or self._changes[newest].transaction == change.transaction:
                continue
            for server in range(len(self._lead)):
                position = self.place(at, server)
                lost = position <= has and self._memory.proves(change.gtid, position)
                assert not lost, f"{change} at {position} is lost: its row is at {has}"


def live(life: Life, chance: Random) -> int:
    """Read all changes, going back by chance; return how many epochs began."""
    partition = Partition(life.changes, life.lead)
    at = server = 0
    was_missing = False
    while at < len(life.changes):
        if chance.random() < life.jumping:
            at = max(0, at - chance.randint(0, 8))
            server = chance.choice((server, chance.randrange(len(life.lead))))
        if chance.random() < life.missing:
            was_missing = True
        else:
            if was_missing:
                partition.pass_missing()
            was_missing = False
            partition.read(at, server)
            partition.require_nothing_lost()
        at += 1
    return partition.epochs


@given(st.integers(0, 1 << 64))
def test_no_change_that_its_row_lacks_is_taken_for_a_repetition(seed: int) -> None:
    chance = Random(seed)
    for _ in range(LIVES):
        servers, writers = chance.choice((1, 2, 2, 3)), chance.choice((1, 1, 2, 3))
        live(Life.drawn(chance, servers=servers, writers=writers), chance)


@pytest.mark.slow
@given(st.integers(0, 1 << 64))
def test_one_server_with_one_writer_begins_no_epoch_whatever_is_missing(seed: int) -> None:
    chance = Random(seed)
    for _ in range(LIVES):
        assert not live(Life.drawn(chance, servers=1, writers=1), chance)
