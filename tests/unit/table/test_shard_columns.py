"""Columns of a table with several shards: each shard drops and adds its own, with its own
defaults.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.manifests import decode_manifest, encode_manifest
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.table import Table
from lakesplice.testing.shop.columns import integer
from tests.support.shards import Scene, Shard, filled
from tests.support.simulated import SMALL


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


DROPS = SchemaPolicy(drop_column=Behaviour.EVOLVE)


def parked(scene: Scene, which: int) -> str:
    """Why a shard is parked; the others aren't."""
    held = [shard.driver.table.parked for shard in scene.shards]
    assert [at for at, reason in enumerate(held) if reason is not None] == [which]
    reason = held[which]
    assert reason is not None
    assert reason.code is ParkCode.SCHEMA_CHANGE
    return reason.detail


def values(scene: Scene, column: str) -> dict[tuple[str, int], Any]:
    rows = Table(scene.store).read().to_pylist()
    return {(found["database_name"], found["id"]): found[column] for found in rows}


def put_narrow(shard: Shard, key: int, *cells: Any, partition: int = 0) -> None:
    """Insert a row whatever columns the shard has by now."""
    shard.database.insert(SMALL.name, [(key, *cells)])
    shard.send(partition)


@pytest.mark.slow
def test_a_column_that_one_shard_drops_parks_that_shard_and_names_the_setting_that_helps(
    scene: Scene,
) -> None:
    filled(scene)
    scene.first.database.drop_column(SMALL.name, "n")
    scene.second.put(0, value=4)
    put_narrow(scene.first, 30, "narrow")
    scene.batch()
    detail = parked(scene, 0)
    assert "column='n'" in detail
    assert "drop_column: lenient" in detail
    assert ("shop_0", 30) not in values(scene, "n")
    scene.second.put(31, value=3)
    assert scene.second.driver.batch() is CommitOutcome.DONE
    assert ("shop_1", 31) in values(scene, "n")


@pytest.mark.slow
def test_a_drop_that_is_followed_leaves_the_other_shards_column_and_is_never_hidden(
    tmp_path: Path,
) -> None:
    scene = filled(Scene(tmp_path, DROPS))
    before = values(scene, "n")
    scene.first.database.drop_column(SMALL.name, "n")
    put_narrow(scene.first, 30, "narrow")
    scene.first.database.update(SMALL.name, [(1,)], lambda old: (old[0], "new"))
    scene.first.send()
    scene.second.put(31, value=4)
    scene.batch()
    while scene.first.driver.table.manifest.deltas:
        scene.first.driver.compact()
    found = values(scene, "n")
    assert found["shop_0", 30] is None
    assert found["shop_0", 1] is None
    assert found["shop_0", 4] == before["shop_0", 4]
    assert found["shop_1", 31] == 4
    assert Table(scene.store).snapshot.manifest.parkings == ()
    # The last of them drops it, too; and a shard that never had it joins.
    scene.second.database.drop_column(SMALL.name, "n")
    put_narrow(scene.second, 32, "narrow")
    scene.batch()
    found = values(scene, "n")
    assert found["shop_1", 32] is None
    assert found["shop_1", 31] == 4
    presences = scene.first.driver.table.manifest.sources
    assert all(
        any(presence.gone for presence in one.presences.values()) for one in presences.values()
    )


@pytest.mark.slow
def test_a_partition_column_that_a_shard_drops_parks_it_whatever_else_is_followed(
    tmp_path: Path,
) -> None:
    policy = SchemaPolicy(drop_column=Behaviour.LENIENT, partition_by=("name",))
    scene = filled(Scene(tmp_path, policy))
    scene.first.database.drop_column(SMALL.name, "name")
    put_narrow(scene.first, 30, 4)
    scene.batch()
    assert "is a partition column" in parked(scene, 0)


@pytest.mark.slow
def test_late_images_from_before_a_drop_keep_the_column_and_its_return_parks(
    tmp_path: Path,
) -> None:
    scene = filled(Scene(tmp_path, DROPS))
    scene.first.put(7, value=8)
    late = scene.first.topic.events(0)[-1:]
    scene.first.database.drop_column(SMALL.name, "n")
    put_narrow(scene.first, 30, "narrow")
    scene.first.topic.append(1, late)
    scene.batch()
    found = values(scene, "n")
    assert found["shop_0", 7] == 8
    scene.first.database.add_column(SMALL.name, integer("n"))
    put_narrow(scene.first, 33, "wide", 1)
    scene.batch()
    assert "column='n' is back" in parked(scene, 0)


