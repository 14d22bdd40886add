"""Rows with further columns, or with wider types, change the schema of a table fed by hand."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.table.by_hand.upserts.upsert_request import Upserted
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
    three_goods,
    tools,
)
from tests.support.delta_feed import require_delta_feed

WIDE = pa.table(
    {
        "id": [2, 9],
        "n": pa.array([1 << 40, 9], pa.int64()),
        "price": pa.array([Decimal("1.125")] * 2, pa.decimal128(12, 3)),
        "colour": ["red", None],
    }
)


def plain(key: int, name: str | None = "a", n: int | None = 1) -> Row:
    return {**row(key, name, n), "colour": None}


@pytest.mark.slow
def test_columns_are_added_and_widened_before_the_rows_are_written(store: LocalStore) -> None:
    table = three_goods(store)
    table.upsert(given([row(3, "waits", 8)], WHOLE), merge=False)
    with pytest.raises(UsageError, match="no such column"):
        table.upsert(WIDE, fill_new_rows=True)
    done = table.upsert(WIDE, merge_schema=True, fill_new_rows=True)
    assert (done.version, done.inserted, done.updated) == (3, 1, 1)
    price = Decimal("1.125")
    truth = {
        1: plain(1),
        2: {"id": 2, "name": "b", "n": 1 << 40, "price": price, "colour": "red"},
        3: plain(3, "waits", 8),
        9: {"id": 9, "name": None, "n": 9, "price": price, "colour": None},
    }
    require_rows(table, truth)
    assert [str(table.schema.field(name).type) for name in ("n", "price", "colour")] == [
        "int64",
        "decimal128(12, 3)",
        "string",
    ]
    table.compact()
    require_rows(table, truth)
    require_sound_index(store, table)
    rows = pa.table(DeltaTable(str(store.root)).to_pyarrow_dataset().to_table())
    assert {r["id"]: r["colour"] for r in rows.to_pylist()} == {1: None, 2: "red", 3: None, 9: None}
    again = table.upsert(WIDE, merge_schema=True)
    assert again.version == table.version == 5, "the schema has these columns, nothing changes it"


def test_overwriting_rows_bring_columns_too(store: LocalStore) -> None:
    table = three_goods(store)
    rows = given([row(1)], WHOLE).append_column("colour", pa.array(["blue"]))
    with pytest.raises(UsageError, match="no such column"):
        table.overwrite(rows)
    table.overwrite(rows, merge_schema=True)
    require_rows(table, {1: {**row(1), "colour": "blue"}})


def _upsert(table: HandFedTable, rows: pa.Table, transaction: Any) -> Upserted:
    return table.upsert(rows, merge_schema=True, transaction=transaction)


def _overwrite(table: HandFedTable, rows: pa.Table, transaction: Any) -> Upserted:
    return table.overwrite(rows, merge_schema=True, transaction=transaction)


def _merge(table: HandFedTable, rows: pa.Table, transaction: Any) -> Upserted:
    merge = table.merge(rows).when_matched_update()
    return merge.execute(merge_schema=True, transaction=transaction)


@pytest.mark.parametrize("write", [_upsert, _overwrite, _merge])
def test_a_transaction_that_is_invalid_or_was_applied_before_adds_no_columns(
    store: LocalStore, write: Callable[[HandFedTable, pa.Table, Any], Upserted]
) -> None:
    table = three_goods(store)
    table.upsert(given([row(1, n=2)], WHOLE), transaction=("job", 7))
    version = table.version
    rows = given([row(1)], WHOLE).append_column("colour", pa.array(["blue"]))
    with pytest.raises(UsageError, match="a transaction must be"):
        write(table, rows, "job")
    assert write(table, rows, ("job", 7)).repeated
    assert table.refresh().version == version
    assert not write(table, rows, ("job", 8)).repeated
    assert "colour" in table.schema.names


@pytest.mark.parametrize("write", [_overwrite, _merge])
def test_an_insert_only_table_refuses_a_write_before_it_gets_columns(
    store: LocalStore, write: Callable[[HandFedTable, pa.Table, Any], Upserted]
) -> None:
    create_table(store, given([row(1)], WHOLE), ["id"], tools(1), insert_only=True)
    table = opened(store)
    rows = given([row(1)], WHOLE).append_column("colour", pa.array(["blue"]))
    with pytest.raises(UsageError, match="insert-only"):
        write(table, rows, None)
    assert table.refresh().version == 0


def test_narrower_types_and_fewer_columns_change_no_schema(store: LocalStore) -> None:
    table = three_goods(store)
    narrow = pa.table({"id": pa.array([1], pa.int8()), "n": pa.array([3], pa.int16())})
    assert table.upsert(narrow, merge_schema=True).version == 1
    require_rows(table, {1: row(1, n=3), 2: row(2, "b"), 3: row(3, "c", 7)})


@pytest.mark.parametrize(
    "column",
    [
        pa.field("n", pa.binary()),
        pa.field("name", pa.int64()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("_is_deleted", pa.bool_()),
    ],
)
def test_types_without_a_common_one_are_refused(store: LocalStore, column: pa.Field) -> None:
    table = three_goods(store)
    rows = pa.table({"id": [1], column.name: pa.nulls(1, column.type)})
    with pytest.raises(UsageError):
        table.upsert(rows, merge_schema=True)
    assert table.refresh().version == 0


@pytest.mark.slow
def test_an_upsert_that_began_before_a_column_was_widened_is_written_in_its_type(
    store: LocalStore,
) -> None:
    three_goods(store)
    raced: list[Call] = []

    def widened_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).upsert(WIDE, merge_schema=True, fill_new_rows=True)

    table = HandFedTable(FaultyStore(store, before_call=widened_first), tools(9))
    table.upsert(given([row(1, "late", 5)], WHOLE), fill_new_rows=True)
    assert table.update({"n": "n + 1"}, "id = 1").updated == 1
    table.compact()
    found = {r["id"]: (r["name"], r["n"]) for r in table.read("read_optimised").to_pylist()}
    assert found == {1: ("late", 6), 2: ("b", 1 << 40), 3: ("c", 7), 9: (None, 9)}


@pytest.mark.slow
def test_a_schema_that_lost_its_race_is_merged_again(store: LocalStore) -> None:
    created(store, [row(1), row(2, "b"), row(3, "c", 7)], change_feed=True)
    raced: list[Call] = []

    def other_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            more = pa.table({"id": [1], "size": [4]})
            opened(store, 40).upsert(more, merge_schema=True, merge=True)

    table = HandFedTable(FaultyStore(store, before_call=other_first), tools(9))
    table.upsert(WIDE.drop_columns(["price"]), merge_schema=True, fill_new_rows=True)
    assert table.schema.names == [*WHOLE, "size", "colour"]
    found = {r["id"]: (r["size"], r["colour"]) for r in table.read().to_pylist()}
    assert found == {1: (4, None), 2: (None, "red"), 3: (None, None), 9: (None, None)}
    table.compact()
    assert require_delta_feed(store, store.root)
