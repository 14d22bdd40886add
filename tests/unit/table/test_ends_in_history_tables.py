"""History tables whose source is truncated or dropped: the versions of all its rows end there. At
a new snapshot of the whole table those of rows end that it lacks.

`tests/property/test_history_laws.py` draws TRUNCATEs and snapshots among other changes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.reading.table import Table
from tests.support.dropping import Scene as DropScene
from tests.support.erasing import erase_keys
from tests.support.shards import Scene
from tests.support.simulated import SMALL
from tests.support.versions import HistoryWorld, in_duckdb, intervals


def world_of(path: Path, *transactions: list[tuple[str, int]], **more: Any) -> HistoryWorld:
    """A world in which these transactions were read in one batch."""
    world = HistoryWorld(path, **more)
    for statements in transactions:
        world.servers.commit(statements)
    world.send(len(transactions))
    world.batch()
    return world


def require_versions(world: HistoryWorld) -> None:
    expected = world.servers.history(world.sent, world.whole)
    assert intervals(world.table.read_history()) == in_duckdb(world.table) == expected


@pytest.mark.slow
def test_a_row_that_comes_back_as_it_was_after_a_truncate_is_a_new_version(tmp_path: Path) -> None:
    world = world_of(tmp_path, [("put", 1)], [("touch", 1)], [("truncate", 0)], [("return", 1)])
    rows = world.table.read(columns=["_history_op", "id"]).to_pylist()
    assert {"_history_op": "t", "id": 0} in rows
    require_versions(world)
    assert world.table.read_history()["is_current"].to_pylist() == [False, True]
    world.next = 0
    world.send(2)
    world.batch()
    require_versions(world)


@pytest.mark.slow
def test_a_truncate_that_another_server_sends_again_counts_where_it_was_sent_last(
    tmp_path: Path,
) -> None:
    """Row 2 couldn't be read from the first server. From the second it comes after the first one's
    TRUNCATE, and mustn't begin there.
    """
    world = world_of(tmp_path, [("put", 1)])
    for statements in ([("put", 2)], [("truncate", 0)]):
        world.servers.commit(statements)
    world.send(1, readable=False)
    world.send(1)
    world.batch()
    world.server, world.next = 2, 0
    world.send(3)
    world.batch()
    require_versions(world)


def test_with_ignore_a_truncate_ends_no_version(tmp_path: Path) -> None:
    ignoring = SchemaPolicy(truncate_table=Behaviour.IGNORE)
    world = world_of(tmp_path, [("put", 1)], [("truncate", 0)], policy=ignoring)
    assert world.table.read_history(current=True).num_rows == 1


@pytest.mark.slow
def test_a_truncate_in_the_first_batch_ends_rows_of_other_partitions(tmp_path: Path) -> None:
    """Partition 0 has nothing but the TRUNCATE, so only partition 1 shows the columns."""
    world = HistoryWorld(tmp_path)
    for statements in ([("put", 1)], [("truncate", 0)]):
        world.servers.commit(statements)
    (put,), (end,) = (world.servers.events(number, 1) for number in range(2))
    world.topic.append(1, [put])
    world.topic.append(0, [end])
    world.sent = {0, 1}
    world.batch()
    require_versions(world)


@pytest.mark.slow
def test_erasing_the_key_that_stands_in_an_end_leaves_the_end(tmp_path: Path) -> None:
    world = world_of(tmp_path, [("put", 0), ("put", 1)], [("truncate", 0)])
    assert erase_keys(world.driver, [0]).rows == 1
    (left,) = world.table.read_history().to_pylist()
    assert (left["id"], left["is_current"]) == (1, False)


def snapshot_without(world: HistoryWorld, *keys: int) -> None:
    """Delete rows unseen, let the connector read all anew, and go on in both partitions."""
    world.servers.commit([("delete", key) for key in keys])
    world.snapshot()
    world.servers.commit([("put", key) for key in range(10, 14)])
    world.send(1)
    world.batch()


@pytest.mark.slow
def test_a_late_change_from_before_a_snapshot_ends_there_unless_the_snapshot_has_its_row(
    tmp_path: Path,
) -> None:
    """Of row 3 nothing was known when the snapshot was read."""
    world = world_of(tmp_path, [("put", key) for key in range(3)], [("touch", 1)])
    world.servers.commit([("put", 1), ("put", 2), ("put", 3)])
    world.send(1, readable=False)
    snapshot_without(world, 2, 3)
    assert world.whole == [4]
    world.replay_letters()
    require_versions(world)
    lives = {row["id"]: row["is_current"] for row in world.table.read_history().to_pylist()}
    assert [lives[key] for key in range(4)] == [True, True, False, False]
    for statements in ([("return", 2)], [("put", 1)]):
        world.servers.commit(statements)
    world.send(2)
    world.batch()
    require_versions(world)
    snapshot_without(world, 1)
    assert world.whole == [4, 9]
    require_versions(world)


@pytest.mark.slow
def test_a_row_ends_at_the_snapshot_that_lacks_it_and_not_at_a_truncate_after_it(
    tmp_path: Path,
) -> None:
    """Both are read in one batch, and another snapshot after them shows that row 2 is as before."""
    world = world_of(tmp_path, [("put", key) for key in range(4)])
    world.servers.commit([("delete", 1)])
    world.snapshot()
    world.servers.commit([("truncate", 0)])
    world.servers.commit([("return", key) for key in range(4)])
    world.send(2)
    world.batch()
    assert world.whole == [2]
    require_versions(world)
    world.servers.commit([("delete", 3)])
    world.snapshot()
    world.servers.commit([("touch", key) for key in (0, 1, 2)])
    world.send(1)
    world.batch()
    assert len(world.whole) == 2
    require_versions(world)


@pytest.mark.slow
def test_erasing_leaves_the_end_of_a_snapshot_which_other_rows_need(tmp_path: Path) -> None:
    world = world_of(tmp_path, [("put", key) for key in range(3)])
    snapshot_without(world, 0, 1)
    assert erase_keys(world.driver, [0]).live == 0
    (left,) = (row for row in world.table.read_history().to_pylist() if row["id"] == 1)
    assert not left["is_current"]
    assert {"_history_op": "s", "id": 0} in world.table.read(
        columns=["_history_op", "id"]
    ).to_pylist()


def shown(scene: Scene) -> list[tuple[str, int, bool]]:
    """The shard, the key and whether it is current, of each version; two readers agree."""
    found = Table(scene.store)
    rows = found.read_history()
    assert intervals(rows, "database_name") == in_duckdb(found, "database_name")
    listed = rows.to_pylist()
    return sorted((row["database_name"], row["id"], row["is_current"]) for row in listed)


@pytest.mark.slow
def test_a_snapshot_of_a_shard_ends_only_its_rows(tmp_path: Path) -> None:
    scene = Scene(tmp_path, keeps_versions=True)
    for shard in scene.shards:
        shard.put(1, 2)
    scene.batch()
    first = scene.first
    first.database.delete(SMALL.name, [(1,)])
    first.database.drain()
    first.topic.append(0, first.database.snapshot())
    first.database.insert(SMALL.name, [(3, "later", 3)])
    first.send(1)
    scene.batch()
    assert shown(scene) == [
        ("shop_0", 1, False), ("shop_0", 2, True), ("shop_0", 3, True),
        ("shop_1", 1, True), ("shop_1", 2, True),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_truncate_of_a_shard_ends_only_its_rows(tmp_path: Path) -> None:
    scene = Scene(tmp_path, keeps_versions=True)
    for shard in scene.shards:
        shard.put(1, 2)
    scene.first.truncate()
    scene.batch()
    assert shown(scene) == [
        ("shop_0", 1, False), ("shop_0", 2, False), ("shop_1", 1, True), ("shop_1", 2, True)
    ]  # fmt: skip
    scene.first.put(1)
    scene.second.truncate()
    scene.batch()
    assert [row for row in shown(scene) if row[2]] == [("shop_0", 1, True)]


def dropped(path: Path, behaviour: Behaviour) -> tuple[DropScene, list[Any]]:
    """A table that was dropped, and created again with one row; and a change from before that
    isn't read yet.
    """
    scene = DropScene(path, behaviour, keeps_versions=True)
    scene.take(scene.ledger.insert(0, 3))
    late = scene.ledger.update([1], "late")
    scene.drop(range(3))
    return scene, late


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", [Behaviour.EVOLVE, Behaviour.LENIENT])
def test_a_drop_ends_all_versions_once_and_a_late_change_is_an_ended_one(
    tmp_path: Path, behaviour: Behaviour
) -> None:
    scene, late = dropped(tmp_path, behaviour)
    dealt = scene.deal()
    assert dealt is not None
    assert not dealt.parked
    scene.take(scene.ledger.insert(1, 2))
    scene.take(late, 1)
    scene.restart()
    assert scene.deal() is None
    found = Table(scene.store).read_history().sort_by("id")
    assert found["id"].to_pylist() == [0, 1, 1, 1, 2]
    assert found["is_current"].to_pylist().count(True) == 1
    ended = found.filter(~found["is_current"].to_numpy())
    assert pc.max(ended["valid_to"]).as_py() - ended["valid_from"][0].as_py() == timedelta(
        minutes=1
    )
    assert not scene.driver.table.manifest.deltas


@pytest.mark.slow
def test_a_drop_that_is_reported_after_a_snapshot_ends_versions_at_its_own_moment(
    tmp_path: Path,
) -> None:
    scene, _ = dropped(tmp_path, Behaviour.EVOLVE)
    scene.ledger.insert(1, 2)
    scene.take(scene.ledger.snapshot())
    scene.take(scene.ledger.insert(5, 6), 1)
    assert Table(scene.store).read()["_history_op"].to_pylist().count("s") == 1
    (before,) = ended(scene, 2)
    scene.deal()
    (after,) = ended(scene, 2)
    assert after != before
    assert [*ended(scene, 0), *ended(scene, 1)] == [after, after]
    assert Table(scene.store).read_history(["id"], current=True).num_rows == 2


@pytest.mark.slow
def test_each_drop_ends_versions_however_late_it_is_reported(tmp_path: Path) -> None:
    """Two DROPs, the first of which a TRUNCATE follows, are reported once all rows were read."""
    scene = DropScene(tmp_path, Behaviour.LENIENT, keeps_versions=True)
    moments = []
    for key, end in enumerate(("drop", "truncate", "drop", "")):
        scene.take(scene.ledger.insert(key, key + 1))
        if not end:
            continue
        place = scene.dropped([key])
        record = json.loads(place.value or b"")
        source = record["payload"]["source"]
        moment = source["ts_ms"] + 60_000 * (key + 1)
        source |= {"ts_ms": moment, "ts_us": moment * 10**3, "ts_ns": moment * 10**6}
        moments.append([datetime.fromtimestamp(moment / 1000, UTC)])
        if end == "truncate":
            record["payload"].update(op="t", before=None, after=None)
            scene.take([place._replace(key=None, value=json.dumps(record).encode())])
        else:
            scene.teller.drop(place, ts_ms=moment)
            scene.teller.create(place)
    scene.deal()
    assert [ended(scene, key) for key in range(4)] == [*moments, []]
    scene.restart()
    assert scene.deal() is None


def ended(scene: DropScene, key: int) -> list[Any]:
    """When the ended versions of a row ended."""
    rows = Table(scene.store).read_history().to_pylist()
    return [row["valid_to"] for row in rows if row["id"] == key and not row["is_current"]]


def test_with_exception_a_drop_parks_while_a_version_is_above_the_last_end(tmp_path: Path) -> None:
    scene, _ = dropped(tmp_path, Behaviour.EXCEPTION)
    dealt = scene.deal()
    assert dealt is not None
    assert dealt.parked
    assert scene.driver.table.parked is not None
    assert scene.driver.table.parked.code is ParkCode.DROPPED
    assert scene.driver.table.source.fence == BEFORE_ALL
