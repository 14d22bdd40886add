"""Every type in every format: the exact value, or a dead letter, or a parked table."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lakesplice.formats.events import DecodeContext, Decoded, SchemaText, declare
from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.model.types import ColumnType
from lakesplice.testing.avro_records import frame, write_value
from tests.property.test_format_laws import ticdc_debezium
from tests.support import avro
from tests.support.debezium import (
    TABLE,
    Record,
    compact,
    decode_all,
    envelope_schema,
    images,
    key_schema,
    payload,
    with_schema,
)
from tests.support.schema_changes import connect_record
from tests.support.sent_types import DEAD, PARKED, Sent
from tests.support.types import TYPES, notes, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "types.md"
_ID = {"type": "int64", "optional": False, "field": "id"}
_GEOMETRY: dict[str, Any] = {
    "type": "struct", "name": "io.debezium.data.geometry.Geometry", "version": 1,
    "fields": [{"type": "bytes", "optional": False, "field": "wkb"},
               {"type": "int32", "optional": True, "field": "srid"}],
}  # fmt: skip
_AVRO = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}


def cases(of: str) -> list[Any]:
    return [
        pytest.param(sent, id=f"{type_.name}-{number}")
        for type_ in TYPES
        for number, sent in enumerate(getattr(type_, of))
    ]


def assert_outcome(decoded: Decoded, sent: Sent) -> None:
    if sent.outcome is PARKED:
        assert len(decoded.stops) == 1
        return
    assert decoded.stops == ()
    if sent.outcome is DEAD:
        # The record beside it, which holds null, is none.
        assert decoded.dead.rows.tolist() == [0]
        return
    assert decoded.dead.detail == ()
    (block,) = decoded.blocks
    column = next(field.type for field in block.schema.fields if field.name == "v")
    assert column == ColumnType.parse(sent.column)
    (_, after), (_, empty) = (images(decoded)[row] for row in (0, 1))
    assert after is not None
    assert empty is not None
    assert (type(after["v"]), after["v"]) == (type(sent.outcome), sent.outcome)
    assert empty["v"] is None


def in_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: in_json(member) for name, member in value.items()}
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def events(value: Any) -> list[dict[str, Any]]:
    """An event that creates a row with the value, and one that creates a row without."""
    return [payload("c", None, {"id": row, "v": v}, pos=row) for row, v in ((1, value), (2, None))]


@pytest.mark.parametrize("sent", cases("connect"))
def test_from_debezium_in_json_with_schemas(sent: Sent) -> None:
    field = _GEOMETRY if sent.type == "Geometry" else sent.type
    schema = envelope_schema([_ID, {**field, "optional": True, "field": "v"}])
    records = [
        (compact(with_schema({"id": row}, key_schema([_ID]))), compact(with_schema(event, schema)))
        for row, event in enumerate(events(in_json(sent.value)), 1)
    ]
    assert_outcome(decode_all(records, DecodeContext(TABLE)), sent)


def avro_type(field: Mapping[str, Any]) -> Any:
    attributes = {
        f"connect.{name}": field[name] for name in ("name", "parameters") if name in field
    }
    if field["type"] == "struct":
        members = {
            member["field"]: avro_type(member) if not member["optional"] else
            ["null", avro_type(member)] for member in field["fields"]
        }  # fmt: skip
        return {**avro.record("Geometry", members), **attributes}
    if field["type"] in ("int8", "int16"):
        attributes["connect.type"] = field["type"]
    return {"type": _AVRO.get(field["type"], field["type"]), **attributes}


@pytest.mark.parametrize("sent", cases("connect"))
def test_from_debezium_in_avro(sent: Sent) -> None:
    type_ = avro_type(_GEOMETRY if sent.type == "Geometry" else sent.type)
    schema = SchemaText(json.dumps(avro.envelope({"id": "long", "v": ["null", type_]})))
    context = DecodeContext(TABLE, schemas={**avro.SCHEMAS, 9: schema})
    records = [
        (avro.written(avro.KEY_ID, {"id": row}), frame(9, write_value(avro.node(schema), event)))
        for row, event in enumerate(events(sent.value), 1)
    ]
    assert_outcome(decode_all(records, context), sent)


@pytest.mark.parametrize("sent", cases("declared"))
def test_from_debezium_in_json_without_schemas(sent: Sent) -> None:
    context = DecodeContext(TABLE, declare({"id": "bigint", "v": sent.type}))
    records = [
        (compact({"id": row}), compact(event))
        for row, event in enumerate(events(in_json(sent.value)), 1)
    ]
    assert_outcome(decode_all(records, context), sent)


def handling(declared: str) -> ConverterSettings:
    """The connector's settings under which it writes what is declared so."""
    if declared == "unsigned_long":
        return ConverterSettings(bigint_unsigned_handling_mode="long")
    as_text = declared.startswith("decimal_text") or declared == "string"
    return ConverterSettings("string" if as_text else "precise", "precise")


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        pytest.param(type_.name, sent, id=f"{type_.name}-{number}")
        for type_ in TYPES
        for number, sent in enumerate(type_.declared)
    ],
)
def test_from_debezium_in_json_without_schemas_by_its_ddl(name: str, sent: Sent) -> None:
    ddl = f"CREATE TABLE items (id bigint PRIMARY KEY, v {name.partition(', ')[0]})"
    if sent.outcome is not PARKED and "…" not in name:
        ddl = f"CREATE TABLE items (id bigint PRIMARY KEY, v {name})"
    change = read_schema_change(connect_record(ddl, file="binlog.000001", changes=None))
    assert isinstance(change, SchemaChange)
    history = types_of(history_of([change]), TABLE, handling(sent.type))
    records = [
        (compact({"id": row}), compact(event))
        for row, event in enumerate(events(in_json(sent.value)), 1)
    ]
    assert_outcome(decode_all(records, DecodeContext(TABLE, history=history)), sent)


