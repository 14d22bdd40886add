"""Reset: a table is reloaded from its topic, like a new table."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.ingest.reset import TopicStart, plan_reset
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.changes import changes_of
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from tests.support.by_hand import created
from tests.support.hourly import Hourly
from tests.support.shards import Scene
from tests.support.simulated import require_finished, require_true, rows_of

ANEW = TopicStart("another topic's id", {0: Offset(0), 1: Offset(0)})


@pytest.fixture
def fed(tmp_path: Path) -> Hourly:
    return Hourly(tmp_path)


def reset(fed: Hourly) -> int:
    table = fed.driver.table
    assert table.snapshot is not None
    intent = plan_reset(table.snapshot, {table.source.topic: ANEW}, table.generation)
    assert isinstance(table.commit(intent), Committed)
    return table.version


@pytest.mark.slow
def test_a_table_that_starts_again_is_empty_and_older_versions_stay(fed: Hourly) -> None:
    before = fed.live(0, 1, 2)
    there = [rows_of(fed.store, view, before) for view in View]
    version = reset(fed)
    manifest = open_snapshot(fed.store).manifest
    assert (manifest.files, manifest.deltas, manifest.runs) == ({}, (), ())
    assert not manifest.schema.columns
    (source,) = manifest.sources.values()
    assert (source.topic_id, source.ordering, set(source.partitions)) == (
        ANEW.id,
        None,
        {0, 1},
    )
    assert [rows_of(fed.store, view, before) for view in View] == there
    assert next(history(fed.store)).info.operation == "RESET"
    folder = fed.folder / fed.driver.name.path
    assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == 0
    DeltaLogKeeper(folder).checkpoint(version)
    assert not open_snapshot(fed.store).manifest.files
    with pytest.raises(UnsupportedError):
        list(changes_of(fed.store, version, [], manifest.schema))


@pytest.mark.slow
@pytest.mark.parametrize("waiting", [False, True])
def test_reading_the_whole_topic_again_gives_the_same_rows(fed: Hourly, waiting: bool) -> None:
    fed.live(0, 1, 2)
    fed.source.topic.append(0, fed.source.delete(2))
    fed.source.add_column("added", 5)
    fed.live(1, 3)
    if waiting:
        fed.source.topic.append(1, fed.source.put(1))
        fed.driver.batch()
    reset(fed)
    fed.read_again()
    fed.live(0, 2, 9)
    require_finished(fed.source, fed.driver)


@pytest.mark.slow
def test_a_reset_clears_the_reason_for_parking(fed: Hourly) -> None:
    fed.live(0, 1)
    fed.driver.table.park(ParkReason(ParkCode.TOPIC_RECREATED, "the topic is another one"))
    reset(fed)
    assert fed.driver.table.parked is None
    fed.driver.batch()
    require_true(fed.source, fed.store)


@pytest.mark.slow
def test_writers_that_began_before_a_reset_write_again(fed: Hourly) -> None:
    fed.live(0, 1)
    fed.source.topic.append(0, fed.source.put(0))
    fed.driver.batch()
    splice = fed.driver.plan_compaction()
    starts = fed.driver.table.next_offsets((0, 1))
    reset(fed)
    assert splice is not None
    assert isinstance(fed.driver.table.commit(splice), Conflict)
    fed.source.topic.append(0, fed.source.put(0))
    assert isinstance(fed.driver.attempt(starts=starts), Conflict)
    fed.driver.batch()
    require_true(fed.source, fed.store)


@pytest.mark.slow
def test_a_table_of_several_topics_starts_again_as_a_whole(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    for shard in scene.shards:
        shard.put(0, 1, 2)
    scene.settle()
    scene.first.put(1, value=2)
    scene.second.drop(0)
    scene.settle()
    table = scene.first.driver.table
    assert table.snapshot is not None
    starts = {
        topic: TopicStart(source.topic_id, {0: Offset(0), 1: Offset(0)}, source.shard)
        for topic, source in table.manifest.sources.items()
    }
    assert isinstance(table.commit(plan_reset(table.snapshot, starts, 1)), Committed)
    assert Table(scene.store).topics == tuple(starts)
    assert Table(scene.store).read().num_rows == 0
    scene.second.put(9)
    scene.settle()


def test_a_table_fed_by_hand_is_refused(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    created(store, [{"id": 1, "name": "a", "n": 0, "price": None}])
    with pytest.raises(UsageError, match="fed by hand"):
        plan_reset(open_snapshot(store), {}, 1)
