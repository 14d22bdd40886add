"""The life of a table and of its Iceberg mirror, in which one call fails: changes, a clean-up, an
erasure.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lakesplice.errors import StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.layout import MIRRORS
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.mirroring.mirror import Mirror
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorCatalog, MirrorState
from lakesplice.table.upkeep.mirroring.mirror_floor import floors, mirror_floor
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.erasing import erase_keys
from tests.support.mirrors import (
    FaultyCatalog,
    Rows,
    mirror_of,
    require_mirrored,
    rows_of_snapshot,
    sqlite_catalog,
)
from tests.support.simulated import Source, driver_of, rows_of

NEVER = EpochMs(1 << 60)


class Life:
    """A table and its mirror, in a catalog with these properties, by default in a SQLite file;
    `through` are those with which the mirror reaches it, if it has others. One call of the mirror,
    by its number, fails in one way.
    """

    def __init__(
        self,
        path: Path,
        fails: int = -1,
        how: How = How.LOST,
        properties: dict[str, str] | None = None,
        through: dict[str, str] | None = None,
    ) -> None:
        self.calls, self.fails, self.how = 0, fails, how
        self.clock, self.source = FixedClock(), Source()
        self.lake = LocalStore(path / "lake")
        self.driver = self._driver()
        self.bare = self.lake.within(self.driver.name.path)
        self.properties = properties or sqlite_catalog(path)
        self.through = through or self.properties
        self.entropy = SeededEntropy(77)
        self.seen: dict[int, Rows] = {}

    def _driver(self) -> SimulatedDriver:
        return driver_of(self.source, self.lake, clock=self.clock)

    def catalog(self) -> MirrorCatalog:
        return mirror_of(self.properties, self.bare, self.driver.name)

    def live(self, *keys: int) -> None:
        for key in keys:
            self.source.topic.append(0, self.source.put(key))
        self.clock.advance(3600)
        self.driver.batch()
        self.driver.compact()
        self.see()

    def see(self) -> None:
        self.seen[self.driver.table.version] = rows_of(self.bare, View.READ_OPTIMISED)

    def is_due(self, _call: Call) -> bool:
        self.calls += 1
        return self.calls - 1 == self.fails

    def mirror(self, *, faulty: bool = True) -> Mirror:
        if not faulty:
            return Mirror(self.bare, self.catalog(), self.entropy)
        fault = Fault(self.is_due, self.how)
        store = FaultyStore(self.bare, [fault])
        catalog = mirror_of(self.through, self.bare, self.driver.name)
        return Mirror(store, FaultyCatalog(catalog, [fault]), self.entropy)

    def follow(self, *, faulty: bool = True) -> None:
        snapshot = self.driver.table.snapshot
        assert snapshot is not None
        with suppress(StorageError, Crash):
            self.mirror(faulty=faulty).follow(snapshot)
        require_mirrored(self.bare, self.catalog(), self.seen)

    def expire(self, *, faulty: bool = True) -> None:
        snapshot = self.driver.table.snapshot
        assert snapshot is not None
        with suppress(StorageError, Crash):
            self.mirror(faulty=faulty).expire(snapshot, self.clock.now_ms(), NEVER)
        self.vacuum()
        require_mirrored(self.bare, self.catalog(), self.seen)

    def vacuum(self) -> None:
        """Delete all that neither the table nor its mirror needs."""
        table = self.driver.table
        assert table.snapshot is not None
        self.clock.advance(3600)
        Expiry(table.store, table.commit, table.generation).run(table.snapshot, self.clock.now_ms())
        self.see()

    def erase(self) -> None:
        self.source.topic.append(0, self.source.delete(2))
        self.driver.batch()
        erase_keys(self.driver, [2], bare=self.bare, seed=1)
        self.see()
        require_mirrored(self.bare, self.catalog(), self.seen)

    def play(self) -> None:
        self.live(1, 2)
        self.follow()
        self.live(2, 3)
        self.follow()
        self.expire()
        self.erase()
        self.follow()
        self.live(4)
        self.follow()

    def require_whole(self) -> None:
        """What a further run, which nothing disturbs, makes of it."""
        state, table = self.require_current(), self.driver.table
        self.live(5)
        self.follow(faulty=False)
        self.expire(faulty=False)
        assert list(floors(self.bare)) == [state.incarnation]
        assert mirror_floor(self.bare) == table.version - 1, "the vacuum's own commit is newer"
        assert all(state.incarnation in path for path in self.bare.list(f"{MIRRORS}/"))

    def require_current(self) -> MirrorState:
        """After a further run, which nothing disturbs, the mirror has the table's rows."""
        self.fails = -1
        self.follow(faulty=False)
        state = self.catalog().load()
        assert state is not None
        versions = [one.version for one in state.snapshots]
        assert len(set(versions)) == len(versions), "a commit was repeated"
        assert (
            rows_of_snapshot(state, state.snapshots[-1].id) == self.seen[self.driver.table.version]
        )
        return state
