"""Events of TiCDC's Debezium protocol in Avro, as its encoder writes them."""

from __future__ import annotations

import json
from typing import Any

from lakesplice.formats.events import SchemaText
from tests.support.avro import written
from tests.support.debezium import Record

KEY, VALUE = 1, 2
_SPACE = "cluster.shop"
_SOURCE: dict[str, Any] = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "long",
    "snapshot": ["null", "string"], "db": "string", "table": "string", "server_id": "long",
    "gtid": ["null", "string"], "file": "string", "pos": "long", "row": "int",
    "thread": ["null", "long"], "query": ["null", "string"], "commit_ts": "long",
    "cluster_id": "string",
}  # fmt: skip


def _record(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    members = [{"name": n, "type": type_, "connect.field": n} for n, type_ in fields.items()]
    return {
        "type": "record", "name": name, "namespace": _SPACE, "fields": members,
        "connect.name": f"{_SPACE}.{name}",
    }  # fmt: skip


def decimal(precision: int, scale: int) -> dict[str, Any]:
    """A column's type, with its parameters called otherwise than in Debezium's schemas."""
    return {
        "type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale,
        "connect.name": "org.apache.kafka.connect.data.Decimal",
        "connect.parameters": {"precision": str(precision), "scale": str(scale)},
    }  # fmt: skip


def schemas(price: dict[str, Any]) -> dict[int, SchemaText]:
    """The schemas of keys and values, by number."""
    row = {"id": ["null", "int"], "price": ["null", price]}
    envelope = {
        "before": ["null", _record("items", row)], "after": ["null", f"{_SPACE}.items"],
        "source": _record("Source", _SOURCE), "op": "string", "ts_ms": "long",
    }  # fmt: skip
    texts = {KEY: _record("itemsKey", {"id": ["null", "int"]}),
             VALUE: _record("itemsEnvelope", envelope)}  # fmt: skip
    return {number: SchemaText(json.dumps(schema)) for number, schema in texts.items()}


def event(op: str, before: Any, after: Any, commit: int) -> dict[str, Any]:
    """A change at a commit timestamp."""
    source = {
        "version": "2.4.0.Final", "connector": "TiCDC", "name": "cluster", "ts_ms": 1,
        "snapshot": None, "db": "shop", "table": "items", "server_id": 0, "gtid": None, "file": "",
        "pos": 0, "row": 0, "thread": None, "query": None, "commit_ts": commit,
        "cluster_id": "cluster",
    }  # fmt: skip
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1}


def row(unscaled: int) -> dict[str, Any]:
    """The row 1 with a price."""
    length = unscaled.bit_length() // 8 + 1
    return {"id": 1, "price": unscaled.to_bytes(length, "big", signed=True)}


def record(price: dict[str, Any], content: dict[str, Any]) -> Record:
    """An event of the row 1, of whose schemas `price` is a column's."""
    known = schemas(price)
    return written(KEY, {"id": 1}, known), written(VALUE, content, known)
