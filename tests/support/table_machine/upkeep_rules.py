"""Rules about a table's upkeep between batches: compaction, merges, purges, vacuum, the log."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lakesplice.errors import FencedError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.stores import log_keeper
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.testing.faulty_store import How
from tests.support.table_machine.state import FEW, RETENTION_SECONDS, MachineState
from tests.support.traps import CALLS, CRASHES, FAULTS

ALL_THAT_IS_DELETED = 1 << 60
CHECKPOINT_EVERY = 2
CURVES = st.sampled_from([("n",), ("n", "id")])


class UpkeepRules(MachineState):
    """Each service of the table runs, fails, or is planned now and committed later."""

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def compact(self) -> None:
        self.driver.compact()

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(on=st.sampled_from([True, True, False]))
    def switch_the_change_feed(self, on: bool) -> None:
        self.driver.table.set_change_feed(on=on)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS, how=FAULTS | CRASHES)
    def compact_and_fail(self, calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        self.guarded(self.driver.compact)

    @precondition(lambda self: self.driver.table.manifest.files)
    @rule(first=FEW)
    def plan_a_compaction(self, first: int) -> None:
        paths = sorted(self.driver.table.manifest.files)[first % 3 :]
        intent = self.driver.plan_compaction(paths)
        if intent is not None:
            self.planned.append((self.driver, intent))

    @rule(runs_max=st.integers(2, 3))
    def merge_the_index(self, runs_max: int) -> None:
        self.driver.merge_runs(runs_max)

    @rule(files_max=st.integers(2, 3))
    def merge_the_files(self, files_max: int) -> None:
        self.driver.merge_files(files_max)

    @rule(calls=CALLS, how=FAULTS | CRASHES)
    def merge_the_files_and_fail(self, calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        self.guarded(lambda: self.driver.merge_files(2))

    @rule()
    def plan_a_file_merge(self) -> None:
        intent = self.driver.plan_file_merge(2)
        if intent is not None:
            self.planned.append((self.driver, intent))

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def purge(self) -> None:
        self.driver.purge(ALL_THAT_IS_DELETED)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS, how=FAULTS | CRASHES)
    def purge_and_fail(self, calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        self.guarded(lambda: self.driver.purge(ALL_THAT_IS_DELETED))

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def plan_a_purge(self) -> None:
        intent = self.driver.plan_purge(ALL_THAT_IS_DELETED)
        if intent is not None:
            self.planned.append((self.driver, intent))

    @precondition(lambda self: self.driver.table.manifest.files)
    @rule(by=CURVES, whole=st.booleans())
    def cluster(self, by: tuple[str, ...], *, whole: bool) -> None:
        self.driver.cluster(by, whole=whole)

    @precondition(lambda self: self.driver.table.manifest.files)
    @rule(by=CURVES, calls=CALLS, how=FAULTS | CRASHES)
    def cluster_and_fail(self, by: tuple[str, ...], calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        self.guarded(lambda: self.driver.cluster(by, whole=True))

    @precondition(lambda self: self.driver.table.manifest.files)
    @rule(by=CURVES)
    def plan_a_clustering(self, by: tuple[str, ...]) -> None:
        intent = self.driver.plan_clustering(by, whole=True)
        if intent is not None:
            self.planned.append((self.driver, intent))

    @rule()
    def plan_an_index_merge(self) -> None:
        intent = self.driver.plan_run_merge(2)
        if intent is not None:
            self.planned.append((self.driver, intent))

    @precondition(lambda self: self.planned)
    @rule(at=FEW)
    def commit_what_was_planned(self, at: int) -> None:
        driver, intent = self.planned.pop(at % len(self.planned))
        try:
            outcome = driver.table.commit(intent)
        except FencedError:
            assert Table(self.bare).snapshot.manifest.generation > intent.generation
            return
        assert isinstance(outcome, Committed | Conflict)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(hours=st.integers(0, 2))
    def see_to_the_log(self, hours: int) -> None:
        self.clock.advance(hours * 3600)
        table = self.driver.table
        if self.maintenance is None:
            self.maintenance = Maintenance(
                self.bare,
                log_keeper(self.bare),
                self.clock,
                checkpoint_every=CHECKPOINT_EVERY,
                retention_seconds=RETENTION_SECONDS,
                expiry=Expiry(table.store, table.commit, table.generation),
            )
        assert table.snapshot is not None
        if self.maintenance.care(table.snapshot) is not None:
            moment = self.clock.now_ms() - int(RETENTION_SECONDS * 1000)
            self.expired_ms = max(self.expired_ms, moment)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(hours=st.integers(0, 2))
    def vacuum(self, hours: int) -> None:
        self.clock.advance(hours * 3600)
        self.vacuum_now()

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS, how=FAULTS | CRASHES)
    def vacuum_and_fail(self, calls: int, how: How) -> None:
        self.clock.advance(3600)
        self.trap.arm(calls, how)
        self.guarded(self.vacuum_now)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(at_once=st.booleans(), hours=st.integers(0, 30))
    def sweep(self, at_once: bool, hours: int) -> None:
        self.clock.advance(hours * 3600)
        table, moment = self.driver.table, self.clock.now_ms() - 24 * 3_600_000
        assert table.snapshot is not None
        orphans = Orphans(table.store, table.commit, table.generation)
        orphans.sweep(table.snapshot, EpochMs(moment), at_once=at_once)
