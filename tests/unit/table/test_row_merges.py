"""Merges of a source's rows into a table fed by hand."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from lakesplice.errors import UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
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
from tests.support.delta_feed import require_delta_feed
from tests.support.partitioned import begun

SOURCE = pa.table(
    {
        "id": pa.array([2, 3, 4, 5], pa.int64()),
        "name": pa.array(["x", "y", "z", None], pa.string_view()),
        "n": pa.array([20, None, 40, 50], pa.int32()),
        "price": pa.array([Decimal("9.00")] * 4, pa.decimal128(9, 2)),
        "op": pa.array(["u", "d", "u", "u"]).dictionary_encode(),
        "at": pa.array([1, 2, 3, 4]),
    }
)


@pytest.fixture
def table(store: LocalStore) -> HandFedTable:
    return three_goods(store)


@pytest.mark.slow
def test_a_merge_has_all_clauses_in_one_commit(table: HandFedTable, store: LocalStore) -> None:
    table.set_change_feed(on=True)
    merge = (
        table.merge(SOURCE)
        .when_matched_delete("op = 'd'")
        .when_matched_update({"n": "target.n + source.n", "name": "upper(source.name)"})
        .when_not_matched_insert({"name": "source.name", "n": "source.n"}, "source.n > 45")
        .when_not_matched_insert(where="true")
        .when_not_matched_by_source_update({"price": "price * 2"}, "n < 100")
        .when_not_matched_by_source_delete()
    )
    done = merge.execute(merge=True)
    assert (done.version, done.inserted, done.updated, done.deleted) == (2, 2, 2, 1)
    truth = {
        1: row(1, price="3.00"),
        2: row(2, "X", 21),
        4: row(4, "z", 40, "9.00"),
        5: {"id": 5, "name": None, "n": 50, "price": None},
    }
    require_rows(table, truth)
    last = next(iter(table.history())).info
    assert (last.operation, last.metrics["deleted"]) == ("MERGE", 1)
    assert last.parameters["clauses"].startswith("matched and op = ?: delete; matched: update; ")
    require_sound_index(store, table)
    assert require_delta_feed(store, store.root)


def test_a_merge_of_rows_by_key_alone_reads_no_base_file(tmp_path: Path) -> None:
    store = goods_store(tmp_path)
    three_goods(store)
    watched = FaultyStore(store)
    table = HandFedTable(watched, tools(9))
    old = table.snapshot.manifest.files.keys()
    done = table.merge(SOURCE).when_matched_update().when_not_matched_insert().execute()
    assert (done.inserted, done.updated) == (2, 2)
    assert not old & {call.path for call in watched.calls if call.method in ("open", "read")}
    require_rows(
        table,
        {
            1: row(1),
            2: row(2, "x", 20, "9.00"),
            3: row(3, "y", None, "9.00"),
            4: row(4, "z", 40, "9.00"),
            5: row(5, None, 50, "9.00"),
        },
    )


def test_rows_that_no_clause_has_stay(table: HandFedTable) -> None:
    rows = {key: row(key, name, n) for key, name, n in ((1, "a", 1), (2, "b", 1), (3, "c", 7))}
    assert table.merge(SOURCE).when_matched_delete("target.n > 7").execute().version == 0
    table.merge(SOURCE).when_matched_update({"n": 5}, "target.n = 7").execute()
    require_rows(table, {**rows, 3: row(3, "c", 5)})
    table.merge(SOURCE.slice(0, 0)).when_not_matched_by_source_delete("id = 2").execute()
    require_rows(table, {1: row(1), 3: row(3, "c", 5)})


def test_several_rows_of_the_source_for_one_row_are_refused(table: HandFedTable) -> None:
    twice = pa.concat_tables([SOURCE, SOURCE.slice(0, 1)])
    with pytest.raises(UsageError, match="several rows of the source"):
        table.merge(twice).when_matched_update().execute()
    with pytest.raises(UsageError, match="several rows of the source"):
        table.merge(twice).when_matched_update(where="target.n > 0").execute()
    four = pa.concat_tables([SOURCE, SOURCE.slice(2, 1)])
    with pytest.raises(UsageError, match="several rows of the source"):
        table.merge(four).when_not_matched_insert().execute()
    assert table.merge(four).when_matched_update().execute().updated == 2, "no clause has them"
    assert table.merge(twice).when_matched_update(where="source.n IS NULL").execute().updated == 1


@pytest.mark.slow
def test_a_merge_that_lost_its_race_is_matched_again(store: LocalStore) -> None:
    three_goods(store)
    raced: list[Call] = []

    def other_upsert_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and not raced:
            raced.append(call)
            gone = given([row(2)], ["id"])
            opened(store, 40).upsert(given([row(3, "c", 8), row(4)], WHOLE), delete=gone)

    table = HandFedTable(FaultyStore(store, before_call=other_upsert_first), tools(9))
    merge = table.merge(SOURCE).when_matched_update({"n": "target.n + 1"})
    done = merge.when_not_matched_insert().execute()
    assert (done.updated, done.inserted) == (2, 2)
    require_rows(
        table,
        {
            1: row(1),
            2: row(2, "x", 20, "9.00"),
            3: row(3, "c", 9),
            4: row(4, n=2),
            5: row(5, None, 50, "9.00"),
        },
    )


def test_clauses_that_do_not_fit_change_nothing(table: HandFedTable) -> None:
    merge = table.merge(SOURCE)
    for wrong, words in (
        (merge, "needs a clause"),
        (merge.when_matched_update({"n": "n + 1"}), "no such column"),  # both have an n
        (merge.when_matched_update({"id": "source.id"}), "a key can't be changed"),
        (merge.when_not_matched_insert({"id": "source.id + 10"}), "with the keys of its source"),
        (merge.when_not_matched_insert({"n": "target.n"}), "no such column"),
        (merge.when_not_matched_by_source_update({"n": "source.n"}), "no such column"),
        (merge.when_matched_delete("op"), "must be"),
    ):
        with pytest.raises(UsageError, match=words):
            wrong.execute()
    narrow = SOURCE.select(["id", "n"])
    with pytest.raises(UsageError, match="lacks columns"):
        table.merge(narrow).when_not_matched_insert().execute()
    for source in (SOURCE.select(["n"]), SOURCE.append_column("n", SOURCE["n"])):
        with pytest.raises(UsageError):
            table.merge(source).when_matched_update().execute()
    assert table.refresh().version == 0


def test_tables_that_can_not_be_edited_refuse(tmp_path: Path) -> None:
    life = begun(tmp_path / "fed")
    with pytest.raises(UsageError, match="fed by a source"):
        HandFedTable(life.store, tools()).merge(SOURCE).when_matched_delete().execute()
    store = LocalStore(tmp_path / "kept")
    create_table(store, given([row(1)], WHOLE), ["id"], tools(), insert_only=True)
    with pytest.raises(UsageError, match="insert-only"):
        HandFedTable(store, tools()).merge(SOURCE).when_matched_delete().execute()
