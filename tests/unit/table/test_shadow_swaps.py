"""A filled shadow takes its table's place; one that isn't filled, or lacks something, doesn't."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import CorruptFileError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.shadow_plan import FilledFrom
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.shadow import is_past_reads, swap_intent, swapped_version, unready
from lakesplice.table.protocol.commit import Conflict, ConflictCode
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock
from tests.support.shadows import Filling, ReadSource, filled
from tests.support.simulated import SMALL, driver_of, row, rows_of


@pytest.fixture
def source() -> ReadSource:
    """Rows 0 to 4, of which no event tells."""
    source = ReadSource()
    source.database.load(SMALL.name, [row(key, key) for key in range(5)])
    return source


def test_only_a_filled_shadow_becomes_the_table(source: ReadSource, tmp_path: Path) -> None:
    filling = Filling(source, LocalStore(tmp_path), FixedClock(), 7)
    filling.commit(1, filling.read(1))
    shadow = filling.driver.table.snapshot
    assert shadow is not None
    with pytest.raises(UsageError, match="1 of 3 chunks are read"):
        swap_intent(filling.store, shadow, 1, None)


@pytest.mark.slow
def test_a_shadow_behind_the_table_does_not_take_its_place(
    source: ReadSource, tmp_path: Path
) -> None:
    lake = LocalStore(tmp_path)
    live, filling = driver_of(source, lake), Filling(source, lake, FixedClock(), 7)
    filling.fill()
    source.topic.append(0, source.put(9))
    live.batch()
    assert "partition 0 is at 0, the table's at 1" in unready(
        filling.driver.table.manifest, live.table.manifest
    )
    filling.driver.batch()
    assert unready(filling.driver.table.manifest, live.table.manifest) == ""


@pytest.mark.slow
def test_a_shadow_that_lacks_a_file_does_not_become_the_table(
    source: ReadSource, tmp_path: Path
) -> None:
    filling = Filling(source, LocalStore(tmp_path), FixedClock(), 7)
    filling.fill()
    shadow = filling.driver.table.snapshot
    assert shadow is not None
    filling.store.delete(next(iter(shadow.manifest.files)))
    with pytest.raises(CorruptFileError, match="a file of the shadow is missing"):
        swap_intent(filling.store, shadow, 1, None)


@pytest.mark.slow
def test_the_table_before_a_swap_can_be_restored(source: ReadSource, tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    live = driver_of(source, lake)
    source.topic.append(0, source.put(9))
    live.batch()
    filling = filled(source, lake, FixedClock())
    assert swapped_version(filling.store, filling.plan) == 2
    table = driver_of(source, lake, generation=2).table
    assert table.snapshot is not None
    restore(table.store, table.snapshot, 1, table.commit, 2, retries=table.retries())
    assert [found["id"] for found in rows_of(table.store)] == [9]


@pytest.mark.slow
def test_a_writer_that_began_before_a_swap_writes_again(source: ReadSource, tmp_path: Path) -> None:
    lake = LocalStore(tmp_path)
    live = driver_of(source, lake)
    source.topic.append(0, source.put(9))
    live.batch()
    source.topic.append(0, source.put(9))
    filling = Filling(source, lake, FixedClock(), 7)
    settle = live.run_tasks(live.table.next_offsets((0, 1)), source.topic.ends)
    filling.fill()
    filling.swap()
    outcome = settle()
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.OFFSETS
    assert live.batch() is CommitOutcome.DONE
    assert rows_of(live.table.store) == source.present()


@pytest.mark.slow
def test_a_shadow_is_past_its_reads_once_every_partition_is(
    source: ReadSource, tmp_path: Path
) -> None:
    filling = Filling(source, LocalStore(tmp_path), FixedClock(), 7)
    filling.fill()
    manifest = filling.driver.table.manifest
    assert not is_past_reads(manifest)
    source.topic.append(0, source.put(0))
    filling.driver.batch()
    assert not is_past_reads(filling.driver.table.manifest)
    source.topic.append(1, source.put(1))
    filling.driver.batch()
    assert is_past_reads(filling.driver.table.manifest)


@pytest.mark.slow
def test_a_topic_that_is_read_again_from_its_start_makes_a_table_without_what_it_never_told(
    source: ReadSource, tmp_path: Path
) -> None:
    lake, topic = LocalStore(tmp_path), source.topic
    live = driver_of(source, lake)
    for key in range(3):
        topic.append(key % 2, source.put(key))
        assert live.batch() is CommitOutcome.DONE
    topic.append(0, source.delete(1))
    assert live.batch() is CommitOutcome.DONE
    before = live.table.version
    filling = Filling(source, lake, FixedClock(), 7, filled_from=FilledFrom.TOPIC)
    assert filling.plan.chunks == 0
    filling.driver.batch({0: Offset(1), 1: Offset(0)})
    live_now = open_snapshot(filling.store)
    assert "partition" in unready(filling.driver.table.manifest, live_now.manifest)
    filling = Filling(source, lake, FixedClock(), 8, filled_from=FilledFrom.TOPIC)
    filling.driver.batch()
    filling.swap()
    assert [row["id"] for row in rows_of(filling.store)] == [0, 2]
    assert open_snapshot(filling.store).version == before + 1
    topic.append(1, source.put(9))
    successor = driver_of(source, lake, generation=2, seed=5)
    assert successor.batch() is CommitOutcome.DONE
    assert [row["id"] for row in rows_of(filling.store)] == [0, 2, 9]
