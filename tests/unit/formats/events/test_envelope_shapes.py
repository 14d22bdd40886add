"""The key and columns of an envelope's images, by its schema or by what is declared."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.model.names import TableName
from lakesplice.model.parking import ParkCode
from tests.support.debezium import (
    TABLE,
    Flavour,
    compact,
    dead,
    decode_all,
    envelope_schema,
    image,
    images,
    key_schema,
    payload,
    type_name,
    with_schema,
)
from tests.support.envelope_rows import FLAVOURS, PLAIN, SCHEMAS


@FLAVOURS
def test_records_without_a_key_come_in_blocks_of_their_own(flavour: Flavour) -> None:
    keyless = (None, flavour.created(2)[1])
    decoded = flavour.decode([flavour.created(1), keyless, flavour.created(3)])
    blocks = {block.schema.key: block.rows.tolist() for block in decoded.blocks}
    assert blocks == {("id",): [0, 2], (): [1]}


@FLAVOURS
def test_a_changed_key_makes_another_block(flavour: Flavour) -> None:
    wide = [{"type": "int64", "field": "id"}, {"type": "string", "field": "name"}]
    content = {"id": 2, "name": "item 2"}
    key = compact(with_schema(content, key_schema(wide)) if flavour.schemas else content)
    decoded = flavour.decode([flavour.created(1), (key, flavour.created(2)[1])])
    blocks = {block.schema.key: block.rows.tolist() for block in decoded.blocks}
    assert blocks == {("id",): [0], ("id", "name"): [1]}


@pytest.mark.parametrize(
    ("found", "topic", "same"),
    [
        ({}, TableName("shop", "items"), True),
        ({"table": "räder & co"}, TableName("shop", "r_der___co"), True),
        ({"table": "räder"}, TableName("shop", "räder"), True),
        ({}, TableName("default", "items"), True),
        ({}, TableName("default", "orders"), False),
        ({}, TableName("crm", "items"), False),
        ({"db": "Shop"}, TableName("shop", "items"), False),
    ],
)
def test_a_topic_names_its_table_with_the_characters_it_may_hold(
    found: dict[str, Any], topic: TableName, same: bool
) -> None:
    record = (b'{"id":1}', compact(payload("c", None, image(1), **found)))
    decoded = decode_all([record], DecodeContext(topic, PLAIN.context.declared))
    assert dead(decoded) == ({} if same else {0: "wrong-table"})


def test_without_schemas_an_absent_field_is_another_schema_never_null() -> None:
    records = [PLAIN.created(at) for at in range(6)]
    for at in (2, 3, 5):
        after = image(at)
        del after["stock"]
        records[at] = PLAIN.record(payload("c", None, after), at)
    decoded = PLAIN.decode(records)
    rows = {
        tuple(f.name for f in block.schema.fields): block.rows.tolist() for block in decoded.blocks
    }
    assert rows == {("id", "name", "price", "stock"): [0, 1, 4], ("id", "name", "price"): [2, 3, 5]}


def test_without_schemas_images_of_different_columns_are_a_dead_letter() -> None:
    before = image(1)
    del before["stock"]
    decoded = PLAIN.decode([PLAIN.created(1), PLAIN.record(payload("u", before, image(1)), 1)])
    assert dead(decoded) == {1: "missing-field"}


@pytest.mark.slow
def test_many_shapes_without_schemas_are_distinguished() -> None:
    columns = {f"c{n}": "integer" for n in range(30)}
    context = DecodeContext(TABLE, declare({"id": "long", **columns}))
    records = []
    for at in range(60):
        after = {"id": at, **dict.fromkeys(list(columns)[: at % 30], at)}
        records.append((compact({"id": at}), compact(payload("c", None, after))))
    records.insert(7, (b"{}", b"junk"))
    decoded = decode_all(records, context)
    assert len(images(decoded)) == 60
    assert dead(decoded) == {7: "not-json"}
    assert {len(block.schema.fields) for block in decoded.blocks} == set(range(1, 31))


@pytest.mark.parametrize("declared", [None, {}, {"id": "long", "name": "string"}])
def test_undeclared_columns_stop_the_partition_with_the_configuration_to_write(
    declared: dict[str, str] | None,
) -> None:
    context = DecodeContext(TABLE, None if declared is None else declare(declared))
    decoded = decode_all([(None, b"junk"), PLAIN.created(1), PLAIN.created(2)], context)
    (stop,) = decoded.stops
    assert (stop.row, stop.code) == (1, ParkCode.TYPES_UNDECLARED)
    assert 'match: "shop.items"' in stop.detail
    assert '"price": TYPE, "stock": TYPE' in stop.detail
    assert ('"id": TYPE' in stop.detail) is not bool(declared)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "struct", "fields": [], "name": "io.debezium.data.geometry.Point"},
        {"type": "struct", "fields": [], "name": "io.debezium.data.VariableScaleDecimal"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}},
        {
            "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "30", "connect.decimal.precision": "66"},
        },
    ],
)  # fmt: skip
def test_a_type_without_an_exact_column_type_stops_the_partition(field: dict[str, Any]) -> None:
    schema = envelope_schema([{"type": "int64", "field": "id"}, {**field, "field": "shape"}])
    content = payload("c", None, {"id": 1, "shape": None})
    record = (SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))
    decoded = decode_all([SCHEMAS.created(1), record], DecodeContext(TABLE))
    (stop,) = decoded.stops
    assert (stop.row, stop.code) == (1, ParkCode.UNSUPPORTED)
    assert "column='shape'" in stop.detail


def test_a_decimal_without_a_precision_has_38_digits() -> None:
    field = {
        "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "0"}, "field": "big",
    }  # fmt: skip
    schema = envelope_schema([{"type": "int64", "field": "id"}, field])
    content = payload("c", None, {"id": 1, "big": "AP//////////"})
    (block,) = decode_all(
        [(SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))], DecodeContext(TABLE)
    ).blocks
    assert type_name(block, 1) == "decimal(38,0)"
    assert block.after["big"].to_pylist() == [Decimal(2**64 - 1)]


def test_enum_values_and_defaults_are_no_part_of_the_source_type() -> None:
    def types(**more: object) -> set[object]:
        enum = {"type": "string", "name": "io.debezium.data.Enum", "field": "e", **more}
        schema = envelope_schema([{"type": "int64", "field": "id"}, enum])
        content = payload("c", None, {"id": 1, "e": "a"})
        record = (SCHEMAS.key({"id": 1}), compact(with_schema(content, schema)))
        return {block.schema for block in decode_all([record], DecodeContext(TABLE)).blocks}

    first = types(parameters={"allowed": "a,b"}, optional=True)
    assert first == types(parameters={"allowed": "a,b,c"}, optional=False, default="a")


def test_column_names_may_hold_anything() -> None:
    names = ["a.b", 'q"', "back\\", ":null", "é", "😀", "i", "p", "op", "source", "x ", "*", "[a]"]
    columns = {"id": "long", **dict.fromkeys(names, "integer")}
    context = DecodeContext(TABLE, declare(columns))
    rows = [{"id": at, **dict.fromkeys(names, None if at % 2 else at)} for at in range(4)]
    records = [
        (compact({"id": after["id"]}), compact(payload("u", after, after))) for after in rows
    ]
    wrong = compact(payload("c", None, {**rows[0], "é": "text"}))
    decoded = decode_all([*records, (records[0][0], wrong)], context)
    assert [after for _, after in images(decoded).values()] == rows
    assert dead(decoded) == {4: "wrong-type"}


@pytest.mark.parametrize(
    ("kind", "sent", "read"),
    [("int64", -1, Decimal(2**64 - 1)), ("string", str(2**64 - 1), str(2**64 - 1))],
)
def test_an_unsigned_bigint_is_read_as_such_only_where_it_was_sent_as_signed(
    kind: str, sent: object, read: object
) -> None:
    stated = {"__debezium.source.column.type": "BIGINT UNSIGNED"}
    fields: list[dict[str, Any]] = [
        {"type": "int64", "field": "id"},
        {"type": kind, "optional": True, "field": "big", "parameters": stated},
        {"type": "int64", "optional": True, "field": "plain"},
    ]
    row = {"id": 1, "big": sent, "plain": -1}
    key = compact(with_schema({"id": 1}, key_schema()))
    value = compact(with_schema(payload("c", None, row), envelope_schema(fields)))
    decoded = decode_all([(key, value)], DecodeContext(TABLE))
    assert images(decoded) == {0: (None, {**row, "big": read})}
