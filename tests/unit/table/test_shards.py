"""Shards in one table: topics of servers whose positions start at the same numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.errors import UsageError
from lakesplice.formats.manifests import decode_manifest, encode_manifest
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.reading.table import Table
from lakesplice.testing.shop.columns import integer
from lakesplice.testing.simulation import SimulatedTopic
from tests.support.shards import Scene, Shard, by_key, filled
from tests.support.simulated import SMALL, require_tidy

ALL_THAT_IS_DELETED = 1 << 60


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.slow
def test_equal_keys_of_two_shards_are_two_rows_at_equal_positions(scene: Scene) -> None:
    filled(scene)
    scene.first.put(0, 1, value=2)
    scene.second.drop(0)
    scene.second.put(7, value=3)
    scene.settle()
    table = Table(scene.store)
    found = table.read(include_system=True).to_pylist()
    assert {row["database_name"] for row in found} == {"shop_0", "shop_1"}
    positions = {(row["_position_file"], row["_position_offset"]) for row in found}
    assert len(positions) < len(found)
    assert tuple(table.snapshot.manifest.schema.key) == ("database_name", "id")


@pytest.mark.slow
def test_a_truncate_of_a_shard_leaves_the_others_rows(scene: Scene) -> None:
    filled(scene)
    scene.first.put(0, value=2)
    scene.first.truncate()
    scene.first.put(3, value=4)
    scene.settle()
    assert len(scene.second.rows) == 5
    scene.second.put(9)  # below the first one's fence, by numbers that say nothing here
    scene.settle()


@pytest.mark.slow
def test_a_new_snapshot_of_a_shard_deletes_what_it_lacks_there_and_nowhere_else(
    scene: Scene,
) -> None:
    filled(scene)
    scene.first.database.delete(SMALL.name, [(1,), (2,)])
    scene.first.database.drain()  # lost: nobody tells of these
    scene.first.topic.append(0, scene.first.database.snapshot())
    scene.batch()
    scene.first.put(4, value=8)
    events = scene.first.topic.events(0)[-1:]
    scene.first.topic.append(1, events)  # read to its end there, too
    scene.settle()
    assert len(scene.first.rows) == 3


@pytest.mark.slow
def test_a_purge_asks_per_shard_what_may_still_come(scene: Scene) -> None:
    filled(scene)
    again = scene.second.topic.events(0)[:3]
    scene.first.drop(0, 1, 2)
    scene.second.drop(0, 1, 2)
    scene.settle()
    scene.first.put(4, value=5)
    scene.first.topic.append(1, scene.first.topic.events(0)[-1:])
    scene.settle()  # the second one's other partition has brought nothing: anything may come
    assert scene.first.driver.purge(ALL_THAT_IS_DELETED) is not None
    left = Table(scene.store).read(include_deleted=True).to_pylist()
    assert [found["database_name"] for found in left].count("shop_0") == len(scene.first.rows)
    assert [found["database_name"] for found in left].count("shop_1") == 5
    floors = {s.topic: s.purge_floor for s in scene.first.driver.table.manifest.sources.values()}
    assert floors[scene.second.topic.name] == BEFORE_ALL < floors[scene.first.topic.name]
    scene.second.topic.append(1, again)
    scene.second.put(20, 21)
    scene.settle()


@pytest.mark.slow
def test_shards_are_altered_one_after_the_other(scene: Scene) -> None:
    filled(scene)
    scene.first.database.add_column(SMALL.name, integer("extra"))
    scene.first.put(10, value=2)
    scene.settle()
    scene.second.put(10, 0, value=3)
    scene.settle()
    scene.second.database.add_column(SMALL.name, integer("extra"))
    scene.second.put(11, 1, value=4)
    scene.first.put(1, value=5)
    scene.settle()


@pytest.mark.slow
def test_one_shard_is_parked_and_the_others_continue(scene: Scene) -> None:
    filled(scene)
    scene.first.put(30, value=2)
    last = scene.first.topic.events(0)[-1]
    fallen = json.loads(last.value or b"")
    fallen["payload"]["source"].update(pos=1, gtid=None)
    scene.first.topic.append(0, [last._replace(value=json.dumps(fallen).encode())])
    scene.batch()
    table = scene.first.driver.table
    assert table.parked is not None
    assert table.parked.code is ParkCode.POSITIONS_FELL_BACK
    assert scene.second.driver.table.parked is None
    assert table.manifest.parked is None
    scene.second.put(31, value=3)
    assert scene.second.driver.batch() is CommitOutcome.DONE
    rows = Table(scene.store).read().to_pylist()
    assert by_key([r for r in rows if r["database_name"] == "shop_1"]) == by_key(scene.second.rows)


def brought_at_once(scene: Scene, *keys: int) -> list[object]:
    """What becomes of changes of all shards, whose tasks ran before any of them was settled."""
    settling = []
    for shard in scene.shards:
        shard.put(*keys, value=6)
        ends = shard.topic.ends
        settling.append(shard.driver.run_tasks(shard.driver.table.next_offsets(ends), ends))
    return [settled() for settled in settling]


@pytest.mark.slow
def test_two_topics_bring_keys_at_once_and_neither_is_refused(scene: Scene) -> None:
    assert brought_at_once(filled(scene), 40, 41, 0) == [CommitOutcome.DONE, CommitOutcome.DONE]
    scene.settle()


@pytest.mark.slow
def test_after_one_topic_added_a_column_the_other_topic_with_it_runs_again(
    scene: Scene,
) -> None:
    assert brought_at_once(scene, 1, 2) == [
        CommitOutcome.AGAIN,
        CommitOutcome.AGAIN,
    ]  # neither finds a table
    scene.settle()


@pytest.mark.slow
def test_a_shard_that_comes_later_and_another_driver_continue_where_the_table_stands(
    scene: Scene,
) -> None:
    filled(scene)
    scene.shards.append(Shard(scene.lake, 2, scene.first))
    scene.shards[2].put(0, 1)
    scene.settle()
    scene.first.start(None, generation=2)
    for shard in scene.shards[1:]:
        shard.start(scene.first, generation=2)
    for shard in scene.shards:
        shard.put(2, 3, value=9)
    scene.settle()
    manifest = Table(scene.store).snapshot.manifest
    assert list(manifest.sources) == [shard.topic.name for shard in scene.shards]
    data = encode_manifest(manifest)
    assert json.loads(data)["format"] == 6
    assert decode_manifest(data, "m") == manifest


def test_the_state_of_each_topic_is_read_back_from_the_manifest(scene: Scene) -> None:
    filled(scene)
    manifest = scene.first.driver.table.manifest
    reason = ParkReason(ParkCode.ORDER_UNKNOWN, "ask", scene.first.topic.name, 1, Offset(7))
    first = replace(manifest.sources[reason.topic], purge_floor=Position(1, 2), parked=reason)
    told = manifest.with_source(first)
    assert first.keys_version > 0
    assert decode_manifest(encode_manifest(told), "m") == told


@pytest.mark.slow
def test_offsets_in_the_log_name_their_topics(scene: Scene) -> None:
    filled(scene)
    table = Table(scene.store)
    told = json.loads(next(table.history()).info.parameters["offsets"])
    assert told == {
        shard.topic.name: {str(at): end for at, end in shard.topic.ends.items()}
        for shard in scene.shards
    }
    with pytest.raises(UsageError):
        _ = table.offsets
    assert table.offsets_of(scene.second.topic.name) == scene.second.topic.ends


@pytest.mark.slow
def test_the_history_has_what_each_topic_brought(scene: Scene) -> None:
    scene.first.put(0, 1)
    scene.first.driver.batch()
    scene.first.put(2)
    scene.second.put(0)
    scene.batch()
    entries = [entry for entry in Table(scene.store).history() if entry.info.operation == "INGEST"]
    first, second = scene.first.topic.name, scene.second.topic.name
    assert [(dict(entry.source or {}), dict(entry.sources)) for entry in entries] == [
        ({}, {second: {0: (0, 1)}}),
        ({0: (2, 3)}, {}),
        ({0: (0, 2)}, {}),
    ]
    scene.first.put(3)
    scene.first.driver.batch()
    newest = next(Table(scene.store).history())
    assert (newest.source, newest.sources) == ({}, {first: {0: (3, 4)}})
    joined = next(e for e in Table(scene.store).history() if e.info.operation == "REDIRECT")
    assert not joined.sources


@pytest.mark.slow
def test_a_topic_whose_rows_cannot_be_told_apart_does_not_join(scene: Scene) -> None:
    filled(scene)
    twin = Shard(scene.lake, 1, scene.first)
    twin.topic = SimulatedTopic("other.shop_1.goods", 2)
    twin.start(scene.first)
    twin.topic.append(0, scene.second.topic.events(0))
    with pytest.raises(UsageError, match="two topics have the same values"):
        twin.driver.table.create_or_open(scene.first.driver.table.schema)
    assert len(Table(scene.store).topics) == 2


@pytest.mark.slow
def test_the_first_topic_alone_keeps_its_state_when_a_second_one_joins(scene: Scene) -> None:
    scene.first.put(0, 1, 2)
    scene.first.driver.batch()
    scene.first.put(0, value=3)
    scene.first.driver.batch()
    manifest = scene.first.driver.table.manifest
    assert manifest.deltas
    assert json.loads(encode_manifest(replace(manifest, deltas=())))["format"] < 5
    scene.second.put(0)
    scene.second.driver.batch()
    manifest = scene.first.driver.table.manifest
    assert [delta.topic for delta in manifest.deltas] == [scene.first.topic.name]
    scene.settle()
    require_tidy_now(scene)


def require_tidy_now(scene: Scene) -> None:
    table = scene.first.driver.table
    table.commit(Redirect(table.generation, table.version))
    require_tidy(scene.store)
