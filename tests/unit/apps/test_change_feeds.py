"""The setting `change_feed`: the service begins and ends the feeds of its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from lakesplice.apps.service.upkeep.table_upkeep import ChangeFeeds, Upkeep
from lakesplice.model.manifest import ChangeFeed
from lakesplice.table.protocol.ports import Store
from lakesplice.testing.shop.columns import integer
from tests.support.simulated_service import Scene


class WithoutFaults(Scene):
    """A service over a plain store, whose log can be cared for."""

    def store(self) -> Store:
        return self.lake


def serving(folder: Path, **wanted: bool | None) -> Scene:
    """A service over the lake, which asks for feeds of these databases' tables."""
    tables: list[dict[str, Any]] = [
        {"match": f"{name}.*", "change_feed": on} for name, on in wanted.items()
    ]
    return Scene(folder, tables=tables)


def feeds(scene: Scene) -> list[ChangeFeed | None]:
    return [scene.table(at).manifest.feed for at in range(3)]


def turn(scene: Scene) -> list[bool]:
    """A turn of the upkeep for each table: which ones were due."""
    service = ChangeFeeds(scene.driver)
    due = [service.is_due(scene.table(at)) for at in range(3)]
    for at in range(3):
        if due[at]:
            service.see_to(scene.table(at))
            assert not service.is_due(scene.table(at))
    return due


def test_a_new_table_begins_with_its_feed(tmp_path: Path) -> None:
    scene = serving(tmp_path, one=True)
    scene.put(1)
    scene.batch()
    assert feeds(scene) == [ChangeFeed(0), None, None]
    assert turn(scene) == [False, False, False]


@pytest.mark.slow
def test_the_feed_of_an_existing_table_begins_and_ends_with_the_setting(tmp_path: Path) -> None:
    scene = serving(tmp_path)
    scene.put(1)
    scene.batch()
    then = scene.table(0).version
    later = serving(tmp_path, one=True, two=False)
    assert turn(later) == [True, False, False]
    assert feeds(later) == [ChangeFeed(then + 1), None, None]
    assert turn(serving(tmp_path)) == [False, False, False], "a setting that says nothing"
    ended = serving(tmp_path, one=False)
    assert turn(ended) == [True, False, False]
    assert feeds(ended) == [None, None, None]


@pytest.mark.slow
def test_a_table_that_can_have_no_feed_is_reported_once(tmp_path: Path) -> None:
    scene = serving(tmp_path, one=True)
    source = scene.sources[0]
    source.database.add_column(source.database.tables[0].name, integer("_change_type"))
    scene.put(1)
    scene.batch()
    assert feeds(scene) == [None, None, None]
    with structlog.testing.capture_logs() as told:
        assert turn(scene) == [True, False, False]
    assert [line["event"] for line in told] == ["change-feed-refused"]
    assert "rename them first" in told[0]["error"]


@pytest.mark.slow
def test_the_upkeep_of_a_table_begins_its_feed_and_no_other_ones(tmp_path: Path) -> None:
    scene = serving(tmp_path)
    scene.put(1)
    scene.batch()
    later = WithoutFaults(tmp_path, tables=[{"match": "one.*", "change_feed": True}])
    no_session: Any = None
    upkeep = Upkeep(later.driver, no_session)
    assert [upkeep.is_due(later.table(at)) for at in range(3)] == [True, False, False]
    for at in range(3):
        upkeep.see_to(later.table(at))
    assert [feed is not None for feed in feeds(later)] == [True, False, False]


@pytest.mark.slow
def test_a_tables_upkeep_is_due_when_its_log_has_grown_by_a_checkpoint(tmp_path: Path) -> None:
    scene = WithoutFaults(tmp_path, log={"checkpoint_every": 2})
    no_session: Any = None
    upkeep = Upkeep(scene.driver, no_session)
    due = {}
    for _ in range(3):
        scene.put(1)
        scene.batch()
        due[scene.table(0).version] = upkeep.is_due(scene.table(0))
    assert due == {at: at >= 2 for at in range(1, 4)}
    upkeep.see_to(scene.table(0))
    assert not upkeep.is_due(scene.table(0))
