"""Compaction catches up from any backlog, if the deltas that come take less time than passes.

A model of one compactor: each batch adds a delta to every table, and a compaction takes a fixed
time, and some time for each delta. Tables are chosen by the service's own rule. With n tables, r
deltas a second, f seconds for a compaction and d seconds for a delta, a round over all tables takes
at most n f + r d times the round before. So rounds tend to at most n f / (1 - r d), whatever waited
at first.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.compaction import (
    CompactionPolicy,
    TableBacklog,
    next_tables,
    pressure,
)

SECOND = 1000
ROUNDS = 40


class Model:
    """Tables that get a delta each per trigger; times in milliseconds."""

    def __init__(
        self, waiting: list[int], trigger: int, fixed: int, each: float, deltas_max: int
    ) -> None:
        self.trigger, self.fixed, self.each = trigger, fixed, each
        # Nothing but deltas and age make a table due.
        self.policy = CompactionPolicy(
            deltas_max=deltas_max, age_seconds_max=1800, ratio_max=1e9, changes_per_page_min=1e9
        )
        self.now, self.batches = 1, 0
        self.arrivals = {f"table {at}": [0] * count for at, count in enumerate(waiting)}

    @property
    def waiting(self) -> int:
        return sum(len(found) for found in self.arrivals.values())

    def turn(self, most: int | None = None) -> None:
        """Compact the table that is next, of it at most so many deltas; else wait for a batch."""
        pressures = {
            name: pressure(
                TableBacklog(len(found), len(found), oldest_ms=EpochMs(min(found, default=0))),
                self.policy,
                EpochMs(self.now),
            )
            for name, found in self.arrivals.items()
        }
        chosen = next_tables(pressures, (), 1)
        if not chosen:
            self._pass(self.trigger)
            return
        found = self.arrivals[chosen[0]]
        taken = len(found) if most is None else min(most, len(found))
        self._pass(self.fixed + round(self.each * taken))
        del found[:taken]

    def _pass(self, milliseconds: int) -> None:
        self.now += milliseconds
        while (self.batches + 1) * self.trigger <= self.now:
            self.batches += 1
            for found in self.arrivals.values():
                found.append(self.batches * self.trigger)


@given(
    waiting=st.lists(st.integers(0, 300), min_size=1, max_size=8),
    fixed=st.integers(1, 3 * SECOND),
    share=st.floats(0, 0.6),
    deltas_max=st.integers(1, 20),
)
def test_whatever_waits_at_first_the_backlog_is_soon_bounded(
    waiting: list[int], fixed: int, share: float, deltas_max: int
) -> None:
    """`share` is r d: the part of the time that the deltas take."""
    tables, trigger = len(waiting), 5 * SECOND
    model = Model(waiting, trigger, fixed, share * trigger / tables, deltas_max)
    for _ in range(ROUNDS * tables):
        model.turn()
    round_ms = tables * fixed / (1 - share)
    # What comes in two rounds, what isn't due yet, and what one batch brings at once.
    most = tables * (2 * round_ms / trigger + deltas_max + 2)
    for _ in range(2 * tables):
        assert model.waiting <= most
        model.turn()


def test_a_bound_on_the_deltas_of_a_compaction_would_let_the_backlog_grow() -> None:
    """The same load, with which a compactor that takes everything keeps up."""
    unbounded, bounded = (Model([0] * 8, SECOND, 500, 20, 4) for _ in range(2))
    for _ in range(600):
        unbounded.turn()
        bounded.turn(most=4)
    assert unbounded.waiting < 150
    assert bounded.waiting > 300
