"""Constraints of tables fed by hand: every write checks them, and Delta readers see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    given,
    goods_store,
    opened,
    require_rows,
    row,
    three_goods,
    tools,
)
from tests.support.partitioned import begun

WRITES: list[Callable[[HandFedTable], object]] = [
    lambda table: table.upsert(given([row(1, n=-1), row(9, n=-1)], WHOLE)),
    lambda table: table.upsert(given([row(1, n=None), row(2, n=-5)], ["id", "n"])),
    lambda table: table.upsert(
        given([row(7, price="500"), row(8, price="500")], ["id", "price"]), fill_new_rows=True
    ),
    lambda table: table.upsert(given([row(1, price="7"), row(2, price="9")], ["id", "price"])),
    lambda table: table.update({"n": "n - 10"}, "id >= 2", merge=True),
    lambda table: table.overwrite(given([row(1), row(4, n=0), row(5, n=0)], WHOLE)),
    lambda table: table.insert(given([row(4, n=None), row(5, n=0)], WHOLE)),
    lambda table: (
        table.merge(given([row(1, n=5), row(4)], WHOLE))
        .when_matched_update({"n": "-source.n"})
        .when_not_matched_insert({"price": "source.price"})
        .execute()
    ),
]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return goods_store(tmp_path)


@pytest.fixture
def table(store: LocalStore) -> HandFedTable:
    return three_goods(store)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_that_breaks_a_constraint_is_refused_with_the_number_of_rows(
    table: HandFedTable, store: LocalStore, write: Callable[[HandFedTable], object]
) -> None:
    table.add_constraint("Positive", "n > 0 AND price < n * 5")
    with pytest.raises(UsageError, match="break constraints") as refused:
        write(opened(store, 30))
    assert refused.value.facts["rows_by_constraint"] == {"positive": 2}
    require_rows(table.refresh(), {1: row(1), 2: row(2, "b"), 3: row(3, "c", 7)})


@pytest.mark.slow
def test_rows_that_break_no_constraint_are_written(table: HandFedTable) -> None:
    table.add_constraint("positive", "n > 0")
    table.set_required("name")
    table.upsert(given([row(1, "z")], ["id", "name"]))
    table.update({"price": None})
    table.upsert(given([row(4, n=3)], WHOLE), delete=given([row(2)], ["id"]))
    assert table.read(columns=["id"], filter=None).num_rows == 3
    assert (table.constraints, table.required_columns) == ({"positive": "n > 0"}, ("name",))
    table.drop_constraint("POSITIVE")
    table.set_required("name", required=False)
    table.update({"n": -1, "name": None})
    assert (table.constraints, table.required_columns) == ({}, ())


def test_a_required_column_holds_no_null(table: HandFedTable) -> None:
    table.set_required("name")
    for rows, columns in (([row(1, None)], WHOLE), ([row(4, None)], ["id", "n", "price"])):
        with pytest.raises(UsageError, match="NOT NULL name': 1"):
            table.upsert(given(rows, columns), fill_new_rows=True)
    table.upsert(given([row(1, n=5)], ["id", "n"]))


@pytest.mark.slow
def test_constraints_that_rows_break_are_not_set(table: HandFedTable) -> None:
    with pytest.raises(UsageError, match="'small': 1"):
        table.add_constraint("small", "n < 5")
    table.upsert(given([row(1, None)], WHOLE))
    with pytest.raises(UsageError, match=r"null in the column \[column='name' rows=1\]"):
        table.set_required("name")
    table.compact()
    table.upsert(given([], WHOLE), delete=given([row(1)], ["id"]))
    with pytest.raises(UsageError, match="call compact, and purge"):
        table.set_required("name")
    for name, condition in (("a b", "n > 0"), ("x", "n +"), ("x", "colour = 1"), ("x", "n")):
        with pytest.raises(UsageError):
            table.add_constraint(name, condition)
    for column in ("id", "colour"):
        with pytest.raises(UsageError, match="isn't in the key"):
            table.set_required(column)
    with pytest.raises(UsageError, match="no such constraint"):
        table.drop_constraint("small")
    table.add_constraint("small", "n < 50")
    with pytest.raises(UsageError, match="of this name"):
        table.add_constraint("small", "n < 60")


def test_readers_of_delta_see_the_constraints(table: HandFedTable, store: LocalStore) -> None:
    table.set_change_feed(on=True)
    table.add_constraint("positive", "n > 0")
    table.set_required("name")
    table.set_change_feed(on=False)
    delta = DeltaTable(str(store.root))
    assert delta.metadata().configuration["delta.constraints.positive"] == "n > 0"
    assert "checkConstraints" in (delta.protocol().writer_features or [])
    nullable = {field.name: field.nullable for field in delta.schema().fields}
    assert (nullable["name"], nullable["n"]) == (False, True)
    assert pa.table(delta.to_pyarrow_dataset().to_table()).num_rows == 3
    table.restore(1)
    delta = DeltaTable(str(store.root))
    assert "delta.constraints.positive" not in delta.metadata().configuration
    assert all(field.nullable for field in delta.schema().fields if field.name == "name")
    table.upsert(given([row(1, None, -1)], WHOLE))
    table.restore(3)
    assert DeltaTable(str(store.root)).metadata().configuration["delta.constraints.positive"]
    assert (table.constraints, table.required_columns) == ({"positive": "n > 0"}, ("name",))


def test_an_upsert_that_began_before_a_constraint_is_checked_again(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def constrained_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).add_constraint("positive", "n > 0")

    table = HandFedTable(FaultyStore(store, before_call=constrained_first), tools(9))
    with pytest.raises(UsageError, match="'positive': 1"):
        table.upsert(given([row(1, n=-1)], WHOLE))
    assert table.refresh().version == 1


def test_rows_that_came_before_a_constraint_are_checked_for_it(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def upserted_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).upsert(given([row(4, n=-1)], WHOLE))

    table = HandFedTable(FaultyStore(store, before_call=upserted_first), tools(9))
    with pytest.raises(UsageError, match="'positive': 1"):
        table.add_constraint("positive", "n > 0")


def test_a_table_that_a_topic_feeds_has_no_constraints(tmp_path: Path) -> None:
    table = HandFedTable(begun(tmp_path).store, tools())
    with pytest.raises(UsageError, match="fed by a source"):
        table.add_constraint("positive", "id > 0")
