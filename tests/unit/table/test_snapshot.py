"""Snapshots: versions, checkpoints, damage, and commits of other writers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lakesplice.errors import (
    CorruptFileError,
    MissingFileError,
    TableNotFoundError,
    VersionNotFoundError,
)
from lakesplice.storage.log_keeper import DeltaLogKeeper
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.layout import LAST_CHECKPOINT, commit_path
from lakesplice.table.protocol.snapshot import Snapshot, latest, open_snapshot
from lakesplice.testing.faulty_store import Fault, FaultyStore, How
from tests.support.tables import TableUnderTest, local_table

ROOT = "shop/orders"


@pytest.fixture
def table(tmp_path: Path) -> TableUnderTest:
    table = local_table(tmp_path)
    table.create()
    return table


def _grow(table: TableUnderTest, count: int) -> list[Snapshot]:
    return [table.committed(table.ingest(files=(table.file(n),))) for n in range(count)]


def test_every_version_opens_as_it_was_committed(table: TableUnderTest) -> None:
    snapshots = [table.now(), *_grow(table, 4)]
    assert [open_snapshot(table.store, v) for v in range(5)] == snapshots
    assert open_snapshot(table.store) == snapshots[-1]


def test_latest_reads_only_what_is_new_and_never_lists(table: TableUnderTest) -> None:
    known, *_, newest = _grow(table, 5)
    store = FaultyStore(table.store)
    assert latest(store, known) == newest
    assert latest(store, newest) == newest
    assert "list" not in {call.method for call in store.calls}
    assert len(store.calls) <= 9


def test_a_checkpoint_and_the_tail_give_the_same_as_the_whole_log(
    table: TableUnderTest, tmp_path: Path
) -> None:
    snapshots = [table.now(), *_grow(table, 4)]
    DeltaLogKeeper(tmp_path / ROOT).checkpoint(2)
    store = FaultyStore(table.store)
    assert open_snapshot(store) == snapshots[-1]
    assert "list" not in {call.method for call in store.calls}
    table.store.delete(commit_path(0))
    table.store.delete(commit_path(1))
    assert [open_snapshot(table.store, v) for v in (2, 3, 4)] == snapshots[2:]
    table.store.delete(LAST_CHECKPOINT)
    assert open_snapshot(table.store) == snapshots[-1]


def test_a_version_never_written_and_one_past_its_retention_are_named(
    table: TableUnderTest, tmp_path: Path
) -> None:
    _grow(table, 3)
    with pytest.raises(VersionNotFoundError):
        open_snapshot(table.store, 4)
    DeltaLogKeeper(tmp_path / ROOT).checkpoint(2)
    table.store.delete(commit_path(0))
    table.store.delete(commit_path(1))
    with pytest.raises(VersionNotFoundError):
        open_snapshot(table.store, 1)


def test_a_folder_without_a_table_or_with_another_delta_table_holds_none(tmp_path: Path) -> None:
    table = local_table(tmp_path)
    with pytest.raises(TableNotFoundError):
        table.now()
    foreign = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "x", "schemaString": "{}", "partitionColumns": []}},
    ]
    table.store.put_new(commit_path(0), "".join(f"{json.dumps(a)}\n" for a in foreign).encode())
    with pytest.raises(TableNotFoundError):
        table.now()


@pytest.mark.parametrize("damaged", ["hint", "checkpoint"])
def test_a_damaged_checkpoint_costs_time_and_nothing_else(
    table: TableUnderTest, tmp_path: Path, damaged: str
) -> None:
    newest = _grow(table, 3)[-1]
    DeltaLogKeeper(tmp_path / ROOT).checkpoint(2)
    log = tmp_path / ROOT / "_delta_log"
    name = "_last_checkpoint" if damaged == "hint" else f"{2:020d}.checkpoint.parquet"
    (log / name).write_bytes((log / name).read_bytes()[:30])
    assert open_snapshot(table.store) == newest
    assert open_snapshot(table.store, 3) == newest


def test_a_damaged_or_missing_manifest_is_named(table: TableUnderTest, tmp_path: Path) -> None:
    _grow(table, 1)
    path = max((tmp_path / ROOT / "_lakesplice" / "manifests").iterdir())
    data = path.read_bytes()
    for wrong in (data[:-1], data.replace(b"orders", b"0rders"), b""):
        path.write_bytes(wrong)
        with pytest.raises(CorruptFileError) as caught:
            table.now()
        assert path.name in str(caught.value)
    path.unlink()
    with pytest.raises(MissingFileError):
        table.now()


@pytest.mark.parametrize("cut", range(1, 4))
def test_a_commit_file_that_lost_its_last_lines_is_named(
    table: TableUnderTest, tmp_path: Path, cut: int
) -> None:
    _grow(table, 1)
    path = tmp_path / ROOT / commit_path(1)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-cut]))
    with pytest.raises(CorruptFileError):
        table.now()


def test_a_commit_by_another_writer_is_noticed(table: TableUnderTest) -> None:
    _grow(table, 1)
    line = {"commitInfo": {"operation": "OPTIMIZE", "timestamp": 1}}
    table.store.put_new(commit_path(2), json.dumps(line).encode())
    with pytest.raises(CorruptFileError, match="lakesplice restore TABLE --version 1"):
        table.now()


def test_a_reader_whose_version_was_deleted_starts_over(
    table: TableUnderTest, tmp_path: Path
) -> None:
    stale = table.now()
    newest = _grow(table, 4)[-1]
    DeltaLogKeeper(tmp_path / ROOT).checkpoint(3)
    for version in range(3):
        table.store.delete(commit_path(version))
    assert latest(table.store, stale) == newest
    assert table.committed(table.ingest()).version == newest.version + 1


def test_history_is_newest_first(table: TableUnderTest) -> None:
    _grow(table, 2)
    entries = list(history(table.store))
    assert [entry.version for entry in entries] == [2, 1, 0]
    assert [entry.info.operation for entry in entries] == ["INGEST", "INGEST", "CREATE TABLE"]


@pytest.mark.parametrize("part", [f"{0:020d}.json", "manifests"])
def test_a_file_read_half_is_never_a_snapshot(table: TableUnderTest, part: str) -> None:
    _grow(table, 1)
    store = FaultyStore(table.store, [Fault.on("read", part, How.CUT)])
    with pytest.raises(CorruptFileError):
        open_snapshot(store)
