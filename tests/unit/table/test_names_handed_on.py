"""Names that pass from one column to another in one statement, so that the set of names doesn't
change.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.config.sections.schema_changes import SchemaChangeSettings, policy_of
from lakesplice.formats.events import TypeHistory
from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.testing.shop import Event
from tests.support.altered import FOLLOWING, Life, event, of_delta_reader, told_by

AB = {"id": "int32", "a": "int32", "b": "int32"}
CREATED = (1, "CREATE TABLE t (id int primary key, a int, b int)")
CREATED_ABF = "CREATE TABLE t (id int primary key, a int, b int, f int)"
SWAP = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"
SWAPPED = told_by(CREATED, (20, SWAP))
KEEPING = SchemaPolicy(rename_column=Behaviour.LENIENT)


@pytest.fixture
def lake(tmp_path: Any) -> LocalStore:
    return LocalStore(str(tmp_path / "lake"))


def row(id_: int, a: int | None, b: int | None) -> dict[str, Any]:
    return {"id": id_, "a": a, "b": b}


def came(pos: int, *values: Any) -> Event:
    return event(AB, pos, row(*values))


def by_source(life: Life, view: View = View.REAL_TIME) -> list[tuple[Any, ...]]:
    """The rows under the names that the source has now."""
    names = [life.driver.table.schema.by_source[name].name for name in ("id", "a", "b")]
    return [tuple(found[name] for name in names) for found in life.rows(view)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "swap",
    [SWAP, "ALTER TABLE t CHANGE a b int, CHANGE b a int"],
    ids=["rename", "change"],
)
def test_columns_that_swap_names_keep_what_they_held(lake: LocalStore, swap: str) -> None:
    life = Life(lake, told_by(CREATED, (20, swap)))
    life.take(came(5, 1, 10, 100), came(6, 2, 20, 200))
    life.take(event(AB, 30, row(2, 201, 20), row(2, 200, 20)), came(31, 3, 300, 30))
    assert life.parked == ""
    assert by_source(life) == [(1, 100, 10), (2, 201, 20), (3, 300, 30)]
    life.driver.compact()
    assert by_source(life, View.READ_OPTIMISED) == [(1, 100, 10), (2, 201, 20), (3, 300, 30)]
    assert life.driver.table.schema.names == ("id", "b", "a")


EVENTS = [
    came(5, 1, 10, 100),
    came(6, 2, 20, 200),
    event(AB, 7, row(1, 11, 100), row(1, 10, 100)),
    event(AB, 30, row(2, 201, 20), row(2, 200, 20)),
    event(AB, 31, row(1, 100, 12), row(1, 100, 11)),
]


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(6))
def test_a_swap_anywhere_in_a_batch_ends_the_same(lake: LocalStore, cut: int) -> None:
    life = Life(lake, SWAPPED)
    life.take(*EVENTS[:cut])
    life.driver.compact()
    life.take(*EVENTS[cut:])
    life.take(*EVENTS, partition=1)  # all of it again
    assert life.parked == ""
    assert by_source(life) == [(1, 100, 12), (2, 201, 20)]


@pytest.mark.slow
@pytest.mark.parametrize("before", [0, 1, 2])
def test_late_changes_from_before_a_swap_find_their_columns(lake: LocalStore, before: int) -> None:
    life = Life(lake, SWAPPED)
    late = [came(5, 1, 10, 100), came(15, 2, 20, 200)]
    for found in late[:before]:
        life.take(found, partition=1)
    life.take(came(30, 3, 300, 30))
    for found in late[before:]:
        life.take(found, partition=1)
    assert life.parked == ""
    assert by_source(life) == [(1, 100, 10), (2, 200, 20), (3, 300, 30)]


@pytest.mark.slow
def test_names_that_are_swapped_back_are_the_old_ones(lake: LocalStore) -> None:
    life = Life(lake, told_by(CREATED, (20, SWAP), (40, SWAP)))
    life.take(came(5, 1, 10, 100))
    life.take(came(30, 2, 200, 20))
    life.take(came(50, 3, 30, 300))
    life.take(came(25, 4, 400, 40), partition=1)
    assert life.driver.table.schema.names == ("id", "a", "b")
    assert by_source(life) == [(1, 10, 100), (2, 20, 200), (3, 30, 300), (4, 40, 400)]


@pytest.mark.slow
def test_a_name_that_was_used_twice_counts_by_position(lake: LocalStore) -> None:
    """Three swaps in one batch, of which the first two bring `a` a third column and the last one
    brings the first column back.
    """
    names = {"id": "int32", "a": "int32", "b": "int32", "f": "int32"}
    other = "ALTER TABLE t RENAME COLUMN a TO f, RENAME COLUMN f TO a"
    life = Life(lake, told_by((1, CREATED_ABF), (30, SWAP), (40, other), (60, SWAP)))
    life.take(
        event(names, 20, {"id": 1, "a": 10, "b": 20, "f": 30}),
        event(names, 50, {"id": 2, "a": 31, "b": 11, "f": 21}),
        event(names, 70, {"id": 3, "a": 12, "b": 32, "f": 22}),
    )
    assert life.rows() == [
        {"id": 1, "a": 10, "b": 30, "f": 20},
        {"id": 2, "a": 11, "b": 31, "f": 21},
        {"id": 3, "a": 12, "b": 32, "f": 22},
    ]


@pytest.mark.parametrize("cut", [1, 2])
def test_a_swap_undone_before_any_row_changes_nothing(lake: LocalStore, cut: int) -> None:
    life = Life(lake, told_by(CREATED, (20, SWAP), (21, SWAP)))
    events = [came(5, 1, 10, 100), came(30, 2, 20, 200)]
    life.take(*events[:cut])
    life.take(*events[cut:])
    assert life.rows() == [row(1, 10, 100), row(2, 20, 200)]


@pytest.mark.slow
def test_a_swap_may_come_with_other_types(lake: LocalStore) -> None:
    life = Life(lake, told_by(CREATED, (20, "ALTER TABLE t CHANGE a b bigint, CHANGE b a int")))
    life.take(came(5, 1, 10, 100))
    life.take(event({"id": "int32", "b": "int64", "a": "int32"}, 30, row(2, 200, 1 << 40)))
    assert by_source(life) == [(1, 100, 10), (2, 200, 1 << 40)]


@pytest.mark.slow
def test_a_chain_of_renames_is_followed(lake: LocalStore) -> None:
    moved = "ALTER TABLE t RENAME COLUMN b TO c, RENAME COLUMN a TO b"
    life = Life(lake, told_by(CREATED, (20, moved)))
    life.take(came(5, 1, 10, 100))
    after = {"id": "int32", "b": "int32", "c": "int32"}
    life.take(event(after, 30, {"id": 2, "b": 20, "c": 200}))
    life.take(came(6, 3, 30, 300), partition=1)
    assert life.parked == ""
    schema = life.driver.table.schema
    names = [schema.by_source[name].name for name in ("b", "c")]
    held = [tuple(found[name] for name in names) for found in life.rows()]
    assert held == [(10, 100), (20, 200), (30, 300)]


@pytest.mark.parametrize(
    ("behaviour", "parks"),
    [(Behaviour.EXCEPTION, True), (Behaviour.IGNORE, False)],
)
def test_a_swap_that_is_not_to_be_followed_is_noticed(
    lake: LocalStore, behaviour: Behaviour, parks: bool
) -> None:
    life = Life(lake, SWAPPED, SchemaPolicy(rename_column=behaviour))
    life.take(came(5, 1, 10, 100))
    life.topic.append(0, [came(30, 2, 200, 20)])
    life.driver.batch()
    if parks:
        assert life.parked.startswith(ParkCode.SCHEMA_CHANGE)
        assert "'a', 'b'" in life.parked
        assert "rename_column: evolve" in life.parked
    else:
        assert life.rows() == [
            {"id": 1, "a_2": 10, "b_2": 100, "a": None, "b": None},
            {"id": 2, "a_2": None, "b_2": None, "a": 200, "b": 20},
        ]


@pytest.mark.slow
def test_a_swap_with_a_key_column_parks_whatever_the_policy(lake: LocalStore) -> None:
    swap = "ALTER TABLE t RENAME COLUMN id TO a, RENAME COLUMN a TO id"
    for policy in (FOLLOWING, KEEPING):
        life = Life(lake.within(policy.rename_column), told_by(CREATED, (20, swap)), policy)
        life.take(came(5, 1, 10, 100))
        life.topic.append(0, [came(30, 2, 200, 20)])
        life.driver.batch()
        assert life.parked.startswith(ParkCode.SCHEMA_CHANGE), policy
        assert "primary key's 'id'" in life.parked


@pytest.mark.parametrize(
    ("behaviour", "parks"), [(Behaviour.EVOLVE, True), (Behaviour.IGNORE, False)]
)
def test_without_comparable_positions_names_count_only_if_configured(
    lake: LocalStore, behaviour: Behaviour, parks: bool
) -> None:
    life = Life(lake, SWAPPED.placeless(), SchemaPolicy(rename_column=behaviour))
    life.topic.append(0, [came(5, 1, 10, 100)])
    life.driver.batch()
    if parks:
        assert life.parked.startswith(ParkCode.SCHEMA_CHANGE)
        assert "rename_column: ignore" in life.parked
    else:
        assert life.rows() == [row(1, 10, 100)]


@pytest.mark.slow
def test_without_the_source_a_table_knows_that_its_names_moved(lake: LocalStore) -> None:
    life = Life(lake, SWAPPED)
    life.take(came(5, 1, 10, 100), came(30, 2, 200, 20))
    life.driver.history = None
    life.topic.append(0, [came(31, 3, 300, 30)])
    life.driver.batch()
    assert "the change's position doesn't show which it means" in life.parked


def dropped(apart: bool, default: str = "") -> TypeHistory:
    statements = [f"ALTER TABLE t DROP a, ADD a int{default}"]
    if apart:
        statements = ["ALTER TABLE t DROP a", f"ALTER TABLE t ADD a int{default}"]
    return told_by(CREATED, *((20 + at, sql) for at, sql in enumerate(statements)))


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_a_column_dropped_and_added_again_shows_no_value_of_the_old_one(
    lake: LocalStore, apart: bool
) -> None:
    policy = replace(FOLLOWING, drop_column=Behaviour.EVOLVE)
    life = Life(lake, dropped(apart), policy)
    life.take(came(5, 1, 10, 100))
    life.take(came(30, 2, 20, 200))
    life.take(came(6, 3, 30, 300), partition=1)
    expected = [row(1, None, 100), row(2, 20, 200), row(3, None, 300)]
    assert life.rows() == expected


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("default", ["", " NOT NULL DEFAULT 5"])
def test_the_new_column_has_the_name_and_what_the_old_one_held_stays_beside_it(
    lake: LocalStore, tmp_path: Path, apart: bool, default: str
) -> None:
    policy = policy_of(SchemaChangeSettings(), None)
    life = Life(lake, dropped(apart, default), policy)
    life.take(came(5, 1, 10, 100), event(AB, 6, row(1, 11, 100), row(1, 10, 100)))
    life.driver.compact()
    life.take(event(AB, 7, row(1, 12, 100), row(1, 11, 100)))
    before = life.driver.table.version
    life.take(came(30, 2, 20, 200))
    life.take(came(8, 3, 30, 300), partition=1)
    fill = 5 if default else None
    expected = [
        {"id": 1, "a_2": 12, "b": 100, "a": fill},
        {"id": 2, "a_2": None, "b": 200, "a": 20},
        {"id": 3, "a_2": 30, "b": 300, "a": fill},
    ]
    assert life.rows() == expected
    life.driver.compact()
    assert life.rows() == expected
    assert of_delta_reader(tmp_path / "lake" / "s" / "t") == expected
    assert Table(life.store, before).read().to_pylist() == [row(1, 12, 100)]


def test_a_column_that_is_dropped_and_added_again_parks_if_drops_do(lake: LocalStore) -> None:
    life = Life(lake, dropped(apart=True))
    life.take(came(5, 1, 10, 100))
    life.topic.append(0, [came(30, 2, 20, 200)])
    life.driver.batch()
    assert life.parked.startswith(ParkCode.SCHEMA_CHANGE)
    assert "dropped and added again" in life.parked
