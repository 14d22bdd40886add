"""The effect of a row image's schema on its table: it fits, adds columns, or parks the table."""

from __future__ import annotations

from itertools import permutations

import pytest

from lakesplice.model.parking import ParkCode
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.schema.evolution import Fits, Grows, Unfit, fit, plan_evolution


def image(key: str = "id", **types: str) -> SourceSchema:
    fields = tuple(SourceField(name, ColumnType.parse(t), t.upper()) for name, t in types.items())
    return SourceSchema(fields, tuple(key.split()))


def at(offset: int) -> Position:
    return Position.of(0, 1, offset, 0, 1)


def grown(*images: SourceSchema) -> TableSchema:
    """The table after these images, met at offsets 100, 200, ..."""
    schema, verdicts = plan_evolution(
        TableSchema(), [(at(100 * n), image) for n, image in enumerate(images, 1)]
    )
    assert all(isinstance(verdict, Fits) for verdict in verdicts.values())
    return schema


V1 = image(id="long", name="string", balance="decimal(12,2)")
V2 = image(id="long", phone="string", name="string", balance="decimal(12,2)")
V3 = image(id="long", phone="string", name="string", balance="decimal(12,2)", score="integer")


def test_a_table_is_born_with_its_first_image() -> None:
    verdict = fit(TableSchema(), V1)
    assert isinstance(verdict, Grows)
    assert [(c.id, c.name, c.type.name) for c in verdict.next.columns] == [
        (0, "id", "long"),
        (1, "name", "string"),
        (2, "balance", "decimal(12,2)"),
    ]
    assert (verdict.next.key, verdict.next.versions) == (("id",), (0, 3))


def test_added_columns_go_to_the_end_under_new_identities_wherever_the_source_has_them() -> None:
    schema = grown(V1, V2, V3)
    assert schema.names == ("id", "name", "balance", "phone", "score")
    assert [column.id for column in schema.columns] == [0, 1, 2, 3, 4]
    assert schema.versions == (0, 3, 4, 5)
    assert schema.since == (BEFORE_ALL, at(100), at(200), at(300))


def test_images_of_the_present_and_of_earlier_versions_fit() -> None:
    schema = grown(V1, V2, V3)
    for source, version, until in ((V1, 1, at(200)), (V2, 2, at(300)), (V3, 3, None)):
        verdict = fit(schema, source)
        assert isinstance(verdict, Fits)
        assert (verdict.version, verdict.until) == (version, until)
        assert {name: column.source_name for name, column in verdict.mapping.items()} == {
            field.name: field.name for field in source.fields
        }


def test_the_order_of_fields_and_of_the_key_does_not_matter() -> None:
    schema = grown(image("a b", a="long", b="long"))
    other = fit(schema, image("b a", b="long", a="long"))
    assert isinstance(other, Fits)
    assert schema.key == ("a", "b")


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (image("", id="long"), ParkCode.NO_KEY, ["no primary key"]),
        (image("nr", id="long"), ParkCode.NO_KEY, ["'nr'"]),
        (image(id="long", name="string", credit="decimal(12,2)"), ParkCode.SCHEMA_CHANGE,
         ["'balance'", "'credit' is new"]),
        (image(id="long", name="string", balance="decimal(12,1)"), ParkCode.SCHEMA_CHANGE,
         ["'balance'", "decimal(12,2)", "decimal(12,1)", "reset", "alter_column_type: lenient"]),
        (image("name", id="long", name="string", balance="decimal(12,2)"), ParkCode.KEY_CHANGED,
         ["primary key", "['id']", "['name']"]),
        (image(id="long", name="string", balance="decimal(12,2)", Name="string"),
         ParkCode.UNSUPPORTED, ["'name'", "'Name'"]),
    ],
)  # fmt: skip
def test_a_change_that_the_table_cannot_follow_parks_and_says_why(
    source: SourceSchema, code: ParkCode, words: list[str]
) -> None:
    verdict = fit(grown(V1), source)
    assert isinstance(verdict, Unfit)
    assert verdict.code == code
    assert all(word in verdict.detail for word in words), verdict.detail


