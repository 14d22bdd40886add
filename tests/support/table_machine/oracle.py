"""The invariants, compared with the events applied one by one."""

from __future__ import annotations

from hypothesis.stateful import invariant, rule

from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.shadow_store import close_shadow, open_shadows
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.orphans import Orphans
from tests.support.delta_feed import require_delta_feed
from tests.support.simulated import (
    require_finished,
    require_floor,
    require_pins,
    require_tidy,
    require_true,
    rows_of,
    truth_for,
)
from tests.support.table_machine.state import MachineState

ATTEMPTS_MAX = 20


class Oracle(MachineState):
    """After each step the table is what its source says, at its offsets."""

    @rule()
    def finish(self) -> None:
        """Read and compact all there is: both views are the truth then."""
        for _ in range(ATTEMPTS_MAX):
            if not isinstance(ended := self.driver.attempt(), Conflict):
                break
        assert ended is CommitOutcome.DONE, ended
        if self.driver.table.snapshot is None:
            return
        for _ in range(ATTEMPTS_MAX):
            if not self.driver.table.manifest.deltas:
                break
            self.driver.compact()
        else:
            raise AssertionError("compaction never comes to an end")
        require_finished(self.source, self.driver)
        if isinstance(self.lake, LocalStore):
            require_delta_feed(self.bare, self.lake.root / self.driver.name.path)
        for shadow in open_shadows(self.bare):
            close_shadow(self.bare, shadow)
        self.filling = None
        self.bring_the_mirror_to_its_end()
        self.clock.advance(26 * 3600)
        self.vacuum_now()
        table = self.driver.table
        assert table.snapshot is not None
        orphans = Orphans(table.store, table.commit, table.generation)
        orphans.sweep(table.snapshot, EpochMs(self.clock.now_ms() - 24 * 3_600_000), at_once=True)
        require_pins(self.source, self.bare)
        require_tidy(self.bare)

    @invariant()
    def the_table_is_true(self) -> None:
        if self.version < 0 and not self.born():
            return
        table = Table(self.bare)
        snapshot = table.snapshot
        assert snapshot.manifest.parked is None, snapshot.manifest.parked
        assert table.version >= self.version
        assert snapshot.manifest.generation >= self.generation
        self.generation = snapshot.manifest.generation
        assert all(table.offsets.get(at, 0) >= was for at, was in self.offsets.items())
        if table.version == self.version:
            return
        self.version, self.offsets = table.version, dict(table.offsets)
        self.timestamps[table.version] = snapshot.timestamp_ms
        require_true(self.source, self.bare)
        require_floor(self.source, self.bare)
        require_pins(self.source, self.bare)
        self.seen[table.version] = (rows_of(self.bare), rows_of(self.bare, View.READ_OPTIMISED))
        if self.restored is not None:
            assert self.seen[table.version] == self.seen[self.restored]
            self.restored = None
        if not snapshot.manifest.deltas:
            assert self.seen[table.version][1] == truth_for(self.source, table)

    def teardown(self) -> None:
        try:
            self.trap.disarm()
            self.restart_driver()
            self.finish()
        finally:
            self.close_lake()
