"""Computes what a table must hold from its change events, one by one, in plain Python.

It is slow and simple on purpose, and shares no code with the decoder, the fold or the overlay, so
that a test compares two independent results.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.testing.shop.columns import unscaled_to_arrow

Key = tuple[Any, ...]
JsonRow = dict[str, Any]
Order = tuple[int, int, int, int]

_MICROSECONDS = {"io.debezium.time.Timestamp": 1000, "io.debezium.time.MicroTimestamp": 1}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}


class Record(NamedTuple):
    """One Kafka record as it was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


@dataclass
class TableState:
    """One topic's rows: for each key the highest position so far and its image (None if deleted).

    `fields` are the columns in the order of their first occurrence, as Connect describes them.
    """

    fields: dict[str, JsonRow] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    rows: dict[Key, tuple[Order, JsonRow | None]] = field(default_factory=dict)

    @property
    def live(self) -> list[JsonRow]:
        """The rows that exist, in the order in which their keys first occurred."""
        return [row for _, row in self.rows.values() if row is not None]

    def table(self) -> pa.Table:
        """The live rows in the lake's types; a column that was added later has its default in older
        rows.
        """
        rows = self.live
        arrays = {
            name: to_arrow(described, [row.get(name, described.get("default")) for row in rows])
            for name, described in self.fields.items()
        }
        return pa.table(arrays)


def replay(
    records: Iterable[Record],
    *,
    until: Mapping[tuple[str, int], int] | None = None,
    fields: Mapping[str, Sequence[JsonRow]] | None = None,
) -> dict[str, TableState]:
    """Apply events in any order, with any repetitions, and return the state of each topic.

    `until` has for each (topic, partition) the first offset that isn't applied; partitions that it
    lacks are left out. `fields` describes the columns of topics whose events have no schema.
    Tombstones and records without a key are skipped.
    """
    states: dict[str, TableState] = {}
    for record in records:
        if until is not None and record.offset >= until.get((record.topic, record.partition), 0):
            continue
        if record.value is None or record.key is None:
            continue
        state = states.setdefault(record.topic, TableState())
        _apply(state, record, (fields or {}).get(record.topic))
    return states


def _apply(state: TableState, record: Record, fields: Sequence[JsonRow] | None) -> None:
    assert record.key is not None  # replay skips the others
    assert record.value is not None
    value, key = json.loads(record.value), json.loads(record.key)
    if "payload" in value and "schema" in value:
        fields, value = _row_fields(value["schema"]), value["payload"]
        key = key["payload"]
    if fields is None:
        raise UsageError("events without schemas need `fields`", topic=record.topic)
    for described in fields:
        state.fields.setdefault(described["field"], described)
    state.key = tuple(key)
    identity = tuple(key.values())
    order = position(value["source"], value["op"])
    known = state.rows.get(identity)
    if known is None or order > known[0]:
        # The old row keeps its place in the dict, so that keys stay in the order of their first
        # occurrence.
        state.rows[identity] = (order, value["after"])


def _row_fields(schema: JsonRow) -> Sequence[JsonRow]:
    images = {
        member["field"]: member["fields"] for member in schema["fields"] if "fields" in member
    }
    fields: Sequence[JsonRow] = images["after"]
    return fields


def position(source: JsonRow, op: str) -> Order:
    """The position of a change: binlog file number, offset, row, and a delete before a create."""
    digits = re.search(r"(\d+)$", source["file"])
    if digits is None:
        raise UsageError("the binlog file has no number", file=source["file"])
    return int(digits[1]), source["pos"], source["row"], 0 if op == "d" else 1


def to_arrow(described: JsonRow, values: Sequence[Any]) -> pa.Array:
    """Convert a column's JSON values by its Connect field, in which `name` is the Debezium type."""
    semantic = described.get("name", "")
    if semantic == "org.apache.kafka.connect.data.Decimal":
        parameters = described["parameters"]
        kind = ColumnType(
            Primitive.DECIMAL,
            int(parameters["connect.decimal.precision"]),
            int(parameters["scale"]),
        )
        return unscaled_to_arrow(_each(values, _unscaled), kind)
    if semantic in _MICROSECONDS:
        factor = _MICROSECONDS[semantic]
        return _timestamps(_each(values, lambda value: value * factor))
    if semantic == "io.debezium.time.ZonedTimestamp":
        return _timestamps(_each(values, _zoned_micros))
    if semantic == "io.debezium.time.Date":
        return pa.array(values, pa.int32()).cast(pa.date32())
    if described["type"] == "bytes":
        return pa.array(_each(values, b64decode), pa.binary())
    return pa.array(values, _PLAIN[described["type"]])


def _each(values: Sequence[Any], convert: Callable[[Any], Any]) -> list[Any]:
    return [None if value is None else convert(value) for value in values]


def _unscaled(text: str) -> int:
    return int.from_bytes(b64decode(text), "big", signed=True)


def _timestamps(micros: Sequence[int | None]) -> pa.Array:
    return pa.array(micros, pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def _zoned_micros(text: str) -> int:
    since = datetime.fromisoformat(text) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
