"""The service's Iceberg mirrors: when they follow, and what happens while a catalog fails."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ServerError

from lakesplice.errors import FencedError, UsageError
from lakesplice.model.driver_status import MirrorCondition
from lakesplice.storage.iceberg.mirror_table import IcebergMirror
from lakesplice.table.upkeep.mirroring.mirror_floor import begin_floor, delete_incarnations
from lakesplice.testing.faulty_store import Fault, How
from tests.support.mirror_scene import EVERY, MirroredScene
from tests.support.mirrors import FaultyCatalog, sqlite_catalog
from tests.support.service_settings import settings_of

NAMED = ("one", "goods")


@pytest.fixture
def mirrored(tmp_path: Path) -> MirroredScene:
    return MirroredScene(tmp_path)


@pytest.mark.slow
def test_a_mirror_follows_but_not_each_commit(mirrored: MirroredScene) -> None:
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


@pytest.mark.slow
def test_a_mirror_of_a_table_that_is_restored_before_its_turn_lacks_nothing(
    mirrored: MirroredScene,
) -> None:
    mirrored.live(1)
    mirrored.turn()
    mirrored.live(2)
    mirrored.turn(seconds=EVERY / 2)
    assert mirrored.status().condition is MirrorCondition.BEHIND
    mirrored.restore(mirrored.version - 1)
    mirrored.turn(seconds=1)
    assert mirrored.status().condition is MirrorCondition.CURRENT
    assert mirrored.lag() == 0


@pytest.mark.slow
def test_only_tables_that_ask_for_a_mirror_have_one(mirrored: MirroredScene) -> None:
    mirrored.live(1)
    mirrored.turn()
    kept = [list(mirrored.scene.table(at).store.list("_lakesplice/iceberg")) for at in range(3)]
    assert kept[0]
    assert kept[1:] == [[], []]


@pytest.mark.slow
def test_a_catalog_that_fails_is_asked_again_and_the_mirror_catches_up(
    mirrored: MirroredScene,
) -> None:
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
    failing = mirrored.status()
    assert failing.condition is MirrorCondition.FAILING
    assert "doesn't answer" in failing.failure
    assert failing.retry_ms is not None
    down[0] = False
    assert mirrored.turn(seconds=600)
    mirrored.require_current()
    assert mirrored.lag() == 0
    current = mirrored.status()
    assert current.condition is MirrorCondition.CURRENT
    assert current.version == mirrored.version
    assert (failing.version or 0) < mirrored.version


@pytest.mark.slow
def test_a_restarted_service_catches_up(tmp_path: Path) -> None:
    first = MirroredScene(tmp_path)
    first.live(1)
    first.turn()
    first.live(2, 3)
    later = MirroredScene(tmp_path)
    later.live()
    assert later.turn()
    later.require_current()
    assert later.count("begun") == 0


@pytest.mark.slow
def test_a_mirror_ends_with_its_setting(tmp_path: Path) -> None:
    first = MirroredScene(tmp_path)
    first.live(1)
    first.turn()
    ended = MirroredScene(tmp_path, also=())
    ended.live(2)
    assert ended.turn()
    assert ended.state() is None
    assert not list(ended.scene.table(0).store.list("_lakesplice/iceberg"))
    assert not ended.turn()


@pytest.mark.slow
def test_a_driver_that_was_replaced_leaves_the_mirror_to_the_next_one(
    mirrored: MirroredScene,
) -> None:
    mirrored.live(1)
    lake = mirrored.scene.lake
    number = mirrored.scene.driver.generation.number + 1
    lake.put_new(f"_lakesplice/generations/{number:020d}.json", b"{}")
    with pytest.raises(FencedError):
        mirrored.turn()
    assert mirrored.state() is None


@pytest.mark.slow
def test_at_the_end_of_a_run_each_mirror_follows_once_more(mirrored: MirroredScene) -> None:
    mirrored.live(1)
    mirrored.turn()
    mirrored.live(2)
    mirrored.mirrors.finish()
    mirrored.require_current()


def test_a_mirror_needs_a_catalog(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"set iceberg\.catalog"):
        settings_of(tmp_path, tables=[{"match": "*", "also": ["iceberg"]}])


def forget_metadata(mirrored: MirroredScene) -> None:
    """Delete the metadata of the mirror, as a switch to another catalog does."""
    delete_incarnations(mirrored.scene.table(0).store, None)


@pytest.mark.slow
def test_a_mirror_begins_again_where_an_earlier_one_left_its_entry(tmp_path: Path) -> None:
    elsewhere = sqlite_catalog(tmp_path / "lake")
    for catalog in (None, elsewhere, None):
        mirrored = MirroredScene(tmp_path, catalog=catalog)
        mirrored.live(1)
        mirrored.turn()
        mirrored.require_current()
        assert mirrored.count("begun") == 1
    forget_metadata(mirrored)
    ended = MirroredScene(tmp_path, also=())
    ended.live(2)
    begin_floor(ended.scene.table(0).store, "1", 0)
    ended.turn()
    assert not mirrored_names(ended), "the entry is dropped, too"


@pytest.mark.slow
def test_an_entry_with_metadata_that_only_the_catalogs_server_does_not_find_is_left_alone(
    mirrored: MirroredScene,
) -> None:
    mirrored.live(1)
    mirrored.turn()
    location = f"file://{mirrored.folder}/lake/one/goods"
    present = load_catalog("lakesplice", **mirrored.catalog).load_table(NAMED).metadata_location
    assert present.startswith(location)

    class Blind(SqlCatalog):
        def load_table(self, identifier: Any) -> Any:
            raise ServerError(f"NotFoundException: Location does not exist: {present}.")

    blind = IcebergMirror(Blind("lakesplice", **mirrored.catalog), NAMED, location)
    with pytest.raises(UsageError, match="drop the entry in the catalog"):
        blind.load()


def mirrored_names(scene: MirroredScene) -> list[object]:
    """What the catalog has, whether it can be loaded or not."""
    return [*load_catalog("lakesplice", **scene.catalog).list_tables("one")]


@pytest.mark.slow
def test_an_entry_with_metadata_elsewhere_that_is_gone_is_left_alone(
    mirrored: MirroredScene,
) -> None:
    mirrored.live(1)
    mirrored.turn()
    location = f"file://{mirrored.folder}/other/lake/one/goods/_lakesplice/iceberg/x.metadata.json"
    with sqlite3.connect(mirrored.folder / "catalog.db") as catalog:
        catalog.execute("UPDATE iceberg_tables SET metadata_location = ?", (location,))
    with pytest.raises(UsageError, match="drop the entry in the catalog"):
        mirrored.state()
    assert mirrored_names(mirrored)
