"""Events in Avro: of the table `TABLE`, and those that a connector sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from lakesplice.formats.events import DecodeContext, SchemaText
from lakesplice.formats.events.avro import Record as Node
from lakesplice.formats.events.avro import parse_schema
from lakesplice.testing.avro_records import frame, write_value
from tests.support.debezium import TABLE, Record

KEY_ID, VALUE_ID, ROW_ID = 3, 4, 5
_NAME = "test.shop.items"
_DECIMAL = {
    "type": "bytes", "scale": 2, "precision": 8, "connect.version": 1,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "8"},
    "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal",
}  # fmt: skip
_TYPES: dict[str, Any] = {
    "id": "long",
    "name": ["null", "string"],
    "price": ["null", _DECIMAL],
    "stock": ["null", "int"],
}
_SOURCE: dict[str, Any] = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "long",
    "snapshot": ["string", "null"], "db": "string", "sequence": ["null", "string"],
    "ts_us": ["null", "long"], "ts_ns": ["null", "long"], "table": ["null", "string"],
    "server_id": "long", "gtid": ["null", "string"], "file": "string", "pos": "long",
    "row": "int", "thread": ["null", "long"], "query": ["null", "string"],
}  # fmt: skip
_ADDED: dict[str, Any] = {
    "__deleted": ["null", "string"], "__op": ["null", "string"],
    "__source_file": ["null", "string"], "__source_pos": ["null", "long"],
    "__source_row": ["null", "int"],
}  # fmt: skip


def record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A record's schema of fields in order."""
    listed = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "namespace": _NAME, "fields": listed}


def envelope(types: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of events whose row images have these columns."""
    source = {**record("Source", _SOURCE), "namespace": "io.debezium.connector.mariadb"}
    members = {
        "before": ["null", record("Value", types)], "after": ["null", "Value"], "source": source,
        "transaction": ["null", record("block", {"id": "string", "total_order": "long"})],
        "op": "string", "ts_ms": ["null", "long"],
    }  # fmt: skip
    return record("Envelope", members)


def flattened(types: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of flattened rows that have these columns."""
    return record("Value", {**types, **_ADDED})


SCHEMAS = {
    number: SchemaText(json.dumps(schema))
    for number, schema in (
        (KEY_ID, record("Key", {"id": "long"})),
        (VALUE_ID, envelope(_TYPES)),
        (ROW_ID, flattened(_TYPES)),
    )
}
CONTEXT = DecodeContext(TABLE, schemas=SCHEMAS)


def written(number: int, value: object, schemas: Mapping[int, SchemaText] = SCHEMAS) -> bytes:
    """A value behind the number of its schema."""
    return frame(number, write_value(node(schemas[number]), value))


def node(schema: SchemaText) -> Node:
    """The schema as it is read."""
    return cast("Node", parse_schema(schema.text))


def in_avro(payload: Mapping[str, Any]) -> dict[str, Any]:
    """An event with its decimals as the bytes that they are."""
    images = {name: payload[name] and _image(payload[name]) for name in ("before", "after")}
    return {**payload, **images}


def _image(image: Mapping[str, Any]) -> dict[str, Any]:
    return {**image, "price": image["price"] and base64.b64decode(image["price"])}


def avro_record(payload: Mapping[str, Any], row: int) -> Record:
    """An event of the key `row`."""
    return written(KEY_ID, {"id": row}), written(VALUE_ID, in_avro(payload))


def flattened_record(image: Mapping[str, Any], row: int, **added: object) -> Record:
    """A flattened event of the key `row`."""
    return written(KEY_ID, {"id": row}), written(ROW_ID, {**_image(image), **added})


@dataclass(frozen=True)
class GivenSchemas:
    """A registry that holds just these schemas."""

    known: Mapping[int, SchemaText]

    def schemas(self, numbers: Iterable[int]) -> Mapping[int, SchemaText]:
        return {number: self.known[number] for number in numbers if number in self.known}


def captured_schemas(path: Path) -> GivenSchemas:
    """The schemas that came with a capture."""
    kept = json.loads(path.read_text(encoding="utf-8"))
    return GivenSchemas({int(at): SchemaText(entry["schema"]) for at, entry in kept.items()})
