"""Tables with computed columns: right in every row, written if they change, and parked with the
reason if they are impossible.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.computing.expression import parse
from lakesplice.planning.shape.shaping import Shape, shaped_schema
from lakesplice.table.files.pending_changes import read_waiting
from lakesplice.testing.shop.columns import integer
from tests.support.shaped import Life, aged


def computing(exclude: tuple[str, ...] = (), **spelt: str) -> Shape:
    computed = tuple((name, parse(text)) for name, text in spelt.items())
    return Shape(exclude=exclude, computed=computed)


LOUD = computing(loud="upper(name)", decade="truncate(age, 10)")


def lived(life: Life) -> None:
    life.database.insert("people", [(1, "Ann", "a@x", 31), (2, "Bo", None, None)])
    life.take()


def parked_detail(life: Life, code: ParkCode) -> str:
    parked = life.driver.table.parked
    assert parked is not None
    assert parked.code is code
    return parked.detail


@pytest.mark.slow
def test_rows_have_what_is_computed_from_them(tmp_path: Path) -> None:
    life = Life(tmp_path, LOUD)
    lived(life)
    life.database.update("people", [(1,)], lambda row: (row[0], "Cy", row[2], 44))
    life.take()
    life.driver.compact()
    assert [(row["loud"], row["decade"]) for row in life.rows] == [("CY", 40), ("BO", None)]


@pytest.mark.slow
def test_a_column_computed_from_an_excluded_column_changes_with_it(tmp_path: Path) -> None:
    life = Life(tmp_path, computing(("age",), decade="truncate(age, 10)"))
    lived(life)
    for age in (32, 57):
        life.database.update("people", [(1,)], aged(age))
        life.take()
        life.driver.compact()
        assert life.rows[0]["decade"] == age // 10 * 10
    assert "age" not in life.rows[0]


@pytest.mark.slow
def test_a_value_that_stays_the_same_is_no_changed_column(tmp_path: Path) -> None:
    life = Life(tmp_path, LOUD)
    lived(life)
    life.database.update("people", [(1,)], lambda row: (*row[:3], 38))
    life.take()
    manifest = life.driver.table.manifest
    (change,) = read_waiting(
        life.driver.table.store, manifest.deltas, manifest.schema, manifest.groups
    ).to_pylist()
    ids = {column.id: column.source_name for column in manifest.schema.columns}
    bits = change["_changed"]
    assert [ids[at] for at in ids if bits[at // 8] >> at % 8 & 1] == ["age"]


def test_an_expression_without_its_column_parks_the_table_and_names_it(tmp_path: Path) -> None:
    life = Life(tmp_path, computing(loud="upper(nickname)"))
    lived(life)
    assert "'nickname'" in parked_detail(life, ParkCode.UNSUPPORTED)


def test_an_expression_over_another_type_parks_the_table_and_says_what_it_takes(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path, computing(loud="upper(age)"))
    lived(life)
    detail = parked_detail(life, ParkCode.UNSUPPORTED)
    assert "upper takes a text" in detail
    assert "'loud'" in detail


@pytest.mark.parametrize("exclude", [(), ("name",)])
def test_a_computed_column_never_takes_the_name_of_a_sources(
    tmp_path: Path, exclude: tuple[str, ...]
) -> None:
    life = Life(tmp_path, computing(exclude, Name="upper(email)"))
    lived(life)
    assert "another name" in parked_detail(life, ParkCode.UNSUPPORTED)


def test_another_expression_parks_the_table(tmp_path: Path) -> None:
    life = Life(tmp_path, LOUD)
    lived(life)
    life.drive(computing(loud="lower(name)", decade="truncate( age, 10 )"))
    lived_on = (3, "Di", None, 3)
    life.database.insert("people", [lived_on])
    life.take()
    assert "computed:lower(name)" in parked_detail(life, ParkCode.SCHEMA_CHANGE)


@pytest.mark.slow
def test_a_column_computed_later_is_null_until_its_row_changes_whatever_changed(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path, None)
    lived(life)
    life.drive(LOUD)
    life.database.update("people", [(1,)], lambda row: (row[0], row[1], "new@x", row[3]))
    life.take()
    life.driver.compact()
    assert [(row["loud"], row["decade"]) for row in life.rows] == [("ANN", 30), (None, None)]


@pytest.mark.slow
def test_events_from_before_the_source_had_the_column_are_taken_as_they_come(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path, None)
    life.topic.add_partition()
    lived(life)
    life.database.update("people", [(2,)], lambda row: (*row[:3], 5))
    late = life.database.drain()
    life.database.add_column("people", integer("points", default=25))
    life.database.insert("people", [(3, "Cy", None, 1, 99)])
    life.take()
    life.drive(computing(tens="truncate(points, 10)"))
    life.database.insert("people", [(4, "Di", None, 1, 77)])
    life.take()
    life.topic.append(1, late)
    life.take()
    assert life.driver.table.parked is None
    life.driver.compact()
    shown = [(row["age"], row["points"], row["tens"]) for row in life.rows]
    assert shown == [(31, 25, None), (5, 25, None), (1, 99, None), (1, 77, 70)]
    life.database.update("people", [(1,)], lambda row: (row[0], "New", *row[2:]))
    life.take()
    life.driver.compact()
    assert life.rows[0]["tens"] == 20


@pytest.mark.slow
def test_a_computed_column_goes_with_the_column_it_needs_as_the_policy_says(
    tmp_path: Path,
) -> None:
    shape = computing(tens="truncate(points, 10)")
    policy = SchemaPolicy(drop_column=Behaviour.LENIENT)
    life = Life(tmp_path, None, policy)
    life.database.add_column("people", integer("points", default=25))
    life.database.insert("people", [(1, "Cy", None, 1, 99)])
    life.drive(shape, policy)
    life.take()
    old = Life(tmp_path / "old", None)  # a source that has no such column any more
    old.database.insert("people", [(at, "x", None, 1) for at in range(50)])
    old.database.drain()
    old.database.insert("people", [(60, "Di", None, 1)])
    life.take(*old.database.drain())
    assert life.driver.table.parked is None
    assert [(row["points"], row["tens"]) for row in life.rows] == [(99, 90), (None, None)]


def test_columns_that_an_image_lacks_are_not_computed_from_or_renamed() -> None:
    id_, name = (SourceField(n, ColumnType(Primitive.STRING), "text") for n in ("id", "name"))
    image = SourceSchema((id_,), ("id",), omitted=(name,))
    assert "partial image" in shaped_schema(image, computing(short="upper(name)")).problem
    assert "another name" in shaped_schema(image, computing(name="upper(id)")).problem