def maxwell(row: int, value: Any) -> Record:
    data = {"id": row, "v": value}
    head = {"database": "shop", "table": "items", "type": "insert", "ts": 1795247776, "xid": row}
    event = {**head, "position": f"binlog.000001:{100 + row}", "xoffset": 0, "data": data}
    return compact({"database": "shop", "table": "items", "pk.id": row}), compact(event)


@pytest.mark.parametrize("sent", cases("maxwell"))
def test_from_maxwell(sent: Sent) -> None:
    context = DecodeContext(TABLE, declare({"id": "bigint", "v": sent.type}))
    records = [maxwell(1, in_json(sent.value)), maxwell(2, None)]
    assert_outcome(decode_all(records, context), sent)


def canal(row: int, type_: str, value: Any) -> Record:
    message = {
        "data": [{"id": str(row), "v": value}], "database": "shop", "es": 1589373560000,
        "isDdl": False, "mysqlType": {"id": "bigint", "v": type_}, "old": None, "pkNames": ["id"],
        "table": "items", "ts": 1589373560798, "type": "INSERT",
    }  # fmt: skip
    return None, compact(message)


@pytest.mark.parametrize("sent", cases("canal"))
def test_from_canal_and_ticdc(sent: Sent) -> None:
    type_ = sent.type.removeprefix("declared ")
    context = DecodeContext(TABLE, declare({"v": type_}) if type_ != sent.type else None)
    records = [canal(row, type_, value) for row, value in ((1, sent.value), (2, None))]
    assert_outcome(decode_all(records, context), sent)


def test_ticdcs_debezium_protocol_sends_digits_through_a_double() -> None:
    types = {"id": "bigint", "name": "string", "price": "decimal(15,2)", "stock": "int"}
    decoded = decode_all([ticdc_debezium(1)], DecodeContext(TABLE, declare(types)))
    assert images(decoded)[0][1] is not None
    (stop,) = decode_all(
        [ticdc_debezium(1)], DecodeContext(TABLE, declare({**types, "price": "decimal(16,2)"}))
    ).stops
    assert "15 digits" in stop.detail


def test_the_document_shows_what_is_tested() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert "\n".join(table()) in text
    assert "\n".join(notes()) in text
