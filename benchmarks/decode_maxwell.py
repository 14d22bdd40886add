"""Decoding of Maxwell's events beside the floor, as `benchmarks/decode.py` does Debezium's.

Run: python -m benchmarks.decode_maxwell [--rows N] [--repeats N]. The same 23 columns, two of them
changed, in 0.8 kB: Maxwell sends of the row before only these. Every ninth was null.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
from pyarrow import json as arrow_json

from benchmarks.decode import EventSample, as_json, compare

TYPES = {
    "id": "long",
    **{f"quantity_{n}": "integer" for n in range(5)},
    **{f"reference_{n}": "long" for n in range(5)},
    **{f"price_{n}": "decimal(12,2)" for n in range(4)},
    **{f"label_{n}": "string" for n in range(4)},
    "weight": "double",
    "sold": "date",
    "created": "timestamp",
    "changed": "datetime(6)",
}
JSON_TYPES = {
    **dict.fromkeys(("integer", "long"), pa.int64()),
    **dict.fromkeys(("double", "decimal(12,2)"), pa.float64()),
}


def _value(kind: str, chance: random.Random) -> object:
    match kind:
        case "integer" | "long":
            return chance.randrange(10**5 if kind == "integer" else 10**10)
        case "double":
            return chance.random()
        case "decimal(12,2)":
            return chance.randrange(10**8) / 100
        case "string":
            return None if chance.random() < 0.05 else f"label {chance.randrange(1_000_000)}"
        case "date":
            return f"2026-11-{chance.randrange(1, 30):02}"
    fraction = f".{chance.randrange(10**6):06}" if kind == "datetime(6)" else ""
    return f"2026-11-{chance.randrange(1, 30):02} 02:30:00{fraction}"


def _event(row: int, chance: random.Random) -> dict[str, Any]:
    data = {name: _value(kind, chance) for name, kind in TYPES.items()} | {"id": row}
    old = {"quantity_0": chance.randrange(100), "label_0": None if row % 9 == 0 else "was"}
    return {
        "database": "shop", "table": "sales", "type": "update", "ts": 1795248866, "xid": row,
        "xoffset": 0, "position": f"binlog.000001:{1000 + row * 300}", "server_id": 223344,
        "thread_id": 0, "schema_id": 4, "primary_key_columns": ["id"], "data": data, "old": old,
    }  # fmt: skip


def _malformed(event: dict[str, Any], kind: int) -> bytes:
    text = as_json(event)
    data = dict(event["data"])
    wrong = {"quantity_1": "many"} if kind < 6 else {"label_1": 5} if kind < 7 else {"sold": "x"}
    broken = (text[: len(text) // 2], b"", text.replace(b"shop", b"sh\nop"), b"no JSON")
    return broken[kind] if kind < len(broken) else as_json({**event, "data": {**data, **wrong}})


SAMPLE = EventSample(
    _event, _malformed, lambda row: b'{"database":"shop","table":"sales","pk.id":%d}' % row
)


def floor(text: bytes) -> pa.Table:
    """Read events, a line each, into columns of JSON's own types."""
    image = pa.struct([(name, JSON_TYPES.get(kind, pa.string())) for name, kind in TYPES.items()])
    names = ("database", "table", "type", "position")
    numbers = ("ts", "xid", "xoffset", "server_id", "thread_id", "schema_id")
    schema = pa.schema(
        [*((name, pa.string()) for name in names), *((name, pa.int64()) for name in numbers),
         ("primary_key_columns", pa.list_(pa.string())), ("data", image), ("old", image)]
    )  # fmt: skip
    return arrow_json.read_json(
        pa.BufferReader(text),
        arrow_json.ReadOptions(use_threads=False, block_size=4 << 20),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )


if __name__ == "__main__":
    compare(TYPES, SAMPLE, floor)
