"""An overwrite may also replace the columns of a table fed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.table.reading.scan import View
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    created,
    given,
    opened,
    require_rows,
    require_sound_index,
    row,
    three_goods,
    tools,
)

# `n` was a number, `price` is gone, `size` is new.
OTHER = pa.table({"n": ["one", None], "id": pa.array([2, 9], pa.int32()), "size": [1.5, 2.5]})
ROWS = {
    key: {"n": n, "id": key, "size": size} for key, n, size in ((2, "one", 1.5), (9, None, 2.5))
}


def test_an_overwrite_replaces_all_rows_and_columns_in_one_commit(store: LocalStore) -> None:
    table = three_goods(store)
    table.upsert(given([row(3, "waits", 8)], WHOLE), merge=False)
    table.delete("id = 1")
    done = table.overwrite(OTHER, overwrite_schema=True, transaction=("p", 1))
    assert (done.version, done.inserted, done.updated, done.deleted) == (3, 2, 0, 2)
    require_rows(table, ROWS)
    require_sound_index(store, table)
    assert table.schema.names == ["n", "id", "size"]
    assert table.overwrite(OTHER.slice(1), overwrite_schema=True, transaction=("p", 1)).repeated
    for version, columns in ((2, [*WHOLE]), (3, ["n", "id", "size"])):
        delta = pa.table(
            DeltaTable(str(store.root), version=version).to_pyarrow_dataset().to_table()
        )
        assert [name for name in delta.column_names if not name.startswith("_")] == columns
    assert {r["id"] for r in table.read(version=2).to_pylist()} == {2, 3}
    assert table.read(View.READ_OPTIMISED, version=2).num_rows == 3


@pytest.mark.slow
def test_the_table_is_written_and_restored_across_an_overwrite_of_its_columns(
    store: LocalStore,
) -> None:
    table = three_goods(store)
    table.overwrite(OTHER, overwrite_schema=True)
    table.upsert(pa.table({"id": [9, 4], "n": ["nine", "four"]}), fill_new_rows=True)
    table.compact()
    require_rows(
        table,
        {
            2: ROWS[2],
            9: {**ROWS[9], "n": "nine"},
            4: {"id": 4, "n": "four", "size": None},
        },
    )
    table.restore(0)
    require_rows(table, {1: row(1), 2: row(2, "b"), 3: row(3, "c", 7)})
    table.upsert(given([row(1, "again", 2)], WHOLE))
    require_rows(table, {1: row(1, "again", 2), 2: row(2, "b"), 3: row(3, "c", 7)})
    require_sound_index(store, table)


def test_changes_from_before_are_read_from_a_version_with_their_columns(store: LocalStore) -> None:
    table = three_goods(store)
    table.upsert(given([row(1, "x")], WHOLE))
    table.overwrite(OTHER, overwrite_schema=True)
    with pytest.raises(UnsupportedError, match="an overwrite removed rows"):
        table.changes(2).read_all()
    with pytest.raises(UnsupportedError, match="open this version"):
        table.changes(1, 1).read_all()
    assert HandFedTable(store, tools(), 1).changes(1, 1).read_all().column("name").to_pylist() == [
        "x"
    ]


def test_changes_are_never_read_with_columns_of_a_schema_that_a_restore_undid(
    store: LocalStore,
) -> None:
    table = three_goods(store)
    table.upsert(pa.table({"id": [1], "colour": ["red"]}), merge_schema=True)
    table.restore(0)
    table.upsert(pa.table({"id": [1], "size": ["large"]}), merge_schema=True)
    with pytest.raises(UnsupportedError, match="open this version"):
        table.changes(2, 2).read_all()
    assert table.changes(table.version).read_all().column("size").to_pylist() == ["large"]


def test_with_the_same_columns_only_new_values_are_written(store: LocalStore) -> None:
    table = three_goods(store)
    done = table.overwrite(given([row(2, "new"), row(4)], WHOLE), overwrite_schema=True)
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 2)
    require_rows(table, {2: row(2, "new"), 4: row(4)})


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (OTHER, {"where": "id > 1"}, "leave out where"),
        (OTHER, {"merge_schema": True}, "leave out where"),
        (OTHER.drop_columns(["id"]), {}, "need the table's key"),
        (pa.concat_tables([OTHER, OTHER]), {}, "a key occurs twice"),
        (OTHER.append_column("t", pa.nulls(2, pa.list_(pa.int8()))), {}, "no exact counterpart"),
    ],
)
def test_an_overwrite_that_makes_no_table_is_refused(
    store: LocalStore, rows: pa.Table, options: dict[str, Any], message: str
) -> None:
    table = three_goods(store)
    with pytest.raises(UsageError, match=message):
        table.overwrite(rows, overwrite_schema=True, **options)
    require_rows(table, {1: row(1), 2: row(2, "b"), 3: row(3, "c", 7)})
    assert table.refresh().version == 0


@pytest.mark.parametrize(
    ("constrain", "message"),
    [
        (lambda table: table.add_constraint("dear", "price > 1"), "drop it first"),
        (lambda table: table.set_required("price"), "set_required"),
        (lambda table: table.set_required("n"), "break constraints"),
    ],
)
def test_constraints_hold_for_the_new_columns(
    store: LocalStore, constrain: Callable[[HandFedTable], int], message: str
) -> None:
    table = three_goods(store)
    version = constrain(table)
    with pytest.raises(UsageError, match=message):
        table.overwrite(OTHER, overwrite_schema=True)
    assert table.refresh().version == version


def test_an_insert_only_table_keeps_its_rows_and_columns(store: LocalStore) -> None:
    create_table(store, given([row(1)], WHOLE), ["id"], tools(), insert_only=True)
    with pytest.raises(UsageError, match="insert-only"):
        opened(store).overwrite(OTHER, overwrite_schema=True)


@pytest.mark.parametrize("change_feed", [False, True])
def test_of_an_upsert_and_an_overwrite_of_columns_the_later_one_sees_the_other(
    store: LocalStore, change_feed: bool
) -> None:
    created(store, [row(1), row(2, "b")], change_feed=change_feed)
    raced: list[Call] = []

    def other_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and len(raced) < 2:
            raced.append(call)
            if len(raced) == 1:
                opened(store, 40).upsert(given([row(5)], WHOLE))

    table = HandFedTable(FaultyStore(store, before_call=other_first), tools(9))
    assert table.overwrite(OTHER, overwrite_schema=True).deleted == 3
    require_rows(table, ROWS)
    raced.clear()

    def columns_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 41).overwrite(given([row(7)], WHOLE), overwrite_schema=True)

    table = HandFedTable(FaultyStore(store, before_call=columns_first), tools(10))
    with pytest.raises(UsageError, match="is not of its type"):
        table.upsert(pa.table({"id": [9], "n": ["text"]}))
    require_rows(opened(store), {7: row(7)})


def test_a_merge_brings_the_columns_of_its_source(store: LocalStore) -> None:
    table = three_goods(store)
    source = pa.table({"id": [1, 9], "n": pa.array([5, 6], pa.int64()), "size": [1, 2]})
    building = table.merge(source).when_matched_update()
    with pytest.raises(UsageError, match="lacks columns"):
        building.when_not_matched_insert().execute(merge_schema=True)
    insert = {"name": "'new'", "size": "source.size"}
    building.when_not_matched_insert(insert).execute(merge_schema=True)
    found = {r["id"]: (r["n"], r["size"]) for r in table.read().to_pylist()}
    assert found == {1: (5, 1), 2: (1, None), 3: (7, None), 9: (None, 2)}
