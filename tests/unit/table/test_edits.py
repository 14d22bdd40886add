"""Edits of tables fed by hand by a condition."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow.compute as pc
import pytest

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.by_hand import (
    WHOLE,
    Row,
    given,
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
def table(store: LocalStore) -> HandFedTable:
    three_goods(store)
    return HandFedTable(store, tools(9))


def images(table: HandFedTable) -> list[Row]:
    assert isinstance(table._store, LocalStore)
    return load_feed(table._store.root, table.version)


@pytest.mark.slow
def test_rows_that_match_a_condition_are_deleted_in_one_commit(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "z", 7), row(4, None, None)], WHOLE))
    done = table.delete("n = 7 AND name <> 'c'")
    assert (done.version, done.deleted) == (2, 1)
    require_rows(table, {2: row(2, "b"), 3: row(3, "c", 7), 4: row(4, None, None)})
    last = next(iter(table.history())).info
    assert (last.operation, last.metrics["deleted"]) == ("DELETE", 1)
    assert last.parameters["predicate"] == "n = ? AND name <> ?", "a history holds no values"
    assert table.delete(pc.field("name") == "b").deleted == 1
    assert table.delete("n > 100").version == table.version == 3, "nothing matches: no commit"
    require_sound_index(store, table)


@pytest.mark.slow
def test_rows_that_match_a_condition_get_new_values_in_one_commit(
    table: HandFedTable, store: LocalStore
) -> None:
    table.upsert(given([row(1, "z", 7), row(4, None, None)], WHOLE))
    done = table.update({"price": "price * 2", "n": "n + id", "name": "upper(name)"}, "n >= 1")
    assert (done.version, done.updated, done.inserted) == (2, 3, 0)
    truth = {
        1: row(1, "Z", 8, "3.00"),
        2: row(2, "B", 3, "3.00"),
        3: row(3, "C", 10, "3.00"),
        4: row(4, None, None),
    }
    require_rows(table, truth)
    last = next(iter(table.history())).info
    assert (last.operation, last.metrics["updated"]) == ("UPDATE", 3)
    assert last.parameters["predicate"] == "n >= ?"
    table.update({"name": None, "price": Decimal(7), "n": pc.field("n") + 1}, merge=True)
    require_rows(
        table, {k: {**r, "name": None, "price": Decimal(7)} | n for k, r, n in _next(truth)}
    )
    require_sound_index(store, table)


def _next(truth: dict[int, Row]) -> list[tuple[int, Row, Row]]:
    return [(k, r, {"n": None if r["n"] is None else r["n"] + 1}) for k, r in truth.items()]


@pytest.mark.slow
def test_an_update_is_in_the_feed(table: HandFedTable) -> None:
    table.set_change_feed(on=True)
    table.update({"price": "price + 1"}, "id >= 2", merge=True)
    found = [(i["id"], i["_change_type"], str(i["price"])) for i in images(table)]
    assert sorted(found) == [
        (2, "update_postimage", "2.50"),
        (2, "update_preimage", "1.50"),
        (3, "update_postimage", "2.50"),
        (3, "update_preimage", "1.50"),
    ]


@pytest.mark.slow
def test_rows_take_the_place_of_those_that_a_condition_chooses(
    table: HandFedTable, store: LocalStore
) -> None:
    done = table.overwrite(given([row(2, "x", 4), row(5, "y", 5)], WHOLE), "id >= 2")
    assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
    require_rows(table, {1: row(1), 2: row(2, "x", 4), 5: row(5, "y", 5)})
    assert next(iter(table.history())).info.operation == "OVERWRITE"
    assert table.overwrite(given([row(7)], WHOLE), merge=True).deleted == 3
    require_rows(table, {7: row(7)})
    assert table.overwrite(given([], WHOLE)).deleted == 1
    require_rows(table, {})
    require_sound_index(store, table)


def test_rows_outside_of_the_condition_are_not_overwritten(table: HandFedTable) -> None:
    for rows, words in (
        ([row(2), row(3, n=None)], "must match it, and some don't.*rows=1"),
        ([row(3, "c", 1)], "rows outside of the condition have the keys"),
    ):
        with pytest.raises(UsageError, match=words):
            table.overwrite(given(rows, WHOLE), "n = 1")
    with pytest.raises(UsageError, match="need all columns"):
        table.overwrite(given([row(1)], ["id", "n"]))
    with pytest.raises(UsageError, match="given twice"):
        table.overwrite(given([row(1), row(1)], WHOLE))
    assert table.version == 0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"id": 4}, "a key can't be changed"),
        ({"colour": 4}, "no such column"),
        ({}, "at least one column"),
        ({"n": "price"}, "not of its type"),
        ({"n": "2147483647 + id"}, "can't hold"),
        ({"price": "price * 1.11"}, "can't hold"),
        ({"n": "CAST(name AS INT)"}, "can't be computed"),
        ({"price": "CAST(n / (n - n) AS DECIMAL(9, 2))"}, "can't be computed"),
        ({"n": "n + name"}, "don't fit together"),
        ({"n": "random()"}, "can't have this"),
        ({"n": "(SELECT 1)"}, "can't have this"),
        ({"n": "seven"}, "no such column"),
        ({"n": object()}, "a literal doesn't fit"),
    ],
)
def test_a_value_that_does_not_fit_changes_nothing(
    table: HandFedTable, values: Row, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        table.update(values)
    assert table.version == 0


@pytest.mark.slow
def test_deleted_rows_are_in_the_feed(table: HandFedTable) -> None:
    table.set_change_feed(on=True)
    table.delete("id >= 2", merge=True)
    found = [(i["id"], i["_change_type"]) for i in images(table)]
    assert sorted(found) == [(2, "delete"), (3, "delete")]


def test_rows_that_another_upsert_changed_meanwhile_are_evaluated_again(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def other_upsert_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).upsert(given([row(1, "a", 0), row(2, "b", 9)], WHOLE))

    table = HandFedTable(FaultyStore(store, before_call=other_upsert_first), tools(9))
    assert table.delete("n >= 5").deleted == 2
    assert raced
    require_rows(table, {1: row(1, "a", 0)})


def test_an_update_that_lost_its_race_computes_its_values_again(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def other_upsert_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            opened(store, 40).upsert(
                given([row(2, "b", 40)], WHOLE), delete=given([row(3)], ["id"])
            )

    table = HandFedTable(FaultyStore(store, before_call=other_upsert_first), tools(9))
    assert table.update({"n": "n + 1"}).updated == 2
    require_rows(table, {1: row(1, "a", 2), 2: row(2, "b", 41)})


def test_a_condition_that_does_not_fit_deletes_nothing(table: HandFedTable) -> None:
    for where in ("colour = 'red'", "n = 'seven'", "", "id = 1; id = 2"):
        with pytest.raises(UsageError):
            table.delete(where)
    assert table.version == 0


def test_tables_whose_rows_come_from_elsewhere_or_stay_refuse(tmp_path: Path) -> None:
    life = begun(tmp_path / "fed")
    with pytest.raises(UsageError, match="fed by a source"):
        HandFedTable(life.store, tools()).delete("id = 1")
    with pytest.raises(UsageError, match="merge its change feed into a table that is fed by hand"):
        HandFedTable(life.store, tools()).update({"id": 1})
    store = LocalStore(tmp_path / "kept")
    create_table(store, given([row(1)], WHOLE), ["id"], tools(), insert_only=True)
    with pytest.raises(UsageError, match="insert-only"):
        HandFedTable(store, tools()).delete("id = 1")
