from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.errors import FencedError
from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.reading.scan import View
from tests.support.simulated import Source, driver_of, require_finished, require_true, rows_of


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def lake(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path)


def put(source: Source, keys: range, partition: int = 0) -> None:
    for key in keys:
        source.topic.append(partition, source.put(key))


@pytest.mark.slow
def test_after_compaction_both_views_hold_what_was_sent(source: Source, lake: LocalStore) -> None:
    driver = driver_of(source, lake)
    put(source, range(10))
    assert driver.batch() is CommitOutcome.DONE
    put(source, range(5))
    source.topic.append(0, source.delete(7))
    source.topic.append(0, source.move(8, 80))
    assert driver.batch() is CommitOutcome.DONE
    require_true(source, driver.table.store)
    stale = rows_of(driver.table.store, View.READ_OPTIMISED)
    assert stale != source.truth(source.topic.ends)
    assert isinstance(driver.compact(), Committed)
    require_finished(source, driver)


def test_a_committed_batch_is_refused_if_it_is_repeated(source: Source, lake: LocalStore) -> None:
    driver = driver_of(source, lake)
    put(source, range(3))
    driver.batch()
    before = driver.table.snapshot
    outcome = driver.attempt(starts={0: Offset(0), 1: Offset(0)})
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.OFFSETS
    assert driver.batch() is CommitOutcome.DONE
    assert driver.table.snapshot == before


@pytest.mark.slow
def test_a_batch_that_skips_offsets_is_refused(source: Source, lake: LocalStore) -> None:
    driver = driver_of(source, lake)
    put(source, range(3))
    driver.batch({0: Offset(1), 1: Offset(0)})
    outcome = driver.attempt(starts={0: Offset(2), 1: Offset(0)})
    assert isinstance(outcome, Conflict)
    assert driver.batch() is CommitOutcome.DONE
    require_true(source, driver.table.store)


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [(1,), (2, 3, 5), (1, 2, 3, 4, 5, 6, 7)])
def test_how_the_topic_is_cut_into_batches_changes_nothing(
    source: Source, lake: LocalStore, cuts: tuple[int, ...]
) -> None:
    driver = driver_of(source, lake)
    put(source, range(3))
    put(source, range(3))
    source.topic.append(0, source.delete(1))
    for cut in cuts:
        assert driver.batch({0: Offset(cut), 1: Offset(0)}) is CommitOutcome.DONE
        # Not the first one's: names are drawn from it, and none is used twice.
        driver = driver_of(source, lake, seed=100 + cut)
    assert driver.batch() is CommitOutcome.DONE
    driver.compact()
    require_finished(source, driver)


@pytest.mark.slow
def test_a_partition_added_later_is_read_from_its_start(source: Source, lake: LocalStore) -> None:
    driver = driver_of(source, lake)
    put(source, range(4))
    driver.batch()
    source.topic.add_partition()
    put(source, range(2, 6), partition=2)
    assert driver.batch() is CommitOutcome.DONE
    driver.compact()
    require_finished(source, driver)


@pytest.mark.slow
def test_a_stale_driver_is_fenced_and_changes_nothing(source: Source, lake: LocalStore) -> None:
    old = driver_of(source, lake)
    put(source, range(4))
    old.batch({0: Offset(2), 1: Offset(0)})
    new = driver_of(source, lake, generation=2, seed=2)
    assert new.batch() is CommitOutcome.DONE
    with pytest.raises(FencedError):
        old.batch()
    require_true(source, new.table.store)


@pytest.mark.slow
def test_rows_from_before_an_added_column_hold_its_default(
    source: Source, lake: LocalStore
) -> None:
    driver = driver_of(source, lake)
    put(source, range(4))
    driver.batch()
    source.add_column("added", 9)
    for _ in range(4):
        put(source, range(2))
    assert driver.batch() is CommitOutcome.DONE
    held = {found["id"]: found["added"] for found in rows_of(driver.table.store)}
    assert (held[2], held[3]) == (9, 9)
    assert 9 not in (held[0], held[1])
    require_true(source, driver.table.store)
    driver.compact()
    require_finished(source, driver)


@pytest.mark.slow
def test_two_columns_added_within_a_batch_are_taken_at_once(
    source: Source, lake: LocalStore
) -> None:
    driver = driver_of(source, lake)
    put(source, range(3))
    assert driver.batch() is CommitOutcome.DONE
    source.add_column("first", None)
    put(source, range(2))
    source.add_column("second", 5)
    put(source, range(3), partition=1)  # this partition never shows the first column alone
    assert driver.batch() is CommitOutcome.DONE
    assert driver.table.schema.names[-2:] == ("first", "second")
    require_true(source, driver.table.store)
