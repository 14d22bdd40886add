"""Columns that a row image lacks, as each format's events show them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa

from lakesplice.formats.events import DecodeContext, declare
from lakesplice.formats.events.decode import decode
from lakesplice.model.change import Op
from lakesplice.model.names import TableName
from tests.support.altered import TOPIC, event
from tests.support.debezium import TABLE, Record, compact, decode_all

GONE = "__debezium_unavailable_value"
TYPES = {"id": "int32", "note": "string", "body": "bytes", "n": "int32"}
CONTEXT = DecodeContext(TABLE, declare({"id": "int", "name": "string", "stock": "int"}))


def canal(data: dict[str, Any], kind: str = "UPDATE", **types: str) -> Record:
    value = {
        "id": 1, "database": "shop", "table": "items", "pkNames": ["id"], "isDdl": False,
        "type": kind, "es": 1_000, "ts": 1_000, "sql": "", "sqlType": dict.fromkeys(data, 4),
        "mysqlType": {name: types.get(name, "int") for name in data}, "data": [data],
        "old": [{}] if kind == "UPDATE" else None,
    }  # fmt: skip
    return None, compact(value)


def maxwell(data: dict[str, Any], kind: str = "update") -> Record:
    value = {"database": "shop", "table": "items", "type": kind, "ts": 5, "data": data}
    return compact({"database": "shop", "table": "items", "pk.id": 1}), compact(value)


def of_debezium(*rows: tuple[dict[str, Any] | None, dict[str, Any] | None]) -> Any:
    events = [event(TYPES, at, after, before) for at, (before, after) in enumerate(rows, 1)]
    records = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([one.key for one in events], pa.binary()),
            "value": pa.array([one.value for one in events], pa.binary()),
            "offset": pa.array(range(len(events)), pa.int64()),
        }
    )
    return decode(records, DecodeContext(TableName.from_topic(TOPIC)))


def row(**values: object) -> dict[str, Any]:
    body = base64.b64encode(b"body").decode()
    return {"id": 1, "note": "note", "body": body, "n": 1, **values}


def test_maxwell_lacks_what_is_declared_and_not_sent() -> None:
    decoded = decode_all(
        [maxwell({"id": 1, "stock": 5}), maxwell({"id": 1, "stock": 5, "name": None})], CONTEXT
    )
    found = {tuple(f.name for f in b.schema.fields): b.schema for b in decoded.blocks}
    assert [f.name for f in found["id", "stock"].omitted] == ["name"]
    assert not found["id", "stock", "name"].omitted
    assert not any(schema.partial for schema in found.values())


def test_canal_lacks_what_is_declared_and_not_sent_where_all_is_declared() -> None:
    (block,) = decode_all([canal({"id": "1", "stock": "5"})], CONTEXT).blocks
    assert [(f.name, f.source_type) for f in block.schema.omitted] == [("name", "declared:string")]
    some = DecodeContext(TABLE, declare({"name": "string"}))
    (block,) = decode_all([canal({"id": "1", "stock": "5"})], some).blocks
    assert not block.schema.omitted


def test_debezium_says_itself_what_was_not_in_the_row_image() -> None:
    gone = base64.b64encode(GONE.encode()).decode()
    decoded = of_debezium(
        (None, row()),
        (row(note=GONE, body=gone), row(note=GONE, body=gone, n=2)),
        (row(note=GONE, body=gone), row(note="new", body=gone)),
        (row(note=GONE), row(note="newer")),
        (row(note=GONE, body=gone), None),
    )
    assert not len(decoded.dead)
    found = {int(at): (block, n) for block in decoded.blocks for n, at in enumerate(block.rows)}
    lacking = {
        at: [field.name for field in block.schema.omitted] for at, (block, _) in found.items()
    }
    assert lacking == {0: [], 1: ["note", "body"], 2: ["body"], 3: [], 4: []}
    assert {at: block.schema.partial for at, (block, _) in found.items()} == {
        0: False, 1: True, 2: True, 3: False, 4: False
    }  # fmt: skip
    # An image before that isn't all there proves nothing of the row.
    assert [bool(found[at][0].before_present[found[at][1]]) for at in (3, 4)] == [False, True]
    assert found[4][0].op[found[4][1]] == Op.DELETE
    assert GONE not in json.dumps([str(b.after.to_pylist()) for b in decoded.blocks])
