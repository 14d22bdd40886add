"""Purged rows stay deleted, whatever records are read again, and no other row is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.position import BEFORE_ALL
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.outcomes import ConflictCode
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import (
    Source,
    driver_of,
    folder,
    require_true,
    rows_of,
)
from tests.support.steps import ALL, Step, read_again, steps, take_step


def started(source: Source, path: Path) -> SimulatedDriver:
    return driver_of(source, LocalStore(path))


def send(source: Source, events: list[Event], partition: int = 0) -> None:
    source.topic.append(partition, events)


def take_all(driver: SimulatedDriver) -> None:
    assert driver.batch() is CommitOutcome.DONE
    driver.compact()


def stored(driver: SimulatedDriver) -> int:
    return sum(file.rows for file in driver.table.manifest.files.values())


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(taken=st.lists(steps(), min_size=5, max_size=40))
def test_a_purged_table_is_true_after_anything_and_after_all_of_it_again(
    taken: list[Step],
) -> None:
    source = Source()
    with folder() as path:
        driver = started(source, path)
        send(source, source.put(0), 0)
        send(source, source.put(1), 1)
        take_all(driver)
        for step in taken:
            take_step(step, source, driver)
            require_true(source, driver.table.store)
            bound = purge_bound(driver.table.manifest)
            assert bound is not None
            floor = driver.table.manifest.purge_floor
            assert floor == BEFORE_ALL or floor < bound
        take_all(driver)
        driver.purge(ALL)
        before = rows_of(driver.table.store)
        read_again(driver)
        driver.compact()
        require_true(source, driver.table.store)
        assert rows_of(driver.table.store) == before


def deleted_and_passed(path: Path) -> tuple[Source, SimulatedDriver]:
    """A table of two rows and a tombstone, which both partitions have passed."""
    source = Source()
    driver = started(source, path)
    for key in range(3):
        send(source, source.put(key), key % 2)
    take_all(driver)
    send(source, source.delete(1), 1)
    for key in (0, 2):
        send(source, source.put(key), 0)
    send(source, source.put(3), 1)
    take_all(driver)
    return source, driver


@pytest.mark.slow
def test_a_tombstone_leaves_and_its_key_may_come_back(tmp_path: Path) -> None:
    source, driver = deleted_and_passed(tmp_path)
    rows = stored(driver)
    assert isinstance(driver.purge(ALL), Committed)
    assert stored(driver) == rows - 1
    require_true(source, driver.table.store)
    assert driver.purge(ALL) is None
    read_again(driver)
    driver.compact()
    assert stored(driver) == rows - 1
    inserted = [
        entry.info.metrics.get("below_floor") for entry in Table(driver.table.store).history()
    ]
    assert any(inserted)
    send(source, source.put(1), 1)
    take_all(driver)
    require_true(source, driver.table.store)
    assert 1 in {row["id"] for row in rows_of(driver.table.store)}


@pytest.mark.slow
def test_rows_deleted_recently_are_not_purged(tmp_path: Path) -> None:
    _, driver = deleted_and_passed(tmp_path)
    assert driver.purge(0) is None


@pytest.mark.slow
def test_no_row_is_purged_that_a_partition_has_not_passed(tmp_path: Path) -> None:
    source = Source()
    driver = started(source, tmp_path)
    for key in range(3):
        send(source, source.put(key), key % 2)
    take_all(driver)
    send(source, source.delete(0), 0)
    send(source, source.put(2), 0)
    take_all(driver)
    assert driver.purge(ALL) is None
    send(source, source.put(0), 1)  # back, in the partition that is behind
    send(source, source.delete(2), 0)
    driver.batch({**driver.table.next_offsets((0, 1)), 0: source.topic.ends[0]})
    driver.compact()
    assert driver.purge(ALL) is None
    take_all(driver)
    require_true(source, driver.table.store)
    send(source, source.put(4), 1)
    send(source, source.put(5), 0)
    take_all(driver)
    assert isinstance(driver.purge(ALL), Committed)
    require_true(source, driver.table.store)


@pytest.mark.slow
def test_no_row_above_an_open_dead_letter_is_purged(tmp_path: Path) -> None:
    source = Source()
    driver = started(source, tmp_path)
    for key in range(4):
        send(source, source.put(key), key % 2)
    send(source, source.delete(0), 0)
    send(source, source.put(2), 0)
    send(source, source.put(3), 1)
    take_all(driver)
    (event, *_) = source.put(1)
    send(source, [event._replace(value=b"{")], 1)
    take_all(driver)
    send(source, source.delete(2), 0)
    send(source, source.put(4), 0)
    send(source, source.put(5), 1)
    take_all(driver)
    (letters,) = driver.table.manifest.dead_letters
    assert letters.position > BEFORE_ALL
    rows = stored(driver)
    assert isinstance(driver.purge(ALL), Committed)
    assert stored(driver) == rows - 1  # of the two tombstones, the one below the letter
    assert driver.table.manifest.purge_floor < letters.position
    assert driver.purge(ALL) is None


@pytest.mark.slow
def test_a_change_committed_while_a_purge_runs_is_not_lost(tmp_path: Path) -> None:
    source, driver = deleted_and_passed(tmp_path)
    planned = driver.plan_purge(ALL)
    assert planned is not None
    for key in (0, 2, 3):
        send(source, source.put(key), key % 2)
    assert driver.batch() is CommitOutcome.DONE
    outcome = driver.table.commit(planned)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.DELTAS
    require_true(source, driver.table.store)
    driver.compact()
    assert isinstance(driver.purge(ALL), Committed)
    require_true(source, driver.table.store)


@pytest.mark.slow
def test_a_batch_located_before_a_purge_is_located_again(tmp_path: Path) -> None:
    source, driver = deleted_and_passed(tmp_path)
    late = started(source, tmp_path)
    send(source, source.put(0), 0)
    assert isinstance(driver.purge(ALL), Committed)
    assert isinstance(late.attempt(), Conflict)
    assert late.batch() is CommitOutcome.DONE
    require_true(source, late.table.store)


@pytest.mark.slow
def test_a_restore_takes_the_floor_back_with_the_rows(tmp_path: Path) -> None:
    source, driver = deleted_and_passed(tmp_path)
    before, rows = driver.table.version, stored(driver)
    driver.purge(ALL)
    table = driver.table
    assert table.snapshot is not None
    restore(
        table.store,
        table.snapshot,
        before,
        table.commit,
        table.generation,
        retries=table.retries(),
    )
    assert table.manifest.purge_floor == BEFORE_ALL
    assert stored(driver) == rows
    read_again(driver)
    driver.compact()
    require_true(source, table.store)


def test_the_feed_of_changes_tells_nothing_of_a_purge(tmp_path: Path) -> None:
    _, driver = deleted_and_passed(tmp_path)
    driver.purge(ALL)
    table = Table(driver.table.store)
    assert table.changes(table.version).read_all().num_rows == 0
