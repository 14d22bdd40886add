"""Orphans: which files are found, and how a slow writer is prevented from naming one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.commit import Conflict, ConflictCode
from lakesplice.table.protocol.intents import Sweep
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.orphans import Orphans, Swept, find_orphans
from lakesplice.table.upkeep.vacuum import orphans_before_ms
from tests.support.tables import TableUnderTest, local_table

DAY = 86_400
ORPHANS = (
    "base/0000000000000001-0-00000000000000aa.parquet",
    "_lakesplice/deltas/00000000000000aa.avro",
    "_lakesplice/deltas/00000000000000aa.parquet",
    "_lakesplice/index/00000000000000aa.run",
    "_lakesplice/dead_letters/00000000000000aa.avro",
    "part-00000-aa-c000.snappy.parquet",
    "day=1/part-00000.parquet",
    "deletion_vector_aa.bin",
    "_change_data/cdc-00000.parquet",
)
OTHERS = (
    "_lakesplice/manifests/00000000000000000001-00000000000000aa.json",
    "_delta_log/00000000000000000009.checkpoint.parquet",
    "_somebody/file.parquet",
    ".hidden/file.parquet",
    "notes.txt",
)


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    """A table of two versions on a clock that starts with the file system's."""
    table = local_table(tmp_path)
    table.create()
    table.committed(table.ingest(files=(table.real_file(1, [(1, "a")]),)))
    return table


class Disk:
    """Files whose times follow the table's clock."""

    def __init__(self, table: TableUnderTest, root: Path) -> None:
        self.table, self.root = table, root

    def put(self, *paths: str) -> None:
        for path in paths:
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(b"orphan")
            self.touch(path)

    def touch(self, *paths: str) -> None:
        seconds = self.table.clock.now_ms() / 1000
        for path in paths:
            os.utime(self.root / path, (seconds, seconds))

    def there(self, *paths: str) -> list[str]:
        return [path for path in paths if (self.root / path).exists()]


@pytest.fixture
def disk(table: TableUnderTest, tmp_path: Path) -> Disk:
    return Disk(table, tmp_path / "shop/orders")


def before_ms(table: TableUnderTest, retention: float = 3600) -> int:
    return orphans_before_ms(table.clock.now_ms(), retention)


def sweep(table: TableUnderTest, *, at_once: bool) -> Swept:
    orphans = Orphans(table.store, table.commit)
    return orphans.sweep(table.now(), EpochMs(before_ms(table)), at_once=at_once)


def test_old_files_that_nothing_names_are_found_ours_and_other_writers(
    table: TableUnderTest, disk: Disk
) -> None:
    disk.touch(*table.now().manifest.files)
    disk.put(*ORPHANS, *OTHERS)
    table.clock.advance(DAY + 1)
    found = find_orphans(table.store, table.now(), EpochMs(before_ms(table)))
    assert found == dict.fromkeys(ORPHANS, 6)


def test_young_files_are_left_alone_for_a_day_or_the_retention(
    table: TableUnderTest, disk: Disk
) -> None:
    disk.put(*ORPHANS)
    table.clock.advance(DAY - 1)
    assert not find_orphans(table.store, table.now(), EpochMs(before_ms(table)))
    table.clock.advance(2 * DAY)
    assert not find_orphans(table.store, table.now(), EpochMs(before_ms(table, 7 * DAY)))


def test_a_file_with_exactly_that_time_is_not_before_it(table: TableUnderTest, disk: Disk) -> None:
    disk.put(ORPHANS[0])
    written_ms = table.store.modified_ms(ORPHANS[0])
    assert written_ms is not None
    assert not find_orphans(table.store, table.now(), written_ms)
    assert set(find_orphans(table.store, table.now(), EpochMs(written_ms + 1))) == {ORPHANS[0]}


def test_files_that_only_an_older_retained_version_names_are_no_orphans(
    table: TableUnderTest, disk: Disk
) -> None:
    (path,) = table.now().manifest.files
    intent = table.splice()
    table.committed(intent)
    disk.touch(path)
    table.clock.advance(2 * DAY)
    assert not find_orphans(table.store, table.now(), EpochMs(before_ms(table)))
    table.committed(table.ingest())
    Expiry(table.store, table.commit).run(table.now(), table.clock.now_ms())
    assert not disk.there(path)
    disk.put(path)
    table.clock.advance(2 * DAY)
    assert set(find_orphans(table.store, table.now(), EpochMs(before_ms(table)))) == {path}


def test_a_sweep_at_once_deletes_them_and_refuses_who_began_before(
    table: TableUnderTest, disk: Disk
) -> None:
    slow = table.ingest(files=(table.real_file(2, [(2, "b")]),))
    merge = replace(table.splice(), planned_on=table.now().version)
    slow_path = slow.files[0].base.path
    disk.put(*ORPHANS)
    disk.touch(slow_path)
    table.clock.advance(2 * DAY)
    done = sweep(table, at_once=True)
    assert set(done.files) == {*ORPHANS, slow_path}
    assert not disk.there(*ORPHANS)
    for late in (slow, merge):
        outcome = table.commit(late)
        assert isinstance(outcome, Conflict)
        assert outcome.reason is ConflictCode.SWEPT
    table.committed(table.ingest())
    assert sweep(table, at_once=True) == Swept()


def test_a_delayed_sweep_deletes_only_orphans_that_the_previous_one_found(
    table: TableUnderTest, disk: Disk
) -> None:
    disk.put(*ORPHANS)
    table.clock.advance(2 * DAY)
    first = sweep(table, at_once=False)
    assert (len(first.files), len(first.left)) == (0, len(ORPHANS))
    slow = table.ingest(files=(table.real_file(2, [(2, "b")]),))
    table.clock.advance(DAY)
    second = sweep(table, at_once=False)
    assert (set(second.files), len(second.left)) == (set(ORPHANS), 0)
    # It began after the first sweep, so nothing of it was old enough for the second.
    table.committed(slow)


def test_a_writer_that_began_before_the_previous_sweep_is_refused(
    table: TableUnderTest, disk: Disk
) -> None:
    slow = table.ingest(files=(table.real_file(2, [(2, "b")]),))
    disk.put(*ORPHANS)
    table.clock.advance(2 * DAY)
    sweep(table, at_once=False)
    table.clock.advance(DAY)
    sweep(table, at_once=False)
    outcome = table.commit(slow)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.SWEPT


def test_files_committed_while_the_table_was_listed_stay(table: TableUnderTest, disk: Disk) -> None:
    slow = table.ingest(files=(table.real_file(2, [(2, "b")]),))
    path = slow.files[0].base.path
    disk.put(*ORPHANS)
    disk.touch(path)
    table.clock.advance(2 * DAY)
    known = table.now()
    table.committed(slow)
    done = Orphans(table.store, table.commit).sweep(known, EpochMs(before_ms(table)), at_once=True)
    assert set(done.files) == set(ORPHANS)
    assert disk.there(path)
    assert path in table.now().manifest.files


def test_without_orphans_nothing_is_committed(table: TableUnderTest) -> None:
    table.clock.advance(2 * DAY)
    version = table.now().version
    assert sweep(table, at_once=True) == Swept()
    assert table.now().version == version


def test_a_later_sweep_admits_no_refused_writer(table: TableUnderTest, disk: Disk) -> None:
    disk.put(*ORPHANS)
    table.clock.advance(2 * DAY)
    sweep(table, at_once=True)
    refused = table.now().manifest.retention.writers_from
    assert refused == table.now().version
    table.committed(Sweep(1, writers_from=0))
    assert table.now().manifest.retention.writers_from == refused
