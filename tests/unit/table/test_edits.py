"""Edits of tables fed by hand by a condition."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.edited_table import EditedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    given,
    goods_store,
    opened,
    require_rows,
    require_sound_index,
    row,
    three_goods,
    tools,
)
from tests.support.delta_feed import load_feed
from tests.support.partitioned import begun


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return goods_store(tmp_path)


@pytest.fixture
def table(store: LocalStore) -> EditedTable:
    three_goods(store)
    return EditedTable(store, tools(9))


def test_rows_that_match_a_condition_are_deleted_in_one_commit(
    table: EditedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "z", 7), row(4, None, None)], WHOLE))
    done = table.delete("n = 7 AND name <> 'c'")
    assert (done.version, done.deleted) == (2, 1)
    require_rows(table, {2: row(2, "b"), 3: row(3, "c", 7), 4: row(4, None, None)})
    last = next(iter(table.history()))
    assert last.info.metrics["deleted"] == 1
    assert table.delete(pc.field("name") == "b").deleted == 1
    assert table.delete("n > 100").version == table.version == 3, "nothing matches: no commit"
    require_sound_index(store, table)


def test_deleted_rows_are_in_the_feed(table: EditedTable, store: LocalStore) -> None:
    table.set_change_feed(on=True)
    table.delete("id >= 2", merge=True)
    found = [(i["id"], i["_change_type"]) for i in load_feed(store.root, table.version)]
    assert sorted(found) == [(2, "delete"), (3, "delete")]


def test_what_another_upsert_changed_meanwhile_is_judged_again(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def other_upsert_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).upsert(given([row(1, "a", 0), row(2, "b", 9)], WHOLE))

    table = EditedTable(FaultyStore(store, before_call=other_upsert_first), tools(9))
    assert table.delete("n >= 5").deleted == 2
    assert raced
    require_rows(table, {1: row(1, "a", 0)})


def test_a_condition_that_does_not_fit_deletes_nothing(table: EditedTable) -> None:
    for where in ("colour = 'red'", "n = 'seven'", "", "id = 1; id = 2"):
        with pytest.raises(UsageError):
            table.delete(where)
    assert table.version == 0


def test_tables_whose_rows_come_from_elsewhere_or_stay_refuse(tmp_path: Path) -> None:
    life = begun(tmp_path / "fed")
    with pytest.raises(UsageError, match="fed by a source"):
        EditedTable(life.store, tools()).delete("id = 1")
    store = LocalStore(tmp_path / "kept")
    create_table(store, given([row(1)], WHOLE), ["id"], tools(), insert_only=True)
    with pytest.raises(UsageError, match="insert-only"):
        EditedTable(store, tools()).delete("id = 1")