def test_a_type_change_that_arrow_would_not_notice_parks() -> None:
    key = SourceField("id", ColumnType.parse("long"), "int64")
    number, time = (
        SourceField("n", ColumnType.parse("long"), source_type)
        for source_type in ("int64", "int64:io.debezium.time.MicroTime")
    )
    verdict = fit(grown(SourceSchema((key, number), ("id",))), SourceSchema((key, time), ("id",)))
    assert isinstance(verdict, Unfit)
    assert "MicroTime" in verdict.detail


def test_a_column_without_an_exact_type_parks() -> None:
    verdict = fit(TableSchema(), SourceSchema((SourceField("id", None, "GEOMETRY"),), ("id",)))
    assert isinstance(verdict, Unfit)
    assert (verdict.code, "GEOMETRY" in verdict.detail) == (ParkCode.UNSUPPORTED, True)


def test_names_outside_the_plain_alphabet_and_reserved_ones_are_stored_escaped() -> None:
    schema = grown(image("größe", größe="long", _is_deleted="boolean"))
    assert schema.key == (schema.columns[0].name,)
    assert all(name.isascii() for name in schema.names)
    assert schema.columns[1].name.lower() != "_is_deleted"


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_sightings_are_taken_in_the_order_of_positions(order: tuple[int, ...]) -> None:
    seen = [(at(10), V1), (at(20), V1), (at(30), V2), (at(40), V3)]
    schema, verdicts = plan_evolution(TableSchema(), [seen[n] for n in order])
    assert schema == plan_evolution(TableSchema(), seen)[0]
    fitting = [verdict for verdict in map(verdicts.get, (V1, V2, V3)) if isinstance(verdict, Fits)]
    assert [verdict.version for verdict in fitting] == [1, 2, 3]
    assert fitting[0].until == at(30)


def test_an_unfit_sighting_leaves_the_others_to_evolve_the_table() -> None:
    other_type = image(id="long", name="boolean", balance="decimal(12,2)")
    schema, verdicts = plan_evolution(grown(V1), [(at(150), other_type), (at(160), V2)])
    assert schema.names == ("id", "name", "balance", "phone")
    assert isinstance(verdicts[other_type], Unfit)
    assert isinstance(verdicts[V2], Fits)


def test_a_straggler_from_before_an_added_column_fits_but_a_dropped_column_does_not() -> None:
    schema = grown(V1, V2)
    assert isinstance(plan_evolution(schema, [(at(199), V1)])[1][V1], Fits)
    dropped = plan_evolution(schema, [(at(200), V1)])[1][V1]
    assert isinstance(dropped, Unfit)
    assert "'phone'" in dropped.detail


def test_a_step_back_is_seen_also_below_the_position_recorded_for_the_later_version() -> None:
    schema, verdicts = plan_evolution(grown(V1, V2), [(at(150), V2), (at(160), V1)])
    assert schema.version == 2
    assert isinstance(verdicts[V1], Unfit)
    assert isinstance(verdicts[V2], Fits)


def test_a_dropped_column_parks_from_the_position_on_where_it_was_met() -> None:
    without = image(id="long", name="string")
    dropped = plan_evolution(grown(V1), [(at(100), without)])[1][without]
    assert isinstance(dropped, Unfit)
    assert dropped.code is ParkCode.SCHEMA_CHANGE
    assert all(
        word in dropped.detail for word in ("'balance'", "decimal(12,2)", "isn't in the source")
    )


def test_a_straggler_of_a_version_that_was_never_met_fits() -> None:
    """Another partition was ahead: the table grew by two ALTERs at once, or was born after one."""
    schema = grown(V1, V3)
    between = plan_evolution(schema, [(at(199), V2)])[1][V2]
    assert isinstance(between, Fits)
    assert set(between.mapping) == {"id", "phone", "name", "balance"}
    before = plan_evolution(grown(V2), [(at(99), V1)])[1][V1]
    assert isinstance(before, Fits)
    dropped = plan_evolution(schema, [(at(200), V2)])[1][V2]
    assert isinstance(dropped, Unfit)
    assert "'score'" in dropped.detail
