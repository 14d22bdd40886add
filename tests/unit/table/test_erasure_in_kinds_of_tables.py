"""Erasure from tables that are partitioned, adopted, sharded, versioned or written meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

import lakesplice
from lakesplice.apps.erasing.byte_search import files_in, search
from lakesplice.errors import UsageError
from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.faulty_store import Call, FaultyStore
from lakesplice.testing.shop import Event
from tests.support.altered import event
from tests.support.erasing import erase_keys, found
from tests.support.erasure_scene import Scene
from tests.support.partitioned import INT, Life, row
from tests.support.shards import Scene as Shards
from tests.support.shards import filled
from tests.support.simulated import Source, driver_of, require_true, rows_of
from tests.support.versions import HistoryWorld, intervals


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def at(pos: int, after: dict[str, Any] | None, before: dict[str, Any] | None = None) -> Event:
    return event(INT, pos, after, before, topic="t.s.t")


@pytest.mark.slow
def test_the_places_that_a_row_moved_away_from_and_its_partitions_are_erased(
    tmp_path: Path,
) -> None:
    """The value of a partition is in names of folders and in the log, also in checkpoints."""
    life = Life(tmp_path)
    life.take(at(1, row(1, 1, "Rosalind")), at(2, row(2, 2, "ada")))
    life.take(at(3, row(1, 1, "Franklin"), row(1, 1, "Rosalind")))
    life.driver.compact()
    life.take(at(4, None, row(1, 1, "Franklin")))
    manifest = life.driver.table.manifest
    named = ("Rosalind", "Franklin")
    assert found(tmp_path, manifest, [1], *named)
    erase_keys(life.driver, [1])
    assert found(tmp_path, life.driver.table.manifest, [1], *named) == {}
    assert [path for path, _ in files_in(tmp_path) if any(name in path for name in named)] == []
    assert life.rows == [row(2, 2, "ada")]


@pytest.mark.slow
def test_a_row_that_was_purged_before_stays_away_after_a_table_starts_over(scene: Scene) -> None:
    scene.take(*scene.source.put(0), partition=0)
    scene.take(*scene.source.put(1), partition=1)
    scene.driver.compact()
    scene.driver.purge(1 << 60)
    assert scene.stored_keys() == [0, 1, 2, 4, 5]
    erase_keys(scene.driver, [3])
    table = scene.driver.table
    assert table.snapshot is not None
    erased = open_snapshot(table.store).manifest.erased
    assert erased is not None
    assert erased.keys == 1


def test_files_that_another_writer_left_are_erased_from_an_adopted_table(
    tmp_path: Path,
) -> None:
    """Its files are somewhere in the folder, its commits have bounds, and so have other files."""
    folder, name = tmp_path / "t", "Rosalind Franklin"
    for first in (0, 10):
        rows = pa.table({"id": [*range(first, first + 10)], "name": [name, *"abcdefghi"]})
        deltalake.write_deltalake(folder, rows, mode="append")
    deltalake.DeltaTable(folder).optimize.compact()
    (folder / "_delta_log" / f"{1:020d}.crc").write_text(json.dumps({"maxValues": name}))
    table = lakesplice.Table.adopt(folder, key=["id"])
    table.upsert(delete=pa.table({"id": [0, 10]}))
    assert len(search(files_in(folder), [name])) > 4
    table.erase([0, 10])
    assert search(files_in(folder), [name]) == {}
    assert deltalake.DeltaTable(folder).to_pyarrow_table().num_rows == 18


@pytest.mark.slow
def test_a_row_of_one_shard_is_erased_and_the_others_of_its_number_are_kept(
    tmp_path: Path,
) -> None:
    scene = filled(Shards(tmp_path))
    scene.first.drop(1)
    scene.batch()
    driver = scene.first.driver
    assert erase_keys(driver, [["shop_0", 1]]).rows == 1
    scene.batch()
    scene.holds(View.REAL_TIME)
    stored = Table(scene.store).read(include_deleted=True).to_pylist()
    kept = {(row["database_name"], row["id"]) for row in stored}
    assert ("shop_0", 1) not in kept
    assert ("shop_1", 1) in kept


@pytest.mark.slow
def test_changes_that_are_committed_meanwhile_are_merged_and_the_rows_erased_then(
    tmp_path: Path,
) -> None:
    """A batch changes rows of the file that is being written again; an index merge comes later."""
    source, bare = Source(), LocalStore(tmp_path)
    other = driver_of(source, bare, seed=2)
    for key in range(6):
        source.topic.append(0, source.put(key))
    for events in ((), source.delete(3), source.put(6)):
        source.topic.append(0, events)
        other.batch()
    other.compact()
    for key in (0, 1, 2, 4, 5):
        source.topic.append(0, source.put(key))
    rivals: list[Callable[[], object]] = [other.batch, lambda: other.merge_runs(2)]

    def meanwhile(call: Call) -> None:
        if rivals and call.method == "writer" and call.path.startswith("shop/goods/base/"):
            rivals.pop(0)()

    driver = driver_of(source, FaultyStore(bare, before_call=meanwhile))
    assert erase_keys(driver, [3], bare=bare.within("shop/goods")).rows == 1
    assert rivals == []
    assert found(tmp_path, open_snapshot(bare.within("shop/goods")).manifest, [3]) == {}
    require_true(source, bare.within("shop/goods"))
    assert rows_of(bare.within("shop/goods")) == source.truth(source.topic.ends)


@pytest.mark.slow
def test_all_versions_of_a_row_are_erased_from_a_history_table(tmp_path: Path) -> None:
    world = HistoryWorld(tmp_path)
    for statements in ([("put", 1), ("put", 2)], [("put", 1)], [("put", 2)], [("delete", 1)]):
        world.servers.commit(statements)
        world.send(1)
        world.batch()
    store = world.driver.table.store
    assert found(tmp_path, world.driver.table.manifest, [1])
    expected = [row for row in world.servers.history(range(4)) if row[0] == 2]
    with pytest.raises(UsageError, match="aren't deleted"):
        erase_keys(world.driver, [1, 2])
    done = erase_keys(world.driver, [1, 7])
    assert (done.keys, done.rows, done.live) == (2, 3, 0)
    assert found(tmp_path, world.driver.table.manifest, [1]) == {}
    assert intervals(world.table.read_history()) == expected
    world.driver.table.continue_at(
        lambda source: moved(source, {0: Offset(0), 1: Offset(0)}), "again"
    )
    world.batch()
    assert intervals(world.table.read_history()) == expected
    assert erase_keys(world.driver, [1]).rows == 0
    world.servers.commit([("put", 1)])
    world.send(1)
    world.batch()
    assert world.table.read_history(["id"], current=True).sort_by("id")["id"].to_pylist() == [1, 2]
    assert erase_keys(world.driver, [1, 2], also_live=True).live == 2
    assert Table(store).read_history().num_rows == 0
