"""Change events as the connector writes them, and the law that decoding must obey."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lakesplice.formats.events import DecodeContext, Decoded, declare, decode
from lakesplice.formats.events.values.blocks import ImageBlock
from lakesplice.model.names import TableName

TABLE = TableName("shop", "items")
DECLARED = {"id": "long", "name": "string", "price": "decimal(8,2)", "stock": "integer"}
_FIELDS = (
    {"type": "int64", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "name"},
    {
        "type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1, "parameters": {"scale": "2", "connect.decimal.precision": "8"},
        "field": "price",
    },
    {"type": "int32", "optional": True, "field": "stock"},
)  # fmt: skip
_SOURCE = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "int64",
    "snapshot": "string", "db": "string", "sequence": "string", "ts_us": "int64",
    "ts_ns": "int64", "table": "string", "server_id": "int64", "gtid": "string",
    "file": "string", "pos": "int64", "row": "int32", "thread": "int64", "query": "string",
}  # fmt: skip
Json = Mapping[str, Any]
Record = tuple[bytes | None, bytes | None]


def compact(value: object) -> bytes:
    """JSON as Connect writes it: no spaces, UTF-8."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def money(unscaled: int) -> str:
    """A decimal's unscaled value as Connect sends it."""
    length = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return base64.b64encode(unscaled.to_bytes(length, "big", signed=True)).decode()


def image(row: int, **changed: object) -> dict[str, object]:
    """A row image of the table `TABLE`."""
    return {"id": row, "name": f"item {row}", "price": money(100 * row), "stock": row, **changed}


def payload(
    op: str, before: Json | None, after: Json | None, *, pos: int = 4, **source: object
) -> dict[str, Any]:
    """An envelope at a place in the binlog; `source` overrides its members."""
    return {
        "before": before,
        "after": after,
        "source": {
            "version": "3.5.0.Final", "connector": "mariadb", "name": "test",
            "ts_ms": 1795247776000, "snapshot": "false", "db": "shop", "sequence": None,
            "ts_us": 1795247776000000, "ts_ns": 1795247776000000000, "table": "items",
            "server_id": 1, "gtid": "0-1-7", "file": "binlog.000003", "pos": pos, "row": 0,
            "thread": None, "query": None, **source,
        },
        "transaction": None,
        "op": op,
        "ts_ms": 1795247776558,
    }  # fmt: skip


def _struct(name: str, fields: Sequence[Json], **more: object) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": True, "name": name, **more}


def envelope_schema(fields: Sequence[Json] = _FIELDS) -> dict[str, Any]:
    """The schema of values whose row images have these fields."""
    optional = [
        {"type": kind, "optional": True, "field": name}
        for name, kind in {"op": "string", "ts_ms": "int64"}.items()
    ]
    source = [{"type": kind, "optional": True, "field": name} for name, kind in _SOURCE.items()]
    transaction = [{"type": "string", "optional": False, "field": "id"}]
    return _struct(
        "test.Envelope",
        [
            _struct("test.Value", fields, field="before"),
            _struct("test.Value", fields, field="after"),
            _struct("io.debezium.connector.mariadb.Source", source, field="source"),
            _struct("event.block", transaction, field="transaction"),
            *optional,
        ],
    )


def with_schema(value: Json, schema: Json | None) -> dict[str, Any]:
    """A value or key as the JSON converter writes it with schemas on."""
    return {"schema": schema, "payload": value}


def key_schema(fields: Sequence[Json] = _FIELDS[:1]) -> dict[str, Any]:
    """The schema of keys of these fields."""
    return _struct("test.Key", fields)


class Flavour:
    """Events with or without schemas; both decode to the same."""

    def __init__(self, *, schemas: bool) -> None:
        self.schemas = schemas
        declared = None if schemas else declare(DECLARED)
        self.context = DecodeContext(TABLE, declared)

    def value(self, content: Json) -> bytes:
        """Write an envelope."""
        return compact(with_schema(content, envelope_schema()) if self.schemas else content)

    def key(self, content: Json) -> bytes:
        """Write a key."""
        return compact(with_schema(content, key_schema()) if self.schemas else content)

    def record(self, content: Json, row: int) -> Record:
        """A record of the key `row`."""
        return self.key({"id": row}), self.value(content)

    def created(self, row: int, **changed: object) -> Record:
        """A record that creates a row."""
        return self.record(payload("c", None, image(row, **changed), pos=100 + row), row)

    def decode(self, records: Iterable[Record]) -> Decoded:
        """Decode records, and check the law that none is lost."""
        return decode_all(records, self.context)


def batch(records: Iterable[Record]) -> pa.RecordBatch:
    """Records as a topic partition gives them."""
    pairs = list(records)
    return pa.record_batch(
        {
            "offset": pa.array(range(len(pairs)), pa.int64()),
            "timestamp": pa.array([0] * len(pairs), pa.int64()),
            "key": pa.array([key for key, _ in pairs], pa.binary()),
            "value": pa.array([value for _, value in pairs], pa.binary()),
        }
    )


def decode_all(records: Iterable[Record], context: DecodeContext) -> Decoded:
    """Decode records; every one must be a change, a dead letter, ignored, or behind a stop."""
    given = batch(records)
    decoded = decode(given, context)
    end = min((stop.row for stop in decoded.stops), default=len(given))
    rows = [row for block in decoded.blocks for row in np.unique(block.rows).tolist()]
    settled = sorted([*rows, *decoded.dead.rows.tolist()])
    assert len(set(settled)) == len(settled), "a record was settled twice"
    assert all(row < end for row in settled), "a record behind the stop was settled"
    assert len(settled) + sum(decoded.ignored.values()) == end, "a record was lost"
    for block in decoded.blocks:
        assert block.rows.tolist() == sorted(block.rows.tolist())
    return decoded


def images(decoded: Decoded) -> dict[int, tuple[Json | None, Json | None]]:
    """Per record the row before and the row after."""
    found = {}
    for block in decoded.blocks:
        before, after = block.before.to_pylist(), block.after.to_pylist()
        for at, row in enumerate(block.rows.tolist()):
            found[row] = (
                before[at] if block.before_present[at] else None,
                after[at] if block.after_present[at] else None,
            )
    return found


def rows_after(decoded: Decoded) -> list[Json]:
    """The rows after their changes, in the order of the records; deletes have none."""
    return [after for _, (_, after) in sorted(images(decoded).items()) if after is not None]


def type_name(block: ImageBlock, at: int) -> str | None:
    """The type of a block's column, by its name in the Delta log; None if nothing tells it."""
    kind = block.schema.fields[at].type
    return None if kind is None else kind.name


def dead(decoded: Decoded) -> dict[int, str]:
    """Per dead letter its reason."""
    return dict(zip(decoded.dead.rows.tolist(), decoded.dead.reason, strict=True))


def captured(path: Path) -> dict[tuple[str, int], list[Record]]:
    """The records of a capture by topic and partition."""
    found: dict[tuple[str, int], list[Record]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        at = (record["topic"], record["partition"])
        found.setdefault(at, []).append((_raw(record["key"]), _raw(record["value"])))
    return found


def _raw(content: str | Mapping[str, str] | None) -> bytes | None:
    if isinstance(content, Mapping):
        return base64.b64decode(content["base64"])
    return None if content is None else content.encode()
