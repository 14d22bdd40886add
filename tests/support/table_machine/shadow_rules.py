"""Rules about a table's shadow: it is filled from the source, and replaces the table."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    is_past_reads,
    swap_into,
    swapped_version,
    unready,
)
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.shadow_store import close_shadow
from lakesplice.testing.faulty_store import FaultyStore, How
from tests.support.shadows import Filling
from tests.support.table_machine.state import MachineState
from tests.support.traps import CALLS, CRASHES, FAULTS

ATTEMPTS_MAX = 20


class ShadowRules(MachineState):
    """Chunks are read, the shadow is fed, and the driver lets it become the table."""

    @rule()
    def begin_a_shadow(self) -> None:
        if self.filling is None:
            self.shadows += 1
            self.filling = self.filled()

    def filled(self) -> Filling:
        """Who fills the shadow; a new one continues where the store has it."""
        self.drivers += 1
        lake = FaultyStore(self.clocked(), self.trap.faults())
        return Filling(
            self.source,
            lake,
            self.clock,
            100_000 + self.drivers,
            bounds=(0, 1),
            shadow=str(self.shadows),
        )

    @precondition(lambda self: self.filling is not None)
    @rule(chunk=st.integers(0, 2), calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def read_a_chunk(self, chunk: int, calls: int, how: How | None) -> None:
        filling = self.filling
        assert filling is not None
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: filling.commit(chunk, filling.read(chunk)))
        if how is not None:  # whoever filled it may have died
            self.filling = self.filled()

    @precondition(lambda self: self.filling is not None)
    @rule(partition=st.none() | st.integers(0, 1))
    def feed_the_shadow(self, partition: int | None) -> None:
        assert self.filling is not None
        driver, ends = self.filling.driver, self.source.topic.ends
        if partition is not None:
            ends = {**driver.table.next_offsets((0, 1)), partition: ends[partition]}
        assert driver.batch(ends) is CommitOutcome.DONE

    @precondition(lambda self: self.filling is not None)
    @rule()
    def compact_the_shadow(self) -> None:
        assert self.filling is not None
        self.filling.driver.compact()

    @precondition(lambda self: self.filling is not None)
    @rule(key=st.integers(0, 2), calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def let_the_shadow_become_the_table(self, key: int, calls: int, how: How | None) -> None:
        """Read and feed what is missing, and swap, once a later change is in each partition."""
        filling = self.filling
        assert filling is not None
        filling.fill()
        for partition in (0, 1):
            # A statement that leaves its row as it was is no event.
            puts = (self.source.put(key) for _ in range(ATTEMPTS_MAX))
            self.send(next(filter(None, puts)), partition)
        filling.driver.batch()
        if self.driver.table.snapshot is None:
            return
        ended = self.driver.attempt()
        if isinstance(ended, Conflict):  # a zombie was quicker
            return
        assert ended is CommitOutcome.DONE, ended
        assert is_past_reads(filling.driver.table.manifest)
        assert unready(filling.driver.table.manifest, self.driver.table.manifest) == ""
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: self.swap(filling))
        if swapped_version(self.bare, filling.plan) is not None:
            close_shadow(self.bare, filling.shadow)
            self.filling = None

    def swap(self, filling: Filling) -> None:
        table, shadow = self.driver.table, filling.driver.table.snapshot
        assert table.snapshot is not None
        assert shadow is not None
        swap_into(
            table.store,
            shadow,
            table.generation,
            table.snapshot,
            lambda intent: table.commit(intent, {SHADOW_PARAMETER: filling.shadow}),
            table.retries(),
        )
