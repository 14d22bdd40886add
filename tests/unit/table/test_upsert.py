"""Upserts: rows by key into a table that no source feeds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.upserts import delta_pieces, new_rows
from tests.support.by_hand import (
    WHOLE,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
    row,
    rows_of,
)


def test_whole_rows_change_known_keys_and_insert_new_ones(table: HandFedTable) -> None:
    done = table.upsert(given([row(2, "B", 9), row(4)], WHOLE))
    assert (done.version, done.inserted, done.updated, done.deleted) == (1, 1, 1, 0)
    require_rows(table, {1: row(1), 2: row(2, "B", 9), 3: row(3, "c", 7), 4: row(4)})


def test_partial_rows_leave_absent_columns_as_they_are(table: HandFedTable) -> None:
    table.upsert(given([row(1, n=5), row(3, n=None)], ["id", "n"]))
    require_rows(table, {1: row(1, n=5), 2: row(2, "b"), 3: row(3, "c", None)})
    table.compact()
    require_rows(table, {1: row(1, n=5), 2: row(2, "b"), 3: row(3, "c", None)})


@pytest.mark.slow
def test_waiting_partial_rows_of_one_key_complete_each_other(table: HandFedTable) -> None:
    table.upsert(given([row(1, n=5)], ["id", "n"]))
    table.upsert(given([row(1, name="new")], ["name", "id"]))
    table.upsert(given([row(1, n=6)], ["id", "n"]))
    truth = {1: row(1, "new", 6), 2: row(2, "b"), 3: row(3, "c", 7)}
    require_rows(table, truth)
    assert table.compact().changes == 3
    require_rows(table, truth)


def test_columns_that_are_not_given_are_in_no_delta(table: HandFedTable, store: LocalStore) -> None:
    table.upsert(given([row(1, n=5)], ["id", "n"]))
    (delta,) = table.snapshot.manifest.deltas
    names = pl.read_parquet(store.root / delta.file.path).columns
    assert {"id", "n"} <= set(names)
    assert not {"name", "price"} & set(names)


def test_a_new_row_without_all_columns_is_refused_unless_nulls_are_asked_for(
    table: HandFedTable,
) -> None:
    changes = given([row(1, n=5), row(9, n=5)], ["id", "n"])
    with pytest.raises(UsageError, match=r"new rows need all columns.*rows=1.*'id': 9"):
        table.upsert(changes)
    assert table.refresh().version == 0
    table.upsert(changes, fill_new_rows=True)
    assert rows_of(table)[9] == {"id": 9, "name": None, "n": 5, "price": None}
    assert rows_of(table)[1] == row(1, n=5)


def test_deleted_rows_are_gone_from_both_views_after_compaction(table: HandFedTable) -> None:
    done = table.upsert(delete=given([row(1), row(77)], WHOLE))
    assert (done.deleted, done.updated) == (1, 0)
    require_rows(table, {2: row(2, "b"), 3: row(3, "c", 7)})
    table.compact()
    require_rows(table, {2: row(2, "b"), 3: row(3, "c", 7)})


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True])
def test_a_deleted_row_comes_back_with_nothing_of_what_it_was(
    table: HandFedTable, store: LocalStore, compacted: bool
) -> None:
    table.upsert(delete=given([row(3)], ["id"]))
    if compacted:
        table.compact()
    again = given([row(3, n=8)], ["id", "n"])
    with pytest.raises(UsageError, match="new rows need all columns"):
        table.upsert(again)
    done = table.upsert(again, fill_new_rows=True)
    assert (done.inserted, done.updated) == (1, 0)
    table.upsert(given([row(3, name="z")], ["id", "name"]))
    truth = {1: row(1), 2: row(2, "b"), 3: {"id": 3, "name": "z", "n": 8, "price": None}}
    require_rows(table, truth)
    table.compact()
    require_rows(table, truth)
    require_sound_index(store, table)


def test_an_upsert_that_changes_nothing_commits_nothing(table: HandFedTable) -> None:
    table.upsert(delete=given([row(1)], ["id"]))
    assert table.upsert(delete=given([row(1), row(50)], ["id"])).version == 1
    assert table.upsert(given([], WHOLE)).version == 1
    assert table.upsert().version == 1


def test_a_transaction_is_applied_once(table: HandFedTable) -> None:
    first = table.upsert(given([row(1, "x")], WHOLE), transaction=("job", 5))
    again = table.upsert(given([row(1, "y")], WHOLE), transaction=("job", 5))
    older = table.upsert(given([row(1, "y")], WHOLE), transaction=("job", 4))
    assert [first.repeated, again.repeated, older.repeated] == [False, True, True]
    assert rows_of(table)[1]["name"] == "x"
    assert not table.upsert(given([row(1, "y")], WHOLE), transaction=("other", 1)).repeated
    assert rows_of(table)[1]["name"] == "y"


def test_a_transaction_without_effect_is_remembered(table: HandFedTable) -> None:
    assert table.upsert(given([], WHOLE), transaction=("job", 1)).version == 1
    assert table.upsert(given([row(1, "y")], WHOLE), transaction=("job", 1)).repeated


def test_other_tools_see_transactions_and_rows(table: HandFedTable, store: LocalStore) -> None:
    table.upsert(given([row(4)], WHOLE), transaction=("job", 3))
    found = deltalake.DeltaTable(str(store.root))
    assert found.transaction_version("job") == 3
    assert sorted(found.to_pyarrow_table().column("id").to_pylist()) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": [1, 1], "n": [1, 2]}, "given twice"),
        ({"id": [1, None], "n": [1, 2]}, "null"),
        ({"n": [1]}, "whole key"),
        ({"id": [1], "colour": ["red"]}, "no such column"),
        ({"id": [1], "n": ["five"]}, "not of its type"),
        ({"id": [1], "n": [1 << 40]}, "has values that its type can't hold"),
        ({"id": [1], "n": [1.5]}, "not of its type"),
    ],
)
def test_changes_that_do_not_fit_are_refused(
    table: HandFedTable, changes: dict[str, list[Any]], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        table.upsert(pa.table(changes))
    assert table.refresh().version == 0


def test_a_key_both_written_and_deleted_is_refused(table: HandFedTable) -> None:
    with pytest.raises(UsageError, match="given twice"):
        table.upsert(given([row(1)], WHOLE), delete=given([row(1)], ["id"]))


def test_rows_come_from_anything_with_arrow_in_it(table: HandFedTable) -> None:
    changes = given([row(1, "x")], WHOLE)
    table.upsert(changes.to_reader())
    table.upsert(changes.to_batches()[0])
    table.upsert(pl.DataFrame(changes))
    assert rows_of(table)[1]["name"] == "x"
    with pytest.raises(UsageError, match="must be Arrow data"):
        table.upsert([row(1)])


def test_a_manifest_of_a_table_fed_by_hand_is_none_that_older_readers_take(
    table: HandFedTable, store: LocalStore
) -> None:
    path = max(path for path in store.list("_lakesplice/manifests/"))
    assert json.loads(store.read(path))["format"] == 2
    table.upsert(delete=given([row(1)], ["id"]), transaction=("job", 2))
    path = max(path for path in store.list("_lakesplice/manifests/"))
    manifest = json.loads(store.read(path))
    assert manifest["format"] == 12, "a delta waits"
    assert manifest["source"] is None
    assert manifest["upserts"] == {
        "position": 1,
        "has_deleted": True,
        "transactions": {"job": 2},
    }


@pytest.mark.slow
def test_large_upserts_write_a_delta_per_file_and_streams_a_file_per_so_many_rows(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_rows, "ROWS_PER_FILE", 10)
    monkeypatch.setattr(delta_pieces, "CHANGES_PER_DELTA", 8)
    rows = [row(key, f"n{key}") for key in range(35)]
    table = created(store, rows)
    files = [file.rows for file in table.snapshot.manifest.files.values()]
    assert sorted(files) == [5, 10, 10, 10]
    table.upsert(given([row(key, f"m{key}") for key in range(35)], WHOLE))
    assert len(table.snapshot.manifest.deltas) > 1
    assert all(len(delta.waiting) < 3 for delta in table.snapshot.manifest.deltas)
    truth = {key: row(key, f"m{key}") for key in range(35)}
    require_rows(table, truth)
    table.compact()
    require_rows(table, truth)
    require_sound_index(store, table)


def test_changes_of_one_file_are_cut_into_deltas_too(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_pieces, "CHANGES_PER_DELTA", 8)
    table = created(store, [row(key, f"n{key}") for key in range(35)])
    keys = [*range(30, -1, -1)]
    table.upsert(given([row(key, f"m{key}") for key in keys], WHOLE))
    assert [delta.rows for delta in table.snapshot.manifest.deltas] == [10, 10, 11]
    truth = {key: row(key, f"{'m' if key in keys else 'n'}{key}") for key in range(35)}
    require_rows(table, truth)
    table.compact()
    require_rows(table, truth)


def test_a_table_is_created_with_its_rows_or_not_at_all(store: LocalStore) -> None:
    with pytest.raises(UsageError, match="occurs twice"):
        created(store, [row(1), row(1)])
    assert not list(store.list("_delta_log/"))
    created(store, [row(1)], seed=11)
    with pytest.raises(UsageError, match="already contains a table"):
        created(store, [row(2)], seed=21)
    require_rows(opened(store), {1: row(1)})


@pytest.mark.slow
def test_runs_of_the_index_stay_few(store: LocalStore) -> None:
    table = created(store)
    for key in range(20):
        table.upsert(given([row(key)], WHOLE))
        table.compact()
    assert len(table.snapshot.manifest.runs) < 9
    require_rows(table, {key: row(key) for key in range(20)})
    require_sound_index(store, table)


def test_a_compaction_without_threads_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="threads"):
        created(LocalStore(tmp_path)).compact(threads=0)