@pytest.mark.slow
def test_a_drop_is_noticed_when_its_images_come_in_one_batch_with_the_columns_in_another_partition(
    scene: Scene,
) -> None:
    scene.second.put(0)
    scene.batch()
    scene.first.put(1, 2, value=4)
    scene.first.database.drop_column(SMALL.name, "n")
    put_narrow(scene.first, 30, "narrow", partition=1)
    scene.first.driver.batch()
    assert "column='n'" in parked(scene, 0)
    presences = scene.first.driver.table.manifest.sources[scene.first.topic.name].presences
    assert all(presence.gone is None for presence in presences.values())


@pytest.mark.slow
def test_columns_that_are_gone_while_others_are_new_may_be_renamed(scene: Scene) -> None:
    filled(scene)
    scene.second.database.add_column(SMALL.name, integer("other"))
    scene.second.put(8, value=4)
    scene.batch()
    scene.first.database.drop_column(SMALL.name, "n")
    scene.first.database.add_column(SMALL.name, integer("other"))
    put_narrow(scene.first, 30, "renamed", 1)
    scene.batch()
    detail = parked(scene, 0)
    assert "'other' is new: dropped or renamed" in detail
    assert "rename_column: lenient" in detail


@pytest.mark.slow
def test_a_shard_may_get_its_columns_in_another_order_than_the_others(scene: Scene) -> None:
    filled(scene)
    scene.first.database.add_column(SMALL.name, integer("a"))
    scene.first.put(20, value=2)
    scene.batch()
    scene.second.database.add_column(SMALL.name, integer("b"))
    scene.second.put(20, value=3)
    scene.settle()
    scene.second.database.add_column(SMALL.name, integer("a"))
    scene.first.database.add_column(SMALL.name, integer("b"))
    scene.second.put(21, value=3)
    scene.first.put(21, value=3)
    scene.settle()


@pytest.mark.slow
def test_a_column_that_comes_with_another_default_than_the_tables_parks_its_shard(
    scene: Scene,
) -> None:
    filled(scene)
    scene.first.database.add_column(SMALL.name, integer("extra", default=5))
    scene.first.put(20, value=2)
    scene.batch()
    scene.second.database.add_column(SMALL.name, integer("extra", default=7))
    scene.second.put(20, value=2)
    scene.batch()
    detail = parked(scene, 1)
    assert "default 7" in detail
    assert "and 5 in the table" in detail
    assert "add_column: lenient" in detail


def test_a_shard_that_joins_with_another_default_has_no_rows_from_before_it(scene: Scene) -> None:
    scene.first.database.add_column(SMALL.name, integer("extra", default=5))
    scene.first.put(20, value=2)
    scene.batch()
    scene.second.database.add_column(SMALL.name, integer("extra", default=7))
    scene.second.put(20, value=2)
    scene.settle()


@pytest.mark.slow
def test_a_dropped_columns_default_is_in_no_row_that_comes_after(tmp_path: Path) -> None:
    scene = filled(Scene(tmp_path, DROPS))
    for shard in scene.shards:
        shard.database.add_column(SMALL.name, integer("extra", default=5))
        shard.put(20, value=2)
    scene.settle()
    scene.first.database.drop_column(SMALL.name, "extra")
    put_narrow(scene.first, 30, "narrow", 1)
    scene.batch()
    found = values(scene, "extra")
    assert found["shop_0", 30] is None
    assert found["shop_0", 0] == 5


@pytest.mark.slow
def test_another_kind_of_change_of_one_shards_columns_parks_that_shard_at_once(
    scene: Scene,
) -> None:
    filled(scene)
    scene.first.database.drop_column(SMALL.name, "name")
    scene.first.database.add_column(SMALL.name, integer("name"))
    put_narrow(scene.first, 30, 4, 5)
    scene.batch()
    assert "changed its type" in parked(scene, 0)


@pytest.mark.slow
def test_columns_of_sources_are_read_back_and_absent_in_older_manifests(
    tmp_path: Path,
) -> None:
    scene = filled(Scene(tmp_path, DROPS))
    scene.first.database.drop_column(SMALL.name, "n")
    put_narrow(scene.first, 30, "narrow")
    scene.batch()
    manifest = scene.first.driver.table.manifest
    data = encode_manifest(manifest)
    assert decode_manifest(data, "m") == manifest
    older = json.loads(data)
    for source in older["sources"]:
        del source["columns"]
    sources = decode_manifest(json.dumps(older).encode(), "m").sources.values()
    assert [source.own_presences for source in sources] == [{}, {}]
