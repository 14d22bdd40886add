"""The effect of the policy on a table's schema, and on changes from before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.schema.evolution import Fits, Grows, Unfit, fit, plan_evolution
from lakesplice.planning.schema.policy import DEFAULT_POLICY, Behaviour, SchemaPolicy
from lakesplice.planning.schema.type_changes import accepts, widened

LENIENT = SchemaPolicy(
    alter_column_type=Behaviour.LENIENT,
    rename_column=Behaviour.LENIENT,
    drop_column=Behaviour.LENIENT,
)
STRICT = SchemaPolicy(add_column=Behaviour.EXCEPTION, alter_column_type=Behaviour.EXCEPTION)


def image(**types: str) -> SourceSchema:
    """Fields by name; a type is `stored/source`, or the stored one under its own name."""
    fields = []
    for name, text in types.items():
        stored, _, source = text.partition("/")
        fields.append(SourceField(name, ColumnType.parse(stored), source or stored))
    return SourceSchema(tuple(fields), ("id",))


def at(offset: int) -> Position:
    return Position.of(0, 1, offset, 0, 1)


def met(*images: SourceSchema, policy: SchemaPolicy = DEFAULT_POLICY) -> TableSchema:
    """The table after these images, met at offsets 100, 200, ..."""
    seen = [(at(100 * n), image) for n, image in enumerate(images, 1)]
    schema, verdicts = plan_evolution(TableSchema(), seen, policy)
    assert all(isinstance(verdict, Fits) for verdict in verdicts.values()), verdicts
    return schema


PLAIN = image(id="long", n="integer", name="string")

TIME = "io.debezium.time"
WIDER = [
    ("byte/int8", "short/int16", "short"),
    ("integer/int32", "long/int64", "long"),
    ("integer/int32", "decimal(20,0)/bigint unsigned", "decimal(20,0)"),
    ("integer/int32", "decimal(6,2)/decimal(6,2)", "decimal(12,2)"),
    ("decimal(12,2)/decimal(12,2)", "decimal(14,4)/decimal(14,4)", "decimal(14,4)"),
    ("decimal(12,2)/decimal(12,2)", "decimal(10,4)/decimal(10,4)", "decimal(14,4)"),
    ("short/int16", "float/float", "float"),
    ("integer/int32", "double/double", "double"),
    ("float/float", "double/double", "double"),
    ("integer/int32", "string/string", "string"),
    ("date/int32:io.debezium.time.Date", "timestamp/int64:io.debezium.time.Timestamp", "timestamp"),
    (
        "timestamp/int64:io.debezium.time.Timestamp",
        "timestamp/int64:io.debezium.time.MicroTimestamp",
        "timestamp",
    ),
    ("timestamp/canal:datetime(3)", "timestamp/canal:datetime(6)", "timestamp"),
    ("timestamp/canal:timestamp", "timestamp/canal:timestamp(6)", "timestamp"),
    ("long/canal:time", "long/canal:time(3)", "long"),
    ("binary/canal:binary(4)", "binary/canal:varbinary(4)", "binary"),
]  # fmt: skip
CHANGES_VALUES = [
    ("string/string", "integer/int32"),
    ("integer/int32", "float/float"),
    ("long/int64", "double/double"),
    ("double/double", "float/float"),
    ("decimal(12,2)/decimal(12,2)", "decimal(12,1)/decimal(12,1)"),
    ("decimal(38,0)/decimal(38,0)", "decimal(38,10)/decimal(38,10)"),
    (f"timestamp/int64:{TIME}.MicroTimestamp", f"timestamp/int64:{TIME}.Timestamp"),
    ("timestamp/canal:datetime(6)", "timestamp/canal:datetime(3)"),
    (f"timestamp/int64:{TIME}.Timestamp", f"timestamp/string:{TIME}.ZonedTimestamp"),
    ("long/int64", "long/int64:io.debezium.time.MicroTime"),
    ("string/string", "string/string:io.debezium.data.Json"),
    ("boolean/boolean", "integer/int32"),
    ("binary/bytes", "string/string"),
    ("timestamp/canal:timestamp(3)", "timestamp/canal:timestamp"),
    ("timestamp/canal:timestamp", "timestamp/canal:datetime"),
    ("long/canal:time(3)", "long/canal:time"),
    ("binary/canal:varbinary(4)", "binary/canal:binary(4)"),
    ("binary/canal:binary(4)", "binary/canal:binary(8)"),
    ("binary/canal:bit(8)", "binary/canal:bit(16)"),
    ("string/canal:set('a','b')", "string/canal:set('b','a')"),
    ("string/canal:set('a','b')", "string/canal:set('b','c','a')"),
]  # fmt: skip
TAKEN_AS_IS = [
    ("long/int64", "integer/int32"),
    ("decimal(12,2)/decimal(12,2)", "decimal(10,2)/decimal(10,2)"),
    ("string/string:io.debezium.data.Enum", "string/string"),
    ("decimal(20,0)/bigint unsigned", "long/int64"),
    ("string/canal:varchar(10)", "string/canal:longtext"),
    ("string/canal:enum('a')", "string/canal:enum('a','b')"),
    ("string/canal:set('a','c')", "string/canal:set('a','b','c')"),
    ("string/canal:set('a')", "string/canal:varchar(10)"),
    ("binary/canal:varbinary(10)", "binary/canal:varbinary(20)"),
    ("binary/canal:blob", "binary/canal:longblob"),
]


def _table_with(stored: str) -> TableSchema:
    return met(image(id="long", v=stored))


@pytest.mark.parametrize(("stored", "new", "expected"), WIDER)
def test_a_type_that_holds_all_old_values_is_taken(stored: str, new: str, expected: str) -> None:
    schema = _table_with(stored)
    verdict = fit(schema, image(id="long", v=new))
    assert isinstance(verdict, Grows)
    assert verdict.next.columns[1].type.name == expected
    assert verdict.next.columns[1].id == schema.columns[1].id
    assert verdict.next.at(schema.version) == schema


@pytest.mark.parametrize(("stored", "new"), CHANGES_VALUES)
def test_a_change_that_alters_values_parks(stored: str, new: str) -> None:
    verdict = fit(_table_with(stored), image(id="long", v=new))
    assert isinstance(verdict, Unfit)
    assert "alter_column_type" in verdict.detail


@pytest.mark.parametrize(("stored", "new"), TAKEN_AS_IS)
def test_a_narrower_type_of_the_same_values_leaves_the_schema(stored: str, new: str) -> None:
    assert isinstance(fit(_table_with(stored), image(id="long", v=new)), Fits)


@pytest.mark.parametrize(("stored", "new", "_expected"), WIDER)
def test_a_widened_column_holds_old_and_new_values(stored: str, new: str, _expected: str) -> None:
    column, field = _table_with(stored).columns[1], image(v=new).fields[0]
    wide = widened(column, field)
    assert wide is not None
    assert wide.type == field.type or accepts(wide, replace(field, type=wide.type))


def test_stragglers_from_before_a_change_of_type_fit_and_later_ones_do_not() -> None:
    wide = image(id="long", n="decimal(14,2)/decimal(14,2)", name="string")
    schema = met(PLAIN, wide)
    straggler = fit(schema, PLAIN)
    assert isinstance(straggler, Fits)
    assert straggler.until == at(200)
    assert straggler.mapping["n"].type.name == "decimal(14,2)"
    back = plan_evolution(schema, [(at(250), PLAIN)])[1][PLAIN]
    assert isinstance(back, Unfit)


def test_a_key_column_is_widened_only_where_its_hash_stays() -> None:
    schema = met(image(id="integer", n="integer"))
    wide = fit(schema, image(id="long", n="integer"))
    assert isinstance(wide, Grows)
    assert wide.next.columns[0].type.name == "long"
    assert isinstance(fit(schema, image(id="string", n="integer")), Unfit)
    assert isinstance(fit(schema, image(id="string", n="integer"), LENIENT), Unfit)


def test_leniently_another_type_gets_a_column_beside_the_old_one() -> None:
    other = image(id="long", n="boolean", name="string")
    schema = met(PLAIN, other, policy=LENIENT)
    assert schema.names == ("id", "n", "name", "n_2")
    new, old = fit(schema, other, LENIENT), fit(schema, PLAIN, LENIENT)
    assert isinstance(new, Fits)
    assert isinstance(old, Fits)
    assert (new.mapping["n"].name, old.mapping["n"].name) == ("n_2", "n")
    assert old.until == at(200)


def test_leniently_a_dropped_column_stays_and_comes_back_as_another() -> None:
    without = image(id="long", name="string")
    schema = met(PLAIN, without, policy=LENIENT)
    assert schema.names == ("id", "n", "name")
    straggler = fit(schema, PLAIN, LENIENT)
    assert isinstance(straggler, Fits)
    assert straggler.mapping["n"].id == 1
    again, verdicts = plan_evolution(schema, [(at(300), PLAIN)], LENIENT)
    assert again.names == ("id", "n_2", "name", "n")
    verdict = verdicts[PLAIN]
    assert isinstance(verdict, Fits)
    assert (verdict.mapping["n"].name, verdict.mapping["n"].id) == ("n", 3)


def test_a_rename_parks_unless_the_policy_lets_the_new_column_stand_beside_the_old() -> None:
    renamed = image(id="long", amount="integer", name="string")
    only_drops = SchemaPolicy(drop_column=Behaviour.LENIENT)
    unfit = fit(met(PLAIN), renamed, only_drops)
    assert isinstance(unfit, Unfit)
    assert "rename_column: lenient" in unfit.detail
    assert met(PLAIN, renamed, policy=LENIENT).names == ("id", "n", "name", "amount")


def test_an_ignored_column_is_left_out_and_later_changes_of_others_are_seen() -> None:
    ignoring = SchemaPolicy(add_column=Behaviour.IGNORE)
    more = image(id="long", n="integer", name="string", extra="binary")
    schema = met(PLAIN, more, policy=ignoring)
    assert (schema.names, schema.left_out) == (("id", "n", "name"), frozenset({"extra"}))
    verdict = fit(schema, more, ignoring)
    assert isinstance(verdict, Fits)
    assert set(verdict.mapping) == {"id", "n", "name"}
    wide = image(id="long", n="long", name="string", extra="binary")
    grown = fit(met(PLAIN), wide, ignoring)
    assert isinstance(grown, Grows)
    assert grown.next.names == ("id", "n", "name")


def test_by_exception_every_change_parks_but_a_table_is_born() -> None:
    assert met(PLAIN, policy=STRICT).names == ("id", "n", "name")
    for changed in (
        image(id="long", n="integer", name="string", extra="integer"),
        image(id="long", n="long", name="string"),
        image(id="long", n="integer"),
    ):
        verdict = plan_evolution(met(PLAIN), [(at(200), changed)], STRICT)[1][changed]
        assert isinstance(verdict, Unfit)


def test_a_schema_at_an_earlier_version_has_the_columns_as_they_were() -> None:
    wide = image(id="long", n="long", name="string")
    without = image(id="long", n="long")
    schema = met(PLAIN, wide, without, policy=LENIENT)
    assert [column.source_name for column in schema.columns] == ["id", "n", ""]
    assert [c.type.name for c in schema.at(1).columns] == ["long", "integer", "string"]
    assert schema.at(1) == met(PLAIN)
    assert schema.at(2) == met(PLAIN, wide)


def test_what_comes_late_makes_no_column_gone_for_one_that_the_table_never_met() -> None:
    policy = SchemaPolicy(rename_column=Behaviour.LENIENT, drop_column=Behaviour.LENIENT)
    between = image(id="long", name="string", passing="integer")
    later = image(id="long", name="string", c="integer")
    seen = [(at(100), image(id="long", name="string")), (at(300), later)]
    table, _ = plan_evolution(TableSchema(), seen, policy)
    after, verdicts = plan_evolution(table, [(at(200), between)], policy)
    assert after == table
    unfit = verdicts[between]
    assert isinstance(unfit, Unfit)
    assert "a late change" in unfit.detail
    again, _ = plan_evolution(table, [(at(400), between)], policy)
    assert "passing" in again.by_source, "the source went on from there"
    left_out = replace(policy, add_column=Behaviour.IGNORE)
    ignoring, verdicts = plan_evolution(table, [(at(200), between)], left_out)
    assert not isinstance(verdicts[between], Unfit)
    assert "c" in ignoring.by_source


def test_a_delete_of_the_key_alone_leaves_the_columns_as_they_are() -> None:
    alone = replace(image(id="long"), key_alone=True)
    schema, verdicts = plan_evolution(
        met(PLAIN),
        [(at(500), alone), (at(600), PLAIN)],
        replace(STRICT, drop_column=STRICT.add_column),
    )
    assert schema == met(PLAIN)
    verdict = verdicts[alone]
    assert isinstance(verdict, Fits)
    assert (verdict.version, list(verdict.mapping)) == (schema.version, ["id"])
