"""Rules about a table's older versions: they are read, restored and pinned."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.model.moments import EpochMs
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.layout import MIRRORS
from lakesplice.table.protocol.shadow_store import open_shadows
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.pins import pin, unpin
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.faulty_store import How
from tests.support.erasing import erase_keys
from tests.support.simulated import rows_in, rows_of
from tests.support.table_machine.source_rules import KEYS
from tests.support.table_machine.state import FEW, MachineState
from tests.support.traps import CALLS, CRASHES, FAULTS


def restored(table: Table) -> int | None:
    """The version that the open one restored, if it did."""
    info = next(table.history()).info
    return info.metrics["version"] if info.operation == "RESTORE" else None


class VersionRules(MachineState):
    """Readers open versions and keep them open; versions are restored and pinned."""

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
                ends_ms=EpochMs(ends_ms),
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

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(
        keys=st.sets(st.integers(0, KEYS - 1), min_size=1),
        calls=CALLS,
        how=st.none() | FAULTS | CRASHES,
    )
    def erase(self, keys: set[int], calls: int, how: How | None) -> None:
        """Rows that the source deleted leave the table with all older versions."""
        if not self.driver.table.manifest.schema.key:
            return
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: self.erase_now(keys))
        newest = Table(self.bare)
        oldest = newest.snapshot.manifest.retention.retained_from
        if newest.version > self.version and oldest > self.version:
            ended_ms = Table(self.bare, oldest).snapshot.timestamp_ms
            self.expired_ms = max(self.expired_ms, ended_ms + 1)

    def erase_now(self, keys: set[int]) -> None:
        gone = keys - {found["id"] for found in rows_of(self.bare)}
        manifest = Table(self.bare).snapshot.manifest
        self.erasures += 1
        was_erasing, self.is_erasing = self.is_erasing, True
        try:
            erase_keys(self.driver, sorted(gone), bare=self.bare, seed=self.erasures)
        except UsageError:
            assert manifest.retention.pins or open_shadows(self.bare)
            self.is_erasing = was_erasing
        else:
            self.is_erasing = False
            stored = Table(self.bare).read(include_deleted=True)
            assert gone.isdisjoint(stored["id"].to_pylist())
            assert not [path for path in self.bare.list(f"{MIRRORS}/") if path.endswith(".avro")]
