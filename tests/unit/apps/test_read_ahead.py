"""Tables that are read while Spark starts: they open as if nothing had been read before."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakesplice.apps.service.tables import TablesReadAhead
from lakesplice.model.driver_status import DriverStatus, TopicCondition, TopicState, TopicStatus
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.driver.status import StatusPublisher
from lakesplice.table.ingest.newest_table import NewestTable
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.snapshot import Snapshot, find_snapshot, open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Fault, FaultyStore, How
from tests.support.tables import TableUnderTest, local_table

ORDERS, OTHERS = TableName("shop", "orders"), TableName("shop", "others")
FOLDER = ORDERS.path


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    table = local_table(tmp_path)
    table.create()
    return table


@pytest.fixture
def ahead(tmp_path: Path) -> Iterator[TablesReadAhead]:
    """Of a lake whose driver has reported two tables, and a topic that feeds none."""
    ran = TopicCondition(TopicState.RUNNING)
    fed = (str(ORDERS), str(OTHERS), "")
    topics = tuple(TopicStatus(f"topic{n}", table, ran, EpochMs(0)) for n, table in enumerate(fed))
    reported = DriverStatus(1, EpochMs(0), False, ".*", topics)
    StatusPublisher(LocalStore(tmp_path), 1).publish(reported)
    ahead = TablesReadAhead(LocalStore(tmp_path))
    yield ahead
    ahead.close()


def opened(store: LocalStore, known: Snapshot | None) -> Snapshot | None:
    return NewestTable(store, 1, FixedClock(), SeededEntropy(1), known=known).snapshot


def test_whatever_was_read_before_a_table_opens_with_its_newest_version(
    table: TableUnderTest, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path / FOLDER)
    versions = [table.now()]
    for number, tail in itertools.product(range(3), range(3)):
        versions.append(table.committed(table.ingest(files=(table.file(10 * number + tail),))))
        for known in (None, *versions):
            assert opened(store, known) == versions[-1] == open_snapshot(store)
        if tail == 0:
            DeltaLogKeeper(tmp_path / FOLDER).checkpoint(versions[-1].version)
        if tail == 1:  # the log is cleaned up to the checkpoint
            for version in range(versions[-2].version):
                store.delete(commit_path(version))


def test_a_table_that_was_deleted_since_has_no_version(
    table: TableUnderTest, tmp_path: Path
) -> None:
    known = table.now()
    shutil.rmtree(tmp_path / FOLDER)
    assert opened(LocalStore(tmp_path / FOLDER), known) is None


def test_each_reported_table_is_read_once_and_none_after_the_end(
    table: TableUnderTest, ahead: TablesReadAhead, tmp_path: Path
) -> None:
    assert ahead.take(ORDERS) is None
    ahead.read()
    assert ahead.take(ORDERS) == table.now()
    assert ahead.take(ORDERS) is None
    assert ahead.take(OTHERS) is None
    ahead.read()
    ahead.close()
    ahead.read()
    assert ahead.take(ORDERS) is None


def test_a_table_that_cannot_be_read_is_left_to_who_opens_it(
    table: TableUnderTest, ahead: TablesReadAhead, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / FOLDER, tmp_path / OTHERS.path)
    (tmp_path / FOLDER / commit_path(0)).write_bytes(b"{")
    ahead.read()
    assert ahead.take(OTHERS) == find_snapshot(LocalStore(tmp_path / OTHERS.path))
    assert ahead.take(ORDERS) is None


def test_tables_that_no_driver_reported_are_not_read(table: TableUnderTest, tmp_path: Path) -> None:
    """A lake may hold large tables that programs write, which a driver doesn't need."""
    ahead = TablesReadAhead(LocalStore(tmp_path))
    ahead.read()
    assert ahead.take(ORDERS) is None
    ahead.close()


def test_a_store_that_fails_is_left_to_who_opens_the_tables(tmp_path: Path) -> None:
    faulty = FaultyStore(LocalStore(tmp_path), [Fault.since(0, How.LOST)])
    ahead = TablesReadAhead(faulty)
    ahead.read()
    assert ahead.take(ORDERS) is None
    ahead.close()
