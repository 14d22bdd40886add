"""Rules about a table's Iceberg mirror: it follows, fails, expires, and is read at any time."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.layout import MIRRORS
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorCatalog
from lakesplice.table.upkeep.mirroring.mirror_floor import mirror_floor
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.faulty_store import How
from tests.support.mirrors import FaultyCatalog, mirror_of, require_mirrored, sqlite_catalog
from tests.support.table_machine.state import RETENTION_SECONDS, MachineState
from tests.support.traps import CALLS, CRASHES, FAULTS

_NEVER = EpochMs(1 << 60)


class MirrorRules(MachineState):
    """Iceberg's readers see at each version what Delta's see."""

    def __init__(self) -> None:
        super().__init__()
        self.properties: dict[str, str] = {}
        self.mirror_entropy = SeededEntropy(2_000_000)

    def catalog(self) -> MirrorCatalog:
        self.properties = self.properties or sqlite_catalog()
        return mirror_of(self.properties, self.bare, self.driver.name)

    def mirror(self) -> Mirror:
        """The mirror, on a store and a catalog that the trap may let fail."""
        faulty = FaultyCatalog(self.catalog(), self.trap.faults())
        return Mirror(self.driver.table.store, faulty, self.mirror_entropy)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(calls=CALLS.map(lambda calls: calls % 12), how=st.none() | FAULTS | CRASHES)
    def let_the_mirror_follow(self, calls: int, how: How | None) -> None:
        snapshot = self.driver.table.snapshot
        assert snapshot is not None
        if how is not None:
            self.trap.arm(calls, how)
        done = self.guarded(lambda: self.mirror().follow(snapshot))
        self.require_mirrored()
        if how is None:
            state = self.catalog().load()
            assert state is not None
            shown = state.snapshots[-1].version
            assert done.is_current or shown > snapshot.version
            if done.is_current:
                files = set(snapshot.manifest.files)
                assert done.begun or state.files.keys() == files

    @precondition(lambda self: self.properties and self.driver.table.snapshot is not None)
    @rule(calls=CALLS.map(lambda calls: calls % 16), how=st.none() | FAULTS | CRASHES)
    def expire_the_mirror(self, calls: int, how: How | None) -> None:
        snapshot = self.driver.table.snapshot
        assert snapshot is not None
        moment = EpochMs(self.clock.now_ms() - int(RETENTION_SECONDS * 1000))
        if how is not None:
            self.trap.arm(calls, how)
        self.guarded(lambda: self.mirror().expire(snapshot, moment, _NEVER))
        self.require_mirrored()

    @precondition(lambda self: self.properties)
    @rule()
    def look_into_the_mirror(self) -> None:
        self.require_mirrored()

    def require_mirrored(self) -> None:
        seen = {version: rows for version, (_, rows) in self.seen.items()}
        require_mirrored(self.bare, self.catalog(), seen, is_erasing=self.is_erasing)

    def bring_the_mirror_to_its_end(self) -> None:
        """What the service does in the end: the mirror shows the newest version and no other."""
        snapshot = self.driver.table.snapshot
        if not self.properties or snapshot is None:
            return
        assert self.mirror().follow(snapshot).is_current
        expired = self.mirror().expire(snapshot, _NEVER, _NEVER)
        floor = mirror_floor(self.bare)
        assert floor is not None
        assert floor >= snapshot.version
        left = {path for path in self.bare.list(f"{MIRRORS}/") if path.endswith(".avro")}
        assert not expired or {Path(path).name for path in left} == self.named_by_the_catalog()
        self.require_mirrored()

    def named_by_the_catalog(self) -> set[str]:
        """The manifests, and lists of them, of the mirror's snapshots."""
        state = self.catalog().load()
        assert state is not None
        table = state.handle
        named: list[str] = []
        for one in table.metadata.snapshots:
            named += [one.manifest_list, *(each.manifest_path for each in one.manifests(table.io))]
        return {Path(path).name for path in named}

    def teardown(self) -> None:
        super().teardown()
        if self.properties:
            folder = self.properties["uri"].removeprefix("sqlite:///")
            shutil.rmtree(Path(folder).parent, ignore_errors=True)
