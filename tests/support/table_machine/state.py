"""The state of a table's state machine: its source, its drivers, and what was seen so far."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine

from lakesplice.errors import StorageError
from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import AnyStore
from lakesplice.table.protocol.intents import Intent
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Crash, FaultyStore
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.clocked import ClockedStore
from tests.support.shadows import Filling, ReadSource
from tests.support.simulated import Rows, driver_of, memory_folder
from tests.support.traps import Trap

RETENTION_SECONDS = 3600.0

PARTITIONS = st.integers(0, 1)
FEW = st.integers(0, 5)


class MachineState(RuleBasedStateMachine):
    """A source, a lake, the drivers that may write to it, and the versions met so far."""

    def __init__(self) -> None:
        super().__init__()
        self.source = ReadSource()
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
        self.filling: Filling | None = None
        self.shadows = 0
        self.erasures, self.is_erasing = 0, False

    def bring_the_mirror_to_its_end(self) -> None:
        """Let the Iceberg mirror, if there is one, show the newest version and no other."""

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
            self.restart_driver()
        except StorageError:
            pass
        finally:
            self.trap.disarm()
        return None

    def restart_driver(self) -> None:
        self.trap.disarm()
        self.driver = self.new_driver()
        self.planned, self.maintenance = [], None

    def born(self) -> bool:
        first = "_delta_log/00000000000000000000.json"
        return self.version >= 0 or self.bare.size(first) is not None

    def can_restore(self) -> bool:
        """A driver that is older than the table knows no version of it until its first batch."""
        return self.driver.table.snapshot is not None and len(self.seen) > 1

    def require_expired(self, version: int) -> None:
        succeeded_ms = self.timestamps.get(version + 1)
        assert succeeded_ms is None or succeeded_ms < self.expired_ms

    def vacuum_now(self) -> None:
        table = self.driver.table
        assert table.snapshot is not None
        moment = self.clock.now_ms() - int(RETENTION_SECONDS * 1000)
        self.expired_ms = max(self.expired_ms, moment)
        expiry = Expiry(table.store, table.commit, table.generation)
        expiry.run(table.snapshot, EpochMs(moment), self.clock.now_ms())
