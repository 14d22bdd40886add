"""Settings of connectors that change values are named if events show them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from lakesplice.formats.events import DecodeContext, SchemaText, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from tests.property.test_format_laws import ticdc_debezium
from tests.support.avro import CONTEXT as AVRO
from tests.support.avro import KEY_ID, SCHEMAS, VALUE_ID, avro_record, envelope, written
from tests.support.debezium import (
    DECLARED,
    TABLE,
    Flavour,
    Json,
    Record,
    compact,
    decode_all,
    envelope_schema,
    image,
    key_schema,
    payload,
    with_schema,
)
from tests.support.schema_changes import Change, column, connect_record
from tests.unit.formats.events.test_flattened import CONTEXT as FLAT
from tests.unit.formats.events.test_flattened import flat

NULLS = "value.converter.replace.null.with.default"
ID = {"type": "int64", "optional": False, "field": "id"}


def suspected(records: list[Record], context: DecodeContext) -> set[str]:
    settings = decode_all(records, context).suspect_settings
    return {setting.partition(": ")[0] for setting in settings}


@pytest.mark.parametrize("schemas", [True, False])
@pytest.mark.parametrize(
    ("op", "snapshot", "names"),
    [
        ("c", "false", {NULLS}),
        ("u", "false", {NULLS}),
        ("c", None, set()),
        ("r", "true", set()),
        ("r", "last", set()),
        ("c", "incremental", set()),
    ],
)
def test_a_default_in_the_place_of_a_null_shows_in_the_source(
    op: str, snapshot: str | None, names: set[str], schemas: bool
) -> None:
    """The connector writes no `source.snapshot` for a change that comes from the binlog."""
    flavour = Flavour(schemas=schemas)
    before = image(1) if op == "u" else None
    event = flavour.record(payload(op, before, image(1), snapshot=snapshot), 1)
    assert suspected([event], flavour.context) == names


@pytest.mark.parametrize(("snapshot", "shown"), [("false", True), (None, False)])
def test_in_avro_the_setting_is_the_converters_own(snapshot: str | None, shown: bool) -> None:
    event = avro_record(payload("c", None, image(1), snapshot=snapshot), 1)
    name = "value.converter.ignore.default.for.nullables"
    assert suspected([event], AVRO) == ({name} if shown else set())


def test_in_avro_moments_cut_to_milliseconds_show_too() -> None:
    millis = {"type": "long", "connect.name": "org.apache.kafka.connect.data.Timestamp"}
    types = {"id": "long", "v": ["null", millis]}
    schemas = SCHEMAS | {VALUE_ID: SchemaText(json.dumps(envelope(types)))}
    event = payload("c", None, {"id": 1, "v": 5}, pos=100, snapshot=None)
    record = written(KEY_ID, {"id": 1}), written(VALUE_ID, event, schemas)
    assert suspected([record], replace(AVRO, schemas=schemas)) == {"time.precision.mode"}


def test_a_flattened_row_shows_it_too() -> None:
    name = "transforms.unwrap.replace.null.with.default"
    assert suspected([flat(1, __source_snapshot="false")], FLAT) == {name}
    assert suspected([flat(1, __source_snapshot=None)], FLAT) == set()
    assert suspected([flat(1)], FLAT) == set()


def test_ticdc_writes_false_itself() -> None:
    assert suspected([ticdc_debezium(1)], DecodeContext(TABLE, declare(DECLARED))) == set()


def of_type(field: Json, ddl: str = "") -> set[str]:
    """The settings that an event with a column of this schema shows, beside what `ddl` told."""
    history = None
    if ddl:
        read = read_schema_change(connect_record(ddl, pos=10, order=0))
        assert isinstance(read, SchemaChange)
        history = types_of(history_of([read]), TABLE, ConverterSettings())
    event = payload("c", None, {"id": 1, "v": 5}, pos=100, snapshot=None)
    value = with_schema(event, envelope_schema([ID, {**field, "optional": True, "field": "v"}]))
    record = compact(with_schema({"id": 1}, key_schema([ID]))), compact(value)
    return suspected([record], DecodeContext(TABLE, history=history))


def test_moments_cut_to_milliseconds_show_by_their_types() -> None:
    connect = "org.apache.kafka.connect.data."
    assert of_type({"type": "int64", "name": connect + "Timestamp"}) == {"time.precision.mode"}
    assert of_type({"type": "int32", "name": connect + "Time"}) == {"time.precision.mode"}
    assert of_type({"type": "int64", "name": "io.debezium.time.Timestamp"}) == set()


def test_an_unsigned_number_sent_as_signed_shows_beside_its_definition() -> None:
    ddl = "CREATE TABLE items (id bigint PRIMARY KEY, v bigint{})"
    unsigned = ddl.format(" unsigned")
    assert of_type({"type": "int64"}, unsigned) == {"bigint.unsigned.handling.mode"}
    assert of_type({"type": "int64"}, ddl.format("")) == set()
    assert of_type({"type": "int64"}) == set()


def test_a_synonym_of_an_unsigned_type_sent_as_signed_shows_beside_its_definition() -> None:
    ddl = "CREATE TABLE items (id bigint PRIMARY KEY, v integer(11){})"
    assert of_type({"type": "int32"}, ddl.format(" unsigned")) == {"INTEGER UNSIGNED"}
    assert of_type({"type": "int64"}, ddl.format(" unsigned")) == set()
    assert of_type({"type": "int32"}, ddl.format("")) == set()


def told_of(*statements: str, listed: bool = False) -> set[str]:
    """What is noted of a table of which the schema-change topic has these statements; whether each
    record also lists the table's columns, as Debezium's do.
    """
    changes = [
        read_schema_change(
            connect_record(s, pos=n, order=n, changes=LISTED[s.split()[0]] if listed else ())
        )
        for n, s in enumerate(statements)
    ]
    history = history_of([change for change in changes if isinstance(change, SchemaChange)])
    types = types_of(history, TABLE, ConverterSettings())
    context = DecodeContext(TABLE, declare(DECLARED), history=types)
    (event,) = [Flavour(schemas=True).record(payload("c", None, image(1), snapshot=None), 1)]
    return suspected([event], context)


_COLUMNS = [column("id", "INT", optional=False), column("o", "INT")]
LISTED: dict[str, list[Change]] = {
    "CREATE": [("CREATE", "items", _COLUMNS)],
    "ALTER": [("ALTER", "items", _COLUMNS)],
    "DROP": [("DROP", "items", None)],
}
CHILD = "CREATE TABLE items (id int PRIMARY KEY, o int, {})"
PARENT = "FOREIGN KEY (o) REFERENCES orders (id)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clause", "noted"),
    [
        ("ON DELETE CASCADE", True),
        ("ON DELETE SET NULL ON UPDATE NO ACTION", True),
        ("on delete restrict on update cascade", True),
        ("ON DELETE RESTRICT", False),
        ("", False),
    ],
)
def test_rows_that_the_server_deletes_itself_are_cautioned_of(clause: str, noted: bool) -> None:
    plain, key = CHILD.format("KEY (o)"), f"{PARENT} {clause}"
    expected = {"foreign-key-cascades"} if noted else set()
    for listed in (False, True):
        told = partial(told_of, listed=listed)
        assert told(CHILD.format(key)) == expected
        assert told(plain, f"ALTER TABLE items ADD CONSTRAINT c {key}") == expected
        assert told(plain, f"ALTER TABLE items ADD COLUMN x int, ADD {key}") == expected
        assert told(CHILD.format(key), "DROP TABLE items", plain) == set()
    renamed = CHILD.replace("items", "former").format(key)
    assert told_of(renamed, "RENAME TABLE former TO items") == expected


def test_members_that_are_bytes_are_cautioned_of() -> None:
    kind = "e enum('a', 'b') {}"
    assert told_of(CHILD.format(kind.format("CHARACTER SET binary"))) == {"enum-charset-binary"}
    assert told_of(CHILD.format(kind.format("CHARACTER SET latin1"))) == set()
    assert told_of(CHILD.format("b varchar(3) CHARACTER SET binary")) == set()
