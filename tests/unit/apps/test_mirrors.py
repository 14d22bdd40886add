"""The service's Iceberg mirrors: when they follow, and what happens while a catalog fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from lakesplice.apps.service.upkeep.mirrors import Mirrors
from lakesplice.errors import FencedError
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorState
from lakesplice.telemetry import catalogue as metric
from lakesplice.testing.faulty_store import Fault, How
from tests.support.mirrors import FaultyCatalog, mirror_of, rows_of_snapshot
from tests.support.service_settings import settings_of
from tests.support.simulated import rows_of
from tests.support.simulated_service import Scene

TABLE = "one.goods"
EVERY = 60


class Mirrored:
    """A service over three tables, of which those of database `one` have a mirror."""

    def __init__(self, folder: Path, *, also: tuple[str, ...] = ("iceberg",)) -> None:
        self.folder = folder
        self.catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db"}
        tables: list[dict[str, Any]] = [{"match": "one.*", "also": list(also)}]
        settings: dict[str, Any] = {"iceberg": {"catalog": self.catalog, "every": EVERY}}
        self.scene = Scene(folder / "lake", tables=tables, **settings)
        self.mirrors = Mirrors(self.scene.driver, self.scene.tables)

    def live(self, *keys: int) -> None:
        self.scene.put(*keys)
        self.scene.batch()

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

    def lag(self) -> float | None:
        return self.scene.driver.metrics.value(metric.ICEBERG_LAG, table=TABLE)


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    return Mirrored(tmp_path)


def test_a_mirror_follows_but_not_each_commit(mirrored: Mirrored) -> None:
    mirrored.live(1, 2)
    assert mirrored.turn()
    mirrored.require_current()
    mirrored.live(3)
    assert not mirrored.turn(seconds=EVERY / 2)
    mirrored.live(4)
    assert mirrored.turn(seconds=EVERY / 2)
    mirrored.require_current()
    assert not mirrored.turn(), "there is nothing that it lacks"
    state = mirrored.state()
    assert state is not None
    assert len(state.snapshots) == 2
    assert (mirrored.count("begun"), mirrored.count("committed")) == (1, 1)
    assert mirrored.lag() == 0


def test_only_tables_that_ask_for_a_mirror_have_one(mirrored: Mirrored) -> None:
    mirrored.live(1)
    mirrored.turn()
    kept = [list(mirrored.scene.table(at).store.list("_lakesplice/iceberg")) for at in range(3)]
    assert kept[0]
    assert kept[1:] == [[], []]


def test_a_catalog_that_fails_is_asked_again_and_the_mirror_catches_up(mirrored: Mirrored) -> None:
    mirrored.live(1)
    mirrored.turn()
    down = [True]
    working = mirrored.mirrors._of_settings
    fault = Fault(lambda _call: down[0], How.LOST)
    mirrored.mirrors._open = lambda table: FaultyCatalog(working(table), [fault])
    mirrored.live(2)
    with structlog.testing.capture_logs() as told:
        assert mirrored.turn()
        assert not mirrored.turn(seconds=1), "it rests"
        mirrored.live(3)
        assert mirrored.turn(seconds=600)
    assert [line["event"] for line in told if "iceberg" in line["event"]] == ["iceberg-failed"] * 2
    assert mirrored.count("failed") == 2
    assert (mirrored.lag() or 0) >= 600
    down[0] = False
    assert mirrored.turn(seconds=600)
    mirrored.require_current()
    assert mirrored.lag() == 0


def test_a_restarted_service_catches_up(tmp_path: Path) -> None:
    first = Mirrored(tmp_path)
    first.live(1)
    first.turn()
    first.live(2, 3)
    later = Mirrored(tmp_path)
    later.live()
    assert later.turn()
    later.require_current()
    assert later.count("begun") == 0


def test_a_mirror_ends_with_its_setting(tmp_path: Path) -> None:
    first = Mirrored(tmp_path)
    first.live(1)
    first.turn()
    ended = Mirrored(tmp_path, also=())
    ended.live(2)
    assert ended.turn()
    assert ended.state() is None
    assert not list(ended.scene.table(0).store.list("_lakesplice/iceberg"))
    assert not ended.turn()


def test_a_driver_that_was_replaced_leaves_the_mirror_to_the_next_one(mirrored: Mirrored) -> None:
    mirrored.live(1)
    lake = mirrored.scene.lake
    number = mirrored.scene.driver.generation.number + 1
    lake.put_new(f"_lakesplice/generations/{number:020d}.json", b"{}")
    with pytest.raises(FencedError):
        mirrored.turn()
    assert mirrored.state() is None


def test_at_the_end_of_a_run_each_mirror_follows_once_more(mirrored: Mirrored) -> None:
    mirrored.live(1)
    mirrored.turn()
    mirrored.live(2)
    mirrored.mirrors.finish()
    mirrored.require_current()


def test_a_mirror_needs_a_catalog(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"needs iceberg\.catalog"):
        settings_of(tmp_path, tables=[{"match": "*", "also": ["iceberg"]}])
