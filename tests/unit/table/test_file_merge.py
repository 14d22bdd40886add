"""File merge: small files become one, addresses don't change, and waiting changes keep waiting."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakesplice.errors import UsageError
from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.model.names import IS_DELETED
from lakesplice.planning.upkeep.file_merge import FileMergePolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.reading.scan import View
from lakesplice.table.upkeep import file_merge as merging
from tests.support.by_hand import (
    COLUMNS,
    Row,
    created,
    given,
    require_rows,
    require_sound_index,
    rows_of,
)
from tests.support.simulated import Source, driver_of, require_finished, require_true

POLICY = FileMergePolicy(files_max=2)


def row(key: int, n: int = 0) -> Row:
    return {"id": key, "name": f"name {key % 7}", "n": n, "price": None}


@pytest.mark.slow
def test_small_files_become_one_that_every_reader_reads_alike(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    table = created(store, [row(0)])
    for key in range(1, 6):
        table.upsert(given([row(key)], COLUMNS.names))
    table.upsert(given([row(2, 9)], COLUMNS.names), delete=given([row(3)], ["id"]))
    before = rows_of(table)
    waiting = table.snapshot.manifest.deltas
    optimised = rows_of(table, View.READ_OPTIMISED)
    done = table.merge_files(policy=POLICY)
    assert (done.files, done.version) == (6, table.version)
    (file,) = table.snapshot.manifest.files.values()
    assert [segment.rows for segment in file.segments] == [1] * 6
    assert table.snapshot.manifest.deltas == waiting
    assert rows_of(table) == before
    assert rows_of(table, View.READ_OPTIMISED) == optimised
    assert pq.read_metadata(tmp_path / file.path).num_row_groups == 1
    table.compact()
    require_rows(table, before)
    require_sound_index(store, table)
    found = DeltaTable(str(tmp_path)).to_pyarrow_table(filters=[(IS_DELETED, "=", False)])
    assert sorted(found["id"].to_pylist()) == sorted(before)
    entry = next(entry for entry in table.history() if entry.info.operation == "FILE MERGE")
    assert entry.info.metrics["files"] == 6
    assert table.merge_files(policy=POLICY).files == 0


@pytest.mark.slow
def test_large_row_groups_are_copied_and_small_ones_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "COPIED_ROWS_MIN", 2 * ROWS_PER_PAGE)
    store, count = LocalStore(tmp_path), 2 * ROWS_PER_PAGE
    table = created(store, [row(key) for key in range(count)])
    table.upsert(given([row(key) for key in range(count, 2 * count)], COLUMNS.names))
    for key in range(2 * count, 2 * count + 3):
        table.upsert(given([row(key)], COLUMNS.names))
    before = rows_of(table)
    old = list(table.snapshot.manifest.files)
    entropy = table._writer.tools.entropy
    paths, new = merging.merge_base_files(store, table.snapshot.manifest, old, entropy)
    assert [table.snapshot.manifest.files[path].rows for path in paths] == [1, 1, 1, count, count]
    groups = pq.read_metadata(tmp_path / new.base.path)
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert sizes == [3, count, count]
    assert table.merge_files(policy=FileMergePolicy(files_max=2, small_bytes=1 << 30)).files >= 5
    table.upsert(given([row(1, 5), row(2 * count + 1, 6), row(count, 7)], COLUMNS.names))
    table.compact()
    truth = before | {1: row(1, 5), 2 * count + 1: row(2 * count + 1, 6), count: row(count, 7)}
    require_rows(table, truth)
    require_sound_index(store, table)


@pytest.mark.slow
def test_changes_that_come_in_while_files_merge_are_carried_over(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    for key in range(4):
        source.topic.append(key % 2, source.put(key))
        driver.batch()
    merge = driver.plan_file_merge(2)
    splice = driver.plan_compaction()
    assert merge is not None
    assert splice is None
    for key in (0, 1, 2, 5):
        source.topic.append(key % 2, source.put(key))
    driver.batch()
    overtaken = driver.plan_compaction()
    assert isinstance(driver.table.commit(merge), Committed)
    require_true(source, driver.table.store)
    assert overtaken is not None
    outcome = driver.table.commit(overtaken)
    assert isinstance(outcome, Conflict)
    assert outcome.reason is ConflictCode.FILES
    driver.compact()
    require_finished(source, driver)


@pytest.mark.slow
def test_files_of_an_older_schema_are_merged_in_the_present_one(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path))
    source.topic.append(0, source.put(0))
    driver.batch()
    source.add_column("added", 5)
    source.topic.append(0, source.put(1))
    driver.batch()
    assert isinstance(driver.merge_files(2), Committed)
    assert len(driver.table.manifest.files) == 1
    driver.compact()
    require_finished(source, driver)


def test_a_table_that_a_source_feeds_is_left_to_its_service(tmp_path: Path) -> None:
    source = Source()
    driver = driver_of(source, LocalStore(tmp_path / "fed"))
    source.topic.append(0, source.put(0))
    driver.batch()
    from lakesplice.table.by_hand.hand_fed_table import HandFedTable

    table = HandFedTable(driver.table.store, created(LocalStore(tmp_path / "x"))._writer.tools)
    with pytest.raises(UsageError, match="fed by a source"):
        table.merge_files()
