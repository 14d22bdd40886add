"""Restore: a new commit with an older version's state, after which everything continues
correctly.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakesplice.errors import FencedError, UsageError, VersionNotFoundError
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import IS_DELETED
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    COLUMNS,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
    rows_of,
)
from tests.support.hourly import HOUR, Hourly
from tests.support.simulated import require_finished, require_tidy, require_true
from tests.support.simulated import rows_of as fed_rows


@pytest.fixture
def fed(tmp_path: Path) -> Hourly:
    return Hourly(tmp_path)


def both(fed: Hourly, version: int | None = None) -> list[object]:
    return [fed_rows(fed.store, view, version) for view in View]


@pytest.mark.slow
def test_the_old_rows_are_the_newest_version_in_both_views_and_for_delta_readers(
    fed: Hourly,
) -> None:
    old = fed.live(0, 1, 2)
    fed.live(1, 2, 3)
    fed.driver.merge_runs(2)
    newest = fed.live(0, 4)
    made = fed.restore(old)
    assert made == newest + 1
    assert both(fed) == both(fed, old)
    require_true(fed.source, fed.store)
    delta = DeltaTable(str(fed.folder / fed.driver.name.path))
    found = delta.to_pyarrow_table(filters=[(IS_DELETED, "=", False)]).to_pylist()
    assert sorted(row["id"] for row in found) == [0, 1, 2]
    assert both(fed, newest) != both(fed, old)
    # A checkpoint of it holds up as well.
    DeltaLogKeeper(fed.folder / fed.driver.name.path).checkpoint(made)
    assert both(fed) == both(fed, old)


@pytest.mark.slow
def test_changes_since_the_restored_version_are_read_again_and_no_row_is_lost(fed: Hourly) -> None:
    old = fed.live(0, 1, 2)
    fed.source.topic.append(0, fed.source.delete(1))
    fed.live(0, 2, 3)
    fed.source.add_column("added", 5)
    fed.live(3, 4)
    fed.restore(old)
    assert fed.driver.table.next_offsets((0, 1)) == Table(fed.store, old).offsets
    for key in (0, 5):
        fed.source.topic.append(key % 2, fed.source.put(key))
    fed.read_again()


@pytest.mark.slow
def test_writers_that_began_before_a_restore_write_again(fed: Hourly) -> None:
    old = fed.live(0, 1)
    fed.source.topic.append(0, fed.source.put(0))
    fed.driver.batch()
    splice, merge = fed.driver.plan_compaction(), fed.driver.plan_run_merge(1)
    starts = fed.driver.table.next_offsets((0, 1))
    fed.restore(old)
    for late in (splice, merge):
        assert late is None or isinstance(fed.driver.table.commit(late), Conflict)
    fed.source.topic.append(0, fed.source.put(0))
    assert isinstance(fed.driver.attempt(starts=starts), Conflict)
    fed.driver.batch()
    fed.driver.compact()
    require_finished(fed.source, fed.driver)


@pytest.mark.slow
def test_a_deposed_driver_restores_nothing_and_one_deposed_by_it_writes_nothing(
    fed: Hourly,
) -> None:
    old = fed.live(0)
    fed.live(1)
    zombie = fed.driver
    fed.driver = fed.new_driver(2)
    fed.restore(old)
    fed.source.topic.append(0, fed.source.put(0))
    with pytest.raises(FencedError):
        zombie.batch(starts=fed.driver.table.next_offsets((0, 1)))
    fed.driver.batch()
    fed.driver.compact()
    require_finished(fed.source, fed.driver)


@pytest.mark.slow
def test_a_version_without_its_files_and_the_newest_one_are_refused(fed: Hourly) -> None:
    old = fed.live(0, 1)
    fed.live(0, 1)
    newest = fed.live(0, 1)
    assert fed.driver.table.snapshot is not None
    Expiry(fed.driver.table.store, fed.driver.table.commit, 1).run(
        fed.driver.table.snapshot, fed.clock.now_ms()
    )
    with pytest.raises(VersionNotFoundError, match="its files are deleted"):
        fed.restore(old)
    with pytest.raises(VersionNotFoundError, match="never written"):
        fed.restore(99)
    with pytest.raises(UsageError, match="nothing to restore"):
        fed.restore(newest + 1)


@pytest.mark.slow
def test_a_vacuum_keeps_what_a_restore_brought_back_until_that_expires_too(fed: Hourly) -> None:
    old = fed.live(0, 1, 2)
    fed.live(0, 1)
    fed.live(0)
    made = fed.restore(old)
    rows = both(fed, made)
    fed.driver = fed.new_driver(2)
    fed.live(2, 3)
    table = fed.driver.table
    for hours in (3, 2, 1, 0):
        assert table.snapshot is not None
        Expiry(table.store, table.commit, 2).run(
            table.snapshot, EpochMs(fed.clock.now_ms() - hours * HOUR * 1000)
        )
        require_true(fed.source, fed.store)
        if table.manifest.retention.retained_from <= made:
            assert both(fed, made) == rows
    fed.clock.advance(HOUR)
    assert table.snapshot is not None
    Expiry(table.store, table.commit, 2).run(table.snapshot, fed.clock.now_ms())
    assert table.manifest.retention.restores == ()
    require_tidy(fed.store)
    require_true(fed.source, fed.store)


@pytest.mark.slow
def test_a_restore_can_be_undone_by_another(fed: Hourly) -> None:
    old = fed.live(0, 1)
    newest = fed.live(0, 1, 2)
    there = both(fed)
    fed.restore(old)
    fed.restore(newest)
    assert both(fed) == there
    fed.driver = fed.new_driver(2)
    fed.live(2, 5)
    require_finished(fed.source, fed.driver)


@pytest.mark.slow
def test_history_tells_a_restore_and_each_versions_range_of_the_source(fed: Hourly) -> None:
    old = fed.live(0, 1, 2)
    fed.live(1, 3)
    made = fed.restore(old)
    entries = {entry.version: entry for entry in history(fed.store)}
    assert entries[made].info.operation == "RESTORE"
    assert entries[made].info.metrics["version"] == old
    assert entries[made].source == {1: (3, 1)}
    assert entries[0].source == {}
    ingests = [e.source for e in entries.values() if e.info.operation == "INGEST"]
    assert ingests == [{1: (1, 3)}, {0: (0, 2), 1: (0, 1)}]
    splices = [e.source for e in entries.values() if e.info.operation == "SPLICE"]
    assert all(moved == {} for moved in splices)


@pytest.mark.slow
def test_a_moment_means_the_version_that_was_the_newest_then(fed: Hourly) -> None:
    fed.live(0, 1)
    fed.live(0, 1, 2)
    for version in range(fed.driver.table.version + 1):
        moment_ms = open_snapshot(fed.store, version).timestamp_ms
        moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
        for as_of in (moment, moment.isoformat(), moment.replace(tzinfo=None).isoformat()):
            found = Table(fed.store).read(as_of=as_of).to_pylist()
            assert sorted(found, key=lambda row: row["id"]) == fed_rows(
                fed.store, View.REAL_TIME, version
            )
    with pytest.raises(VersionNotFoundError, match="is that old"):
        Table(fed.store).read(as_of="1999-01-01")
    with pytest.raises(UsageError, match="not both"):
        Table(fed.store).read(version=1, as_of="2050-01-01")
    with pytest.raises(UsageError, match="isn't a time"):
        Table(fed.store).read(as_of="yesterday")


@pytest.mark.slow
def test_a_table_fed_by_hand_continues_from_the_restored_rows(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [{"id": key, "name": "a", "n": 0, "price": None} for key in range(3)])
    old, truth = table.version, rows_of(table)
    table.upsert(given([{**truth[1], "n": 7}, {**truth[0], "id": 9}], COLUMNS.names))
    table.upsert(delete=given([{"id": 2}], ["id"]), transaction=("loader", 5))
    table.compact()
    assert table.restore(old) == table.version
    require_rows(table, truth)
    # Its transaction is not in the table any more, so it may come again.
    done = table.upsert(given([{**truth[2], "n": 1}], COLUMNS.names), transaction=("loader", 5))
    assert (done.updated, done.repeated) == (1, False)
    table.upsert(given([{**truth[0], "id": 9, "n": 3}], COLUMNS.names))
    table.compact()
    require_rows(table, {**truth, 2: {**truth[2], "n": 1}, 9: {**truth[0], "id": 9, "n": 3}})
    require_sound_index(store, table)
    with pytest.raises(UsageError, match="which version"):
        table.restore()


def test_an_upsert_that_a_restore_overtakes_is_located_again(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [{"id": 1, "name": "a", "n": 0, "price": None}])
    table.upsert(given([{"id": 2, "name": "b", "n": 0, "price": None}], COLUMNS.names))
    overtaken: list[Call] = []

    def overtake(call: Call) -> None:
        if call.method == "put_new" and not overtaken:
            overtaken.append(call)
            table.restore(0)

    late = opened(FaultyStore(store, before_call=overtake), 99)
    late.upsert(given([{"id": 2, "name": "c", "n": 1, "price": None}], COLUMNS.names))
    assert overtaken
    require_rows(
        late,
        {
            1: {"id": 1, "name": "a", "n": 0, "price": None},
            2: {"id": 2, "name": "c", "n": 1, "price": None},
        },
    )
    require_sound_index(store, late)
