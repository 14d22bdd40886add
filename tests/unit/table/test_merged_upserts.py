"""Upserts that are merged into base files in their own commit, on request or by default."""

from __future__ import annotations

import deltalake
import pytest

from lakesplice.planning.by_hand import merge_choice
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.explaining.key_story import explain_key
from lakesplice.table.explaining.version_walk import Effect
from lakesplice.table.protocol.history import HistoryEntry
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    Row,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
    row,
    tools,
)


def last(table: HandFedTable) -> HistoryEntry:
    return next(iter(table.history()))


@pytest.mark.slow
def test_one_commit_shows_every_reader_new_values_new_rows_and_deletes(
    table: HandFedTable, store: LocalStore
) -> None:
    rows = given([row(2, "B", 9), row(4)], WHOLE)
    done = table.upsert(rows, delete=given([row(1)], ["id"]), merge=True)
    assert (done.version, done.inserted, done.updated, done.deleted) == (1, 1, 1, 1)
    assert done.merged
    assert not table.snapshot.manifest.deltas
    require_rows(table, {2: row(2, "B", 9), 3: row(3, "c", 7), 4: row(4)})
    found = deltalake.DeltaTable(str(store.root)).to_pyarrow_table().to_pylist()
    assert sorted(r["id"] for r in found if not r["_is_deleted"]) == [2, 3, 4]
    assert (last(table).info.operation, last(table).info.parameters["merge"]) == ("UPSERT", "asked")
    require_sound_index(store, table)


@pytest.mark.slow
def test_waiting_changes_of_the_rows_are_applied_first(table: HandFedTable) -> None:
    table.upsert(given([row(1, n=5), row(3, n=6)], ["id", "n"]), merge=False)
    table.upsert(given([row(1, name="new")], ["id", "name"]), merge=True)
    truth = {1: row(1, "new", 5), 2: row(2, "b"), 3: row(3, "c", 6)}
    assert not table.snapshot.manifest.deltas
    require_rows(table, truth)
    table.upsert(given([row(1, name="newer")], ["id", "name"]))
    table.compact()
    require_rows(table, {**truth, 1: row(1, "newer", 5)})


@pytest.mark.slow
def test_changes_that_wait_for_other_files_continue_to_wait(table: HandFedTable) -> None:
    table.upsert(given([row(9, "i")], WHOLE))
    table.upsert(given([row(1, n=5), row(9, "i", 5)], ["id", "n"]), merge=False)
    table.upsert(given([row(9, "j")], ["id", "name"]), merge=True)
    (delta,) = table.snapshot.manifest.deltas
    assert sum(delta.waiting.values()) == 1
    require_rows(table, {1: row(1, n=5), 2: row(2, "b"), 3: row(3, "c", 7), 9: row(9, "j", 5)})


@pytest.mark.slow
def test_a_deleted_row_comes_back_with_nothing_of_what_it_was(table: HandFedTable) -> None:
    table.upsert(delete=given([row(3)], ["id"]), merge=True)
    done = table.upsert(given([row(3, n=8)], ["id", "n"]), fill_new_rows=True, merge=True)
    assert (done.inserted, done.updated) == (1, 0)
    back: Row = {"id": 3, "name": None, "n": 8, "price": None}
    require_rows(table, {1: row(1), 2: row(2, "b"), 3: back})


def test_rows_that_are_there_already_write_no_file_but_remember_the_transaction(
    table: HandFedTable,
) -> None:
    files = table.snapshot.manifest.files
    done = table.upsert(given([row(1), row(2, "b")], WHOLE), transaction=("job", 1), merge=True)
    assert (done.version, done.updated) == (1, 2)
    assert table.snapshot.manifest.files == files
    assert last(table).info.metrics["unchanged"] == 2
    assert table.upsert(given([row(1, "x")], WHOLE), transaction=("job", 1), merge=True).repeated


@pytest.mark.slow
@pytest.mark.parametrize("other_finds_something_new", [True, False])
def test_a_compaction_in_between_makes_it_write_again(
    store: LocalStore, other_finds_something_new: bool
) -> None:
    table = created(store, [row(1), row(2)])
    waiting = row(1, n=2) if other_finds_something_new else row(1)
    table.upsert(given([waiting], ["id", "n"]))
    written: list[str] = []

    def compact_first(call: Call) -> None:
        if call.method == "writer":
            written.append(call.path)
        if call.method == "put_new" and "manifests" in call.path and table.version == 1:
            table.compact()

    late = HandFedTable(FaultyStore(store, before_call=compact_first), tools(30))
    done = late.upsert(given([row(1, name="late")], ["id", "name"]), merge=True)
    assert (done.version, len(written)) == (3, 2)
    require_rows(late, {1: row(1, "late", waiting["n"]), 2: row(2)})


@pytest.mark.slow
def test_another_upsert_in_between_makes_it_locate_again(store: LocalStore) -> None:
    created(store, [row(1)])
    rival = opened(store, 20)

    def write_first(call: Call) -> None:
        if call.path.endswith(".parquet") and call.method == "writer" and rival.version == 0:
            rival.upsert(given([row(1, n=5)], ["id", "n"]))

    late = HandFedTable(FaultyStore(store, before_call=write_first), tools(30))
    late.upsert(given([row(1, "late")], ["id", "name"]), merge=True)
    require_rows(late, {1: row(1, "late", 5)})
    require_sound_index(store, late)


@pytest.mark.slow
def test_many_rows_close_together_are_merged_unless_somebody_says_otherwise(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge_choice, "CHANGES_MIN", 1000)
    rows = {key: row(key) for key in range(2000)}
    table = created(store, rows.values())
    few = given([row(key, "few") for key in range(0, 2000, 4)], WHOLE)
    assert not table.upsert(few).merged
    many = {key: row(key, "many") for key in range(1500)}
    assert table.upsert(given(many.values(), WHOLE)).merged
    assert last(table).info.parameters["merge"] == "dense"
    later = given([row(key, "later") for key in range(1500)], WHOLE)
    assert not table.upsert(later, merge=False).merged
    assert "merge" not in last(table).info.parameters


@pytest.mark.slow
def test_the_story_of_a_key_includes_merged_upserts(table: HandFedTable, store: LocalStore) -> None:
    table.upsert(given([row(1, n=5)], ["id", "n"]), merge=True)
    table.upsert(delete=given([row(1)], ["id"]), merge=True)
    table.upsert(given([row(1)], WHOLE), merge=True)
    story = explain_key(store, table.snapshot, 1)
    assert [(change.version, change.effect) for change in story.changes] == [
        (0, Effect.INSERTED),
        (1, Effect.UPDATED),
        (2, Effect.DELETED),
        (3, Effect.INSERTED),
    ]
