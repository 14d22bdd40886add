"""Columns that the source renamed keep their values under the new name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakesplice.config.sections.schema_changes import SchemaChangeSettings, policy_of
from lakesplice.formats.events import TypeHistory, TypeVersion
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.schema.evolution import Unfit, fit
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.changes import changes_of
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from tests.support.altered import FOLLOWING, Life, event, of_delta_reader

A = {"id": "int32", "a": "int32", "name": "string"}
B = {"id": "int32", "b": "int32", "name": "string"}
WIDE_B = {"id": "int32", "b": "int64", "name": "string"}
BOTH = {"id": "int32", "b": "int32", "name": "string", "a": "string"}


def at(pos: int) -> Position:
    return Position.of(0, 1, pos, 0, 0)


def told(*renames: tuple[int, dict[str, tuple[str, ...]]]) -> TypeHistory:
    """A history of which only the renames matter, the first version being of the beginning."""
    versions = [TypeVersion(at(0)), *(TypeVersion(at(p), formerly=names) for p, names in renames)]
    return TypeHistory(tuple(versions))


ONCE = told((20, {"b": ("a",)}))


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


def a(id_: int, value: int | None, name: str) -> dict[str, Any]:
    return {"id": id_, "a": value, "name": name}


def b(id_: int, value: int | None, name: str) -> dict[str, Any]:
    return {"id": id_, "b": value, "name": name}


@pytest.mark.slow
def test_old_rows_waiting_changes_and_stragglers_are_under_the_new_name(lake: LocalStore) -> None:
    life = Life(lake, ONCE)
    life.take(*(event(A, n, a(n, n, "x")) for n in (1, 2, 3)))
    life.take(event(A, 10, a(2, 20, "x"), a(2, 2, "x")))  # waits in a delta
    life.take(event(B, 30, b(3, 33, "x"), b(3, 3, "x")), event(B, 31, b(4, 4, "new")))
    assert life.parked == ""
    life.take(event(A, 15, a(1, 11, "late"), a(1, 1, "x")), partition=1)
    expected = [b(1, 11, "late"), b(2, 20, "x"), b(3, 33, "x"), b(4, 4, "new")]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected
    assert life.rows(View.READ_OPTIMISED) == expected
    column = life.driver.table.schema.by_source["b"]
    assert (column.id, column.name) == (1, "b")


@pytest.mark.slow
def test_any_delta_reader_sees_the_new_name_at_once_and_the_old_one_in_the_past(
    lake: LocalStore, tmp_path: Any
) -> None:
    life = Life(lake, ONCE)
    life.take(event(A, 1, a(1, 1, "x")), event(A, 2, a(2, None, "y")))
    before = life.driver.table.version
    life.take(event(B, 30, b(3, 3, "z")))
    table = DeltaTable(str(tmp_path / "lake" / "s" / "t"))
    assert table.protocol().min_reader_version == 1
    found = table.to_pyarrow_table(columns=["id", "b"]).sort_by("id").to_pydict()
    assert found == {"id": [1, 2, 3], "b": [1, None, 3]}
    old = Table(life.store, before).read()
    assert old.column("a").to_pylist() == [1, None]
    snapshot = life.driver.table.snapshot
    assert snapshot is not None
    for path in snapshot.manifest.files:
        with life.store.open(path) as source:
            assert "a" not in pq.read_schema(source).names


@pytest.mark.slow
def test_other_pages_are_copied_as_they_are(lake: LocalStore) -> None:
    life = Life(lake, ONCE)
    life.take(*(event(A, n, a(n, n, f"name {n}")) for n in range(1, 9)))
    life.take(event(B, 30, b(9, 9, "z")))
    snapshot = life.driver.table.snapshot
    assert snapshot is not None
    assert [file.splices for file in snapshot.manifest.files.values()].count(1) >= 1


@pytest.mark.slow
def test_a_rename_may_come_with_a_wider_type(lake: LocalStore) -> None:
    life = Life(lake, ONCE)
    life.take(event(A, 1, a(1, 1, "x")), event(A, 2, a(1, 7, "x"), a(1, 1, "x")))
    life.take(event(WIDE_B, 30, b(2, 1 << 40, "y")))
    assert life.rows() == [b(1, 7, "x"), b(2, 1 << 40, "y")]
    column = life.driver.table.schema.by_source["b"]
    assert (column.id, column.type.arrow) == (1, pa.int64())


@pytest.mark.slow
def test_two_renames_that_were_not_seen_between_are_one(lake: LocalStore) -> None:
    history = told((20, {"z": ("a",)}), (25, {"b": ("z", "a")}))
    life = Life(lake, history)
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(B, 30, b(2, 2, "y")))
    assert life.rows() == [b(1, 1, "x"), b(2, 2, "y")]


def test_a_straggler_under_a_name_between_finds_its_column(lake: LocalStore) -> None:
    versions = (
        TypeVersion(at(0), later={"a": ("z", "b")}),
        TypeVersion(at(20), formerly={"z": ("a",)}, later={"z": ("b",)}),
        TypeVersion(at(25), formerly={"b": ("z", "a")}),
    )
    life = Life(lake, TypeHistory(versions))
    life.take(event(B, 30, b(1, 1, "x")))
    life.take(
        event({"id": "int32", "z": "int32", "name": "string"}, 22, {"id": 2, "z": 2, "name": "y"}),
        partition=1,
    )
    assert life.parked == ""
    assert life.rows() == [b(1, 1, "x"), b(2, 2, "y")]


def test_a_table_born_after_a_rename_takes_what_comes_from_before_it(lake: LocalStore) -> None:
    versions = (
        TypeVersion(at(0), later={"a": ("b",)}),
        TypeVersion(at(20), formerly={"b": ("a",)}),
    )
    life = Life(lake, TypeHistory(versions))
    life.take(event(B, 30, b(1, 1, "x")))
    life.take(event(A, 5, a(2, 2, "y")), partition=1)
    assert life.parked == ""
    assert life.rows() == [b(1, 1, "x"), b(2, 2, "y")]


@pytest.mark.slow
def test_a_column_may_get_its_old_name_back(lake: LocalStore) -> None:
    life = Life(lake, told((20, {"b": ("a",)}), (40, {"a": ("b", "a")})))
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(B, 30, b(2, 2, "y")))
    life.take(event(A, 50, a(3, 3, "z")))
    assert life.parked == ""
    assert life.rows() == [a(1, 1, "x"), a(2, 2, "y"), a(3, 3, "z")]
    assert life.driver.table.schema.by_source["a"].id == 1


@pytest.mark.slow
def test_a_new_column_of_the_old_name_shows_nothing_of_the_old_one(lake: LocalStore) -> None:
    life = Life(lake, told((20, {"b": ("a",)}), (40, {"b": ("a",)})))
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(B, 30, b(2, 2, "y")))
    life.take(event(BOTH, 50, {"id": 3, "b": 3, "name": "z", "a": "other"}))
    assert life.rows() == [
        {"id": 1, "b": 1, "name": "x", "a": None},
        {"id": 2, "b": 2, "name": "y", "a": None},
        {"id": 3, "b": 3, "name": "z", "a": "other"},
    ]


def test_a_rename_and_a_new_column_of_its_name_at_once_are_distinguished(lake: LocalStore) -> None:
    life = Life(lake, ONCE)
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(BOTH, 30, {"id": 2, "b": 2, "name": "y", "a": "new"}))
    assert life.rows() == [
        {"id": 1, "b": 1, "name": "x", "a": None},
        {"id": 2, "b": 2, "name": "y", "a": "new"},
    ]


BY_DEFAULT = policy_of(SchemaChangeSettings(), None)


def ab(id_: int, value: int, name: str) -> dict[str, Any]:
    return {"id": id_, "a": value, "name": name, "b": value}


@pytest.mark.slow
def test_by_default_a_column_has_both_names_and_each_is_right_in_every_row(
    lake: LocalStore, tmp_path: Any
) -> None:
    life = Life(lake, ONCE, BY_DEFAULT)
    life.take(*(event(A, n, a(n, n, "x")) for n in (1, 2, 3)))
    life.take(event(A, 10, a(2, 20, "x"), a(2, 2, "x")))  # waits in a delta
    life.take(event(WIDE_B, 30, b(3, 33, "x"), b(3, 3, "x")), event(WIDE_B, 31, b(4, 4, "new")))
    life.take(event(A, 15, a(1, 11, "late"), a(1, 1, "x")), partition=1)
    expected = [ab(1, 11, "late"), ab(2, 20, "x"), ab(3, 33, "x"), ab(4, 4, "new")]
    assert life.parked == ""
    assert life.rows() == expected
    version = life.driver.table.version
    for name in ("a", "b"):
        found = Table(life.store).read(columns=["id", name]).sort_by("id").column(name)
        assert found.to_pylist() == [11, 20, 33, 4]
        assert str(found.type) == "int64"
    told_ = Table(life.store).changes(version, version).read_all()
    assert [(row["a"], row["b"]) for row in told_.to_pylist()] == [(11, 11)]
    life.driver.compact()
    assert life.rows() == expected
    assert of_delta_reader(tmp_path / "lake" / "s" / "t") == expected
    life.take(event(WIDE_B, 40, None, b(4, 4, "new")), event(WIDE_B, 41, b(1, 0, "x")))
    life.driver.compact()
    assert life.rows() == [ab(1, 0, "x"), *expected[1:3]]


@pytest.mark.slow
def test_the_old_name_is_another_column_s_once_the_source_has_one(
    lake: LocalStore, tmp_path: Any
) -> None:
    life = Life(lake, told((20, {"b": ("a",)}), (40, {"b": ("a",)})), BY_DEFAULT)
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(B, 30, b(2, 2, "y")))
    assert life.rows() == [ab(1, 1, "x"), ab(2, 2, "y")]
    life.take(event(BOTH, 50, {"id": 3, "b": 3, "name": "z", "a": "other"}))
    expected = [
        {"id": 1, "name": "x", "b": 1, "a": None},
        {"id": 2, "name": "y", "b": 2, "a": None},
        {"id": 3, "name": "z", "b": 3, "a": "other"},
    ]
    assert life.rows() == expected
    life.driver.compact()
    assert of_delta_reader(tmp_path / "lake" / "s" / "t") == expected


@pytest.mark.slow
def test_names_that_go_back_and_forth_make_no_further_columns(lake: LocalStore) -> None:
    back: tuple[dict[str, tuple[str, ...]], ...]
    back = ({"b": ("a",)}, {"a": ("b", "a")}, {"b": ("a", "b", "a")})
    life = Life(lake, told(*((20 * at, names) for at, names in enumerate(back, 1))), BY_DEFAULT)
    for n in range(4):
        kinds, made = ((A, a), (B, b))[n % 2]
        life.take(event(kinds, 20 * n + 5, made(n, n, "x")))
    assert life.rows() == [ab(n, n, "x") for n in range(4)]


@pytest.mark.parametrize(
    ("history", "policy"),
    [
        (None, FOLLOWING),
        (told((20, {})), FOLLOWING),
        (ONCE, SchemaPolicy(rename_column=Behaviour.EXCEPTION)),
        (TypeHistory(ONCE.versions, ordered=False), FOLLOWING),
    ],
    ids=["nothing-told", "no-rename", "not-wanted", "no-order"],
)
def test_without_a_known_rename_the_table_parks(
    lake: LocalStore, history: TypeHistory | None, policy: SchemaPolicy
) -> None:
    life = Life(lake, history, policy)
    life.take(event(A, 1, a(1, 1, "x")))
    life.topic.append(0, [event(B, 30, b(2, 2, "y"))])
    life.driver.batch()
    assert life.parked.startswith(ParkCode.SCHEMA_CHANGE)
    assert any(way in life.parked for way in ("schema_change_topics", "drop_column: lenient"))


def test_without_a_known_rename_the_new_column_may_be_an_addition(lake: LocalStore) -> None:
    life = Life(lake, None, SchemaPolicy(rename_column=Behaviour.TRY_EVOLVE))
    life.take(event(A, 1, a(1, 1, "x")))
    life.take(event(B, 30, b(2, 2, "y")))
    assert life.rows() == [
        {"id": 1, "a": 1, "name": "x", "b": None},
        {"id": 2, "a": None, "name": "y", "b": 2},
    ]


def test_a_renamed_key_is_another_key() -> None:
    long = ColumnType(Primitive.LONG)
    schema = TableSchema((Column(0, "id", "id", long, "int64"),), ("id",), (0, 1))
    renamed = SourceField("key", long, "int64", formerly=("id",))
    verdict = fit(schema, SourceSchema((renamed,), ("key",)), FOLLOWING)
    assert isinstance(verdict, Unfit)
    assert "primary key" in verdict.detail


@pytest.mark.slow
def test_changes_are_reported_under_the_names_that_are_asked_for(lake: LocalStore) -> None:
    life = Life(lake, ONCE)
    life.take(event(A, 1, a(1, 1, "x")))
    schema = life.driver.table.schema
    life.take(event(B, 30, b(1, 7, "x"), b(1, 1, "x")), event(B, 31, b(2, 2, "y")))
    version = life.driver.table.version
    told_ = pa.concat_tables(changes_of(life.store, version, ["id", "a"], schema))
    assert sorted(zip(told_["id"].to_pylist(), told_["a"].to_pylist(), strict=True)) == [
        (1, 7),
        (2, 2),
    ]


@pytest.mark.parametrize(
    "cut", [3, *(pytest.param(at, marks=pytest.mark.slow) for at in (0, 1, 2, 4, 5, 6))]
)
def test_a_rename_anywhere_in_a_batch_ends_the_same(lake: LocalStore, cut: int) -> None:
    events = [
        event(A, 1, a(1, 1, "x")),
        event(A, 2, a(2, 2, "y")),
        event(A, 3, a(1, 5, "x"), a(1, 1, "x")),
        event(B, 24, b(2, 9, "y"), b(2, 2, "y")),
        event(B, 25, b(1, 6, "x"), b(1, 5, "x")),
        event(B, 26, None, b(2, 9, "y")),
    ]
    life = Life(lake, ONCE)
    life.take(*events[:cut])
    life.driver.compact()
    life.take(*events[cut:])
    life.take(*events, partition=1)  # all of it again
    assert life.parked == ""
    life.driver.compact()
    assert life.rows() == [b(1, 6, "x")]
