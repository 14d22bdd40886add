"""Tables that are read while Spark starts: they open as if nothing had been read before."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakesplice.apps.service.tables import TablesReadAhead
from lakesplice.model.names import TableName
from lakesplice.storage.local import LocalStore
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.ingest.newest_table import NewestTable
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.protocol.snapshot import Snapshot, find_snapshot, open_snapshot
from lakesplice.testing.doubles import FixedClock, SeededEntropy
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


def test_each_table_of_the_lake_is_read_once_and_none_after_the_end(
    table: TableUnderTest, ahead: TablesReadAhead, tmp_path: Path
) -> None:
    (tmp_path / OTHERS.path).mkdir()
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
