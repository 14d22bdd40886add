"""Avro schemas that Kafka Connect's converter registered, as columns of row images.

The converter stores Connect's own types in attributes (`connect.name`, `connect.parameters`,
`connect.type`); from these a column gets the type that it has in JSON with schemas. Without these
attributes Avro's logical types count.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import cast

import numpy as np
import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.avro import (
    Node,
    Record,
    Scalar,
    Union,
    WantedMembers,
    arrow_type,
    parse_schema,
    read_values,
)
from lakesplice.formats.events.debezium.block import COMMIT
from lakesplice.formats.events.debezium.connect import UnsupportedSchema, cell_of, with_fill
from lakesplice.formats.events.debezium.flattened import is_added
from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.template import ReadTexts, Template
from lakesplice.formats.events.values.decode_context import SchemaText
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName

_CONNECT = {
    "int": "int32",
    "long": "int64",
    "fixed": "bytes",
    "enum": "string",
}
_LOGICAL = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
}
_BINARY = {
    Encoding.BASE64: Encoding.PLAIN,
    Encoding.DECIMAL_BASE64: Encoding.DECIMAL_BYTES,
    Encoding.WIDE_DECIMAL_BASE64: Encoding.WIDE_DECIMAL_BYTES,
    Encoding.GEOMETRY: Encoding.GEOMETRY_BYTES,
}
_OF_SOURCE = (
    "db", "table", "file", "pos", "row", "ts_ms", "ts_us", "gtid", "snapshot", COMMIT,
)  # fmt: skip
_OF_ENVELOPE: WantedMembers = {
    "before": None,
    "after": None,
    "source": dict.fromkeys(_OF_SOURCE),
    "op": None,
}
_DELETED, _OP = "__deleted", "__op"
_NO_SCHEMA_ERRORS = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


@dataclass(frozen=True)
class AvroShape:
    """What the values of one schema contain, and how they are read."""

    event: EventShape
    node: Record
    wanted: WantedMembers | None

    def template(self, prefix: bytes) -> Template:
        """Return how to read the records with this head."""
        return Template(prefix, b"", self.event, exact=True, binary=partial(_read, self))


def _read(shape: AvroShape, texts: pa.Array, places: Integers) -> ReadTexts:
    whole = len(places) == len(texts)
    read = read_values(texts if whole else texts.take(pa.array(places)), shape.node, shape.wanted)
    if not read.flaws:
        return ReadTexts(places, read.values)
    sound = np.ones(len(places), np.bool_)
    sound[list(read.flaws)] = False
    flaws = {int(places[row]): flaw for row, flaw in read.flaws.items()}
    return ReadTexts(places[sound], read.values.filter(pa.array(sound)), flaws)


@lru_cache(maxsize=1024)
def format_of(schema: SchemaText) -> FormatName | None:
    """Return the format whose events have this schema; None if there is no such format."""
    try:
        node = parse_schema(schema.text, schema.references)
    except (UnsupportedError, *_NO_SCHEMA_ERRORS):
        return None
    names = {member.name for member in node.fields} if isinstance(node, Record) else set()
    if {"before", "after", "source", "op"} <= names:
        return FormatName.AVRO
    return FormatName.FLATTENED_AVRO if _DELETED in names or _OP in names else None


@lru_cache(maxsize=1024)
def shape_of_envelope(schema: SchemaText) -> AvroShape | UnsupportedSchema:
    """Read the schema of whole events."""
    try:
        node = _record(parse_schema(schema.text, schema.references))
        members = {member.name: member.node for member in node.fields}
        if not _OF_ENVELOPE.keys() <= members.keys():
            return UnsupportedSchema("its schema has no before, after, source and op")
        images = [_record(members[name]) for name in ("after", "before")]
        after, before = ([_cell(m.name, m.node) for m in image.fields] for image in images)
        if after != before:
            return UnsupportedSchema("before and after have different schemas", unsupported=True)
        return _shape(tuple(after), node, _OF_ENVELOPE)
    except UnsupportedError as error:
        return UnsupportedSchema(str(error), unsupported=True)
    except _NO_SCHEMA_ERRORS as error:
        return UnsupportedSchema(f"its schema isn't a schema of Connect's in Avro: {error!r}")


@lru_cache(maxsize=1024)
def shape_of_row(schema: SchemaText) -> AvroShape | UnsupportedSchema:
    """Read the schema of flattened events."""
    try:
        node = _record(parse_schema(schema.text, schema.references))
        cells = tuple(_cell(m.name, m.node) for m in node.fields if not is_added(m.name))
        return _shape(cells, node, None)
    except UnsupportedError as error:
        return UnsupportedSchema(str(error), unsupported=True)
    except _NO_SCHEMA_ERRORS as error:
        return UnsupportedSchema(f"its schema isn't a schema of Connect's in Avro: {error!r}")


def _shape(cells: tuple[Cell, ...], node: Record, wanted: WantedMembers | None) -> AvroShape:
    payload = cast("pa.StructType", arrow_type(node, wanted))
    return AvroShape(EventShape(cells, payload), node, wanted)


def _record(node: Node) -> Record:
    found = _besides_null(node)
    if not isinstance(found, Record):
        raise TypeError("a record was expected")
    return found


def _besides_null(node: Node) -> Node:
    if not isinstance(node, Union):
        return node
    others = [at for at in node.branches if not (isinstance(at, Scalar) and at.kind == "null")]
    if len(others) != 1:
        raise UnsupportedError("an Avro union of several types besides null is not read")
    return others[0]


def _cell(name: str, node: Node) -> Cell:
    field = _connect(_besides_null(node))
    said = {**field, "default": _default(node), "optional": isinstance(node, Union)}
    cell = with_fill(cell_of(name, field), said)
    return replace(cell, encoding=_BINARY.get(cell.encoding, cell.encoding))


def _default(node: Node) -> object:
    """Return a column's default as in Connect's JSON: bytes in base64, not as characters."""
    found = _besides_null(node)
    default = found.attributes.get("connect.default") if isinstance(found, Scalar) else None
    if isinstance(default, str) and isinstance(found, Scalar) and found.kind in ("bytes", "fixed"):
        return b64encode(default.encode("latin-1", "replace")).decode()
    return default


def _connect(node: Node) -> Mapping[str, object]:
    """Return a type as in Connect's JSON."""
    if isinstance(node, Record):
        fields = [{"field": m.name, **_connect(_besides_null(m.node))} for m in node.fields]
        return {"type": "struct", "name": node.attributes.get("connect.name"), "fields": fields}
    assert isinstance(node, Scalar)
    attributes, logical = node.attributes, str(node.attributes.get("logicalType"))
    parameters = attributes.get("connect.parameters")
    if parameters is None and logical == "decimal":
        parameters = {
            "scale": attributes.get("scale", 0),
            "connect.decimal.precision": attributes["precision"],
        }
    return {
        "type": attributes.get("connect.type", _CONNECT.get(node.kind, node.kind)),
        "name": attributes.get("connect.name", _LOGICAL.get(logical)),
        "parameters": parameters,
    }
