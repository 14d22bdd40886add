"""A table, its driver and whatever can happen to them, against the events applied one by one.

A failure is printed as the steps that lead to it, with the line that repeats them;
`--hypothesis-seed` repeats a whole run.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakesplice.errors import (
    FencedError,
    MissingFileError,
    StorageError,
    UsageError,
    VersionNotFoundError,
)
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import AnyStore, log_keeper
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Intent
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.table.upkeep.pins import pin, unpin
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Crash, FaultyStore, How
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.clocked import ClockedStore
from tests.support.drawing import examples
from tests.support.simulated import (
    SMALL,
    Rows,
    Source,
    driver_of,
    memory_folder,
    require_finished,
    require_floor,
    require_pins,
    require_tidy,
    require_true,
    row,
    rows_in,
    rows_of,
    truth_for,
)
from tests.support.traps import CALLS, CRASHES, FAULTS, Trap

KEYS = 3
COLUMNS_MAX = 2
RETENTION_SECONDS = 3600.0
ALL_THAT_IS_DELETED = 1 << 60
CHECKPOINT_EVERY = 2
ATTEMPTS_MAX = 20

PARTITIONS = st.integers(0, 1)
FEW = st.integers(0, 5)


def restored(table: Table) -> int | None:
    """The version that the open one restored, if it did."""
    info = next(table.history()).info
    return info.metrics["version"] if info.operation == "RESTORE" else None


class TableMachine(RuleBasedStateMachine):
    """The source writes, the topic may repeat itself, drivers come and go, and the table holds."""

    def __init__(self) -> None:
        super().__init__()
        self.source = Source()
        self.clock = FixedClock()
        self.lake = self.open_lake()
        self.trap = Trap()
        self.drivers = 0
        self.pin_entropy = SeededEntropy(1_000_000)
        self.driver = self.new_driver()
        self.bare = self.lake.within(self.driver.name.path)
        self.planned: list[tuple[SimulatedDriver, Intent]] = []
        self.zombies: list[SimulatedDriver] = []
        self.maintenance: Maintenance | None = None
        self.snapshot_events = [0, 0]
        self.offsets: dict[int, int] = {}
        self.version = -1
        self.generation = 0
        self.expired_ms = 0
        self.timestamps: dict[int, int] = {}
        self.seen: dict[int, tuple[Rows, Rows]] = {}
        self.readers: list[Table] = []
        self.restored: int | None = None

    def open_lake(self) -> AnyStore:
        """An empty lake, here on a disk."""
        return LocalStore(tempfile.mkdtemp(dir=memory_folder()))

    def close_lake(self) -> None:
        """Leave nothing of the lake."""
        assert isinstance(self.lake, LocalStore)
        shutil.rmtree(self.lake.root, ignore_errors=True)

    def clocked(self) -> Store:
        """The lake, with files as old as our clock says."""
        assert isinstance(self.lake, LocalStore)
        return ClockedStore(self.lake.root, self.clock)

    def new_driver(self) -> SimulatedDriver:
        self.drivers += 1
        lake = FaultyStore(self.clocked(), self.trap.faults())
        return driver_of(
            self.source, lake, generation=self.drivers, seed=self.drivers, clock=self.clock
        )

    def send(self, events: list[Event], partition: int) -> None:
        self.source.topic.append(partition, events)

    def guarded(self, act: Callable[[], Any]) -> Any:
        """Do something that a fault may break off; a crash leaves a new driver."""
        try:
            return act()
        except Crash:
            self.start_anew()
        except StorageError:
            pass
        finally:
            self.trap.disarm()
        return None

    def start_anew(self) -> None:
        self.trap.disarm()
        self.driver = self.new_driver()
        self.planned, self.maintenance = [], None

    # The source

    @initialize(rows=FEW, partition=PARTITIONS)
    def read_a_snapshot(self, rows: int, partition: int) -> None:
        self.source.database.load(SMALL.name, [row(key, key) for key in range(rows)])
        events = self.source.database.snapshot()
        self.send(events, partition)
        self.snapshot_events[partition] = len(events)

    @rule(rows=st.lists(st.tuples(st.integers(0, KEYS - 1), PARTITIONS), min_size=1, max_size=6))
    def put(self, rows: list[tuple[int, int]]) -> None:
        for key, partition in rows:
            self.send(self.source.put(key), partition)

    @rule(key=st.integers(0, KEYS - 1), first=PARTITIONS, count=st.integers(2, 3))
    def change_a_row_on_both_partitions(self, key: int, first: int, count: int) -> None:
        for number in range(count):
            self.send(self.source.put(key), (first + number) % 2)

    @precondition(lambda self: self.source.keys)
    @rule(at=FEW, partition=PARTITIONS)
    def delete(self, at: int, partition: int) -> None:
        keys = self.source.keys
        self.send(self.source.delete(keys[at % len(keys)]), partition)

    @precondition(lambda self: self.source.keys)
    @rule(at=FEW, gone=PARTITIONS, come=PARTITIONS)
    def change_a_key(self, at: int, gone: int, come: int) -> None:
        keys = self.source.keys
        free = next(key for key in range(len(keys) + 1) if key not in keys)
        delete, tombstone, create = self.source.move(keys[at % len(keys)], free)
        self.send([delete, tombstone], gone)
        self.send([create], come)

    @rule(count=FEW, origin=PARTITIONS, partition=PARTITIONS)
    def send_the_last_again(self, count: int, origin: int, partition: int) -> None:
        end = self.source.topic.ends[origin]
        start = max(self.snapshot_events[origin], end - count)
        self.send(list(self.source.topic.events(origin, start)), partition)

    @precondition(lambda self: len(self.source.database.tables[0].columns) < 3 + COLUMNS_MAX)
    @rule(default=st.sampled_from([None, 5]))
    def add_a_column(self, default: int | None) -> None:
        width = len(self.source.database.tables[0].columns)
        self.source.add_column(f"added{width}", default)

    # The driver

    def ends(self, driver: SimulatedDriver, ahead: tuple[int, int]) -> dict[int, int]:
        here = driver.table.next_offsets((0, 1))
        return {at: min(here[at] + ahead[at], end) for at, end in self.source.topic.ends.items()}

    def born(self) -> bool:
        return self.bare.size("_delta_log/00000000000000000000.json") is not None

    def stood(self) -> dict[int, int]:
        """Where the table stands on the store; another driver may have brought it further."""
        offsets = Table(self.bare).offsets if self.born() else {}
        return {at: offsets.get(at, 0) for at in (0, 1)}

    @rule(ahead=st.sampled_from([(9, 9), (9, 0), (0, 9)]) | st.tuples(FEW, FEW))
    def run_a_batch(self, ahead: tuple[int, int]) -> None:
        outcome = self.driver.batch(self.ends(self.driver, ahead))
        if isinstance(outcome, Conflict):  # a zombie was quicker
            assert self.zombies

    @rule(ahead=st.tuples(FEW, FEW), calls=CALLS, how=FAULTS | CRASHES)
    def run_a_batch_that_fails(self, ahead: tuple[int, int], calls: int, how: How) -> None:
        self.trap.arm(calls, how)
        self.guarded(lambda: self.driver.batch(self.ends(self.driver, ahead)))

    @rule(key=st.integers(0, KEYS - 1), first=PARTITIONS)
    def hear_of_the_later_change_first(self, key: int, first: int) -> None:
        self.driver.batch()
        here = self.driver.table.next_offsets((0, 1))
        self.send(self.source.put(key), first)
        self.send(self.source.put(key), 1 - first)
        self.driver.batch({**here, 1 - first: self.source.topic.ends[1 - first]})

    @rule(back=st.integers(-3, 3))
    def run_a_batch_from_elsewhere(self, back: int) -> None:
        here, ends = self.driver.table.next_offsets((0, 1)), self.source.topic.ends
        starts = {at: min(max(0, offset - back), ends[at]) for at, offset in here.items()}
        stood = self.stood()
        outcome = self.driver.batch(starts=starts)
        unchanged = not self.born() or Table(self.bare).version == self.version
        assert starts in (here, stood) or isinstance(outcome, Conflict) or unchanged

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def compact(self) -> None:
        self.driver.compact()

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

    @rule()
    def crash(self) -> None:
        self.start_anew()

    @rule()
    def let_a_second_driver_take_over(self) -> None:
        self.zombies.append(self.driver)
        self.driver, self.maintenance = self.new_driver(), None

    @precondition(lambda self: self.zombies)
    @rule(at=FEW, ahead=st.tuples(FEW, FEW))
    def let_a_zombie_go_on(self, at: int, ahead: tuple[int, int]) -> None:
        zombie = self.zombies[at % len(self.zombies)]
        version = self.version
        try:
            zombie.batch(self.ends(zombie, ahead))
        except FencedError:
            assert Table(self.bare).version == version
            self.zombies.remove(zombie)
        except MissingFileError:
            # It stood still for so long that what it rests on is past its retention.
            retained_from = Table(self.bare).snapshot.manifest.retention.retained_from
            assert zombie.table.version < retained_from
            self.zombies.remove(zombie)

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

    def vacuum_now(self) -> None:
        table = self.driver.table
        assert table.snapshot is not None
        moment = self.clock.now_ms() - int(RETENTION_SECONDS * 1000)
        self.expired_ms = max(self.expired_ms, moment)
        expiry = Expiry(table.store, table.commit, table.generation)
        expiry.run(table.snapshot, moment, self.clock.now_ms())

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(at_once=st.booleans(), hours=st.integers(0, 30))
    def sweep(self, at_once: bool, hours: int) -> None:
        self.clock.advance(hours * 3600)
        table, moment = self.driver.table, self.clock.now_ms() - 24 * 3_600_000
        assert table.snapshot is not None
        orphans = Orphans(table.store, table.commit, table.generation)
        orphans.sweep(table.snapshot, moment, at_once=at_once)

    def can_restore(self) -> bool:
        """A driver that is older than the table knows no version of it until its first batch."""
        return self.driver.table.snapshot is not None and len(self.seen) > 1

    @precondition(lambda self: self.can_restore())
    @rule(back=st.integers(1, 20), calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def restore(self, back: int, calls: int, how: How | None) -> None:
        versions, table = sorted(self.seen), self.driver.table
        version = versions[max(0, len(versions) - 1 - back)]
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: self.restore_now(table, version))
        newest = Table(self.bare)
        if newest.version > self.version and restored(newest) == version:
            self.offsets, self.restored = {}, version

    def restore_now(self, table: DriverTable, version: int) -> None:
        assert table.snapshot is not None
        try:
            restore(
                table.store,
                table.snapshot,
                version,
                table.commit,
                table.generation,
                retries=table.retries(),
            )
        except VersionNotFoundError:
            self.require_expired(version)
        except UsageError:
            assert version == self.version

    @precondition(lambda self: self.can_restore())
    @rule(
        name=st.sampled_from("ab"),
        back=st.integers(1, 9),
        ends=st.sampled_from([0, 0, 1, 30]),
        calls=CALLS,
        how=st.none() | FAULTS | CRASHES,
    )
    def pin(self, name: str, back: int, ends: int, calls: int, how: How | None) -> None:
        versions = sorted(self.seen)
        version = versions[max(0, len(versions) - back)]
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: self.pin_now(self.driver.table, name, version, ends))

    def pin_now(self, table: DriverTable, name: str, version: int, hours: int) -> None:
        assert table.snapshot is not None
        ends_ms = self.clock.now_ms() + hours * 3_600_000 if hours else 0
        try:
            pin(
                table.store,
                table.snapshot,
                name,
                table.commit,
                entropy=self.pin_entropy,
                retries=table.retries(),
                ends_ms=ends_ms,
                version=version,
                generation=table.generation,
            )
        except VersionNotFoundError:
            self.require_expired(version)

    @precondition(lambda self: self.driver.table.manifest.retention.pins)
    @rule(at=FEW, calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def unpin(self, at: int, calls: int, how: How | None) -> None:
        table = self.driver.table
        assert table.snapshot is not None
        pins = table.manifest.retention.pins
        name, known = pins[at % len(pins)].name, table.snapshot
        if how is not None:
            self.trap.arm(calls, how)
        with suppress(UsageError):  # a zombie's vacuum ended it
            self.guarded(
                lambda: unpin(
                    table.store,
                    known,
                    name,
                    table.commit,
                    retries=table.retries(),
                    generation=table.generation,
                )
            )

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS, how=st.none() | FAULTS | CRASHES)
    def take_anew(self, calls: int, how: How | None) -> None:
        table = self.driver.table
        assert table.snapshot is not None
        start = TopicStart(self.source.topic.topic_id, {0: 0, 1: 0})
        intent = plan_reset(table.snapshot, {table.source.topic: start}, table.generation)
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: table.commit(intent))
        newest = Table(self.bare)
        if newest.version > self.version and next(newest.history()).info.operation == "RESET":
            self.offsets = {}

    @precondition(lambda self: len(self.seen) > 1)
    @rule(back=st.integers(1, 20))
    def look_back(self, back: int) -> None:
        versions = sorted(self.seen)
        version = versions[max(0, len(versions) - 1 - back)]
        try:
            reader = Table(self.bare, version)
        except VersionNotFoundError:
            self.require_expired(version)
        else:
            self.readers.append(reader)
            self.read_on(reader)

    @precondition(lambda self: self.readers)
    @rule(at=FEW)
    def let_a_reader_go_on(self, at: int) -> None:
        self.read_on(self.readers[at % len(self.readers)])

    def read_on(self, reader: Table) -> None:
        """Whatever happened since it opened its version, a reader sees that, or that it is gone."""
        try:
            found = tuple(rows_in(reader, view) for view in View)
        except VersionNotFoundError:
            self.require_expired(reader.version)
            self.readers.remove(reader)
            return
        assert found == self.seen[reader.version]

    def require_expired(self, version: int) -> None:
        succeeded_ms = self.timestamps.get(version + 1)
        assert succeeded_ms is None or succeeded_ms < self.expired_ms

    @rule()
    def finish(self) -> None:
        """Read and compact all there is: both views are the truth then."""
        for _ in range(ATTEMPTS_MAX):
            if not isinstance(outcome := self.driver.batch(), Conflict):
                break
        else:
            raise AssertionError(f"a batch without a rival is refused again and again: {outcome}")
        if self.driver.table.snapshot is None:
            return
        for _ in range(ATTEMPTS_MAX):
            if not self.driver.table.manifest.deltas:
                break
            self.driver.compact()
        else:
            raise AssertionError("compaction never comes to an end")
        require_finished(self.source, self.driver)
        self.clock.advance(26 * 3600)
        self.vacuum_now()
        table = self.driver.table
        assert table.snapshot is not None
        orphans = Orphans(table.store, table.commit, table.generation)
        orphans.sweep(table.snapshot, self.clock.now_ms() - 24 * 3_600_000, at_once=True)
        require_pins(self.source, self.bare)
        require_tidy(self.bare)

    # What always holds

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
            self.start_anew()
            self.finish()
        finally:
            self.close_lake()


def test_a_table_is_born_by_a_zombie_and_restored_by_its_successor() -> None:
    machine = TableMachine()
    try:
        machine.read_a_snapshot(rows=2, partition=0)
        machine.let_a_second_driver_take_over()
        for key in range(3):
            machine.put([(key, 1)])
            machine.let_a_zombie_go_on(0, (9, 9))
            machine.the_table_is_true()
        assert len(machine.seen) > 1
        assert not machine.can_restore()
        with pytest.raises(AssertionError):
            machine.restore(1, 0, None)
        machine.run_a_batch((9, 9))
        machine.the_table_is_true()
        assert machine.can_restore()
        machine.restore(1, 0, None)
        assert machine.restored is not None
        machine.the_table_is_true()
    finally:
        machine.teardown()


TestTable = TableMachine.TestCase
TestTable.settings = settings(max_examples=examples(50), stateful_step_count=40, print_blob=True)
