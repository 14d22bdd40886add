"""A simulated service of which some tables have an Iceberg mirror."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakesplice.apps.service.upkeep.mirrors import Mirrors
from lakesplice.model.driver_status import MirrorStatus
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorState
from lakesplice.table.upkeep.restore import restore
from lakesplice.telemetry import catalogue as metric
from tests.support.mirrors import mirror_of, rows_of_snapshot, sqlite_catalog
from tests.support.simulated import rows_of
from tests.support.simulated_service import Scene

TABLE = "one.goods"
EVERY = 60


class MirroredScene:
    """A service over three tables, of which those of database `one` have a mirror, in a catalog
    with these properties, by default in a SQLite file.
    """

    def __init__(
        self,
        folder: Path,
        *,
        also: tuple[str, ...] = ("iceberg",),
        catalog: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.catalog = catalog or sqlite_catalog(folder)
        tables: list[dict[str, Any]] = [{"match": "one.*", "also": list(also)}]
        settings: dict[str, Any] = {"iceberg": {"catalog": self.catalog, "every": EVERY}}
        self.scene = Scene(folder / "lake", tables=tables, **settings)
        self.mirrors = Mirrors(self.scene.driver, self.scene.tables)

    def live(self, *keys: int) -> None:
        self.scene.put(*keys)
        self.scene.batch()

    def restore(self, version: int) -> None:
        table = self.scene.table(0)
        assert table.snapshot is not None
        generation, retries = table.generation, table.retries()
        restore(table.store, table.snapshot, version, table.commit, generation, retries=retries)

    def turn(self, seconds: float = EVERY) -> bool:
        self.scene.clock.advance(seconds)
        return self.mirrors.turn()

    def state(self) -> MirrorState | None:
        table = self.scene.table(0)
        return mirror_of(self.catalog, self.scene.lake.within(table.name.path), table.name).load()

    def require_current(self) -> None:
        state, table = self.state(), self.scene.table(0)
        assert state is not None
        present = rows_of_snapshot(state, state.snapshots[-1].id)
        assert present == rows_of(table.store, View.READ_OPTIMISED)

    def count(self, result: str) -> float:
        metrics = self.scene.driver.metrics
        return metrics.value(metric.ICEBERG_COMMITS, table=TABLE, result=result) or 0

    def status(self) -> MirrorStatus:
        """What people see of the mirror."""
        return self.scene.driver.activity.mirrors[TABLE]

    @property
    def version(self) -> int:
        """The table's newest version."""
        snapshot = self.scene.table(0).snapshot
        return -1 if snapshot is None else snapshot.version

    def lag(self) -> float | None:
        return self.scene.driver.metrics.value(metric.ICEBERG_LAG, table=TABLE)
