"""What the first undecided record says about those like it: prefix and shape, or a verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.formats.debezium.connect import EventShape, NoShape, shape_of_schema
from lakesplice.formats.debezium.schemaless import Shapes, Undeclared
from lakesplice.formats.debezium.source import other_table
from lakesplice.formats.debezium.strict import Flaw, read_json, shown
from lakesplice.formats.debezium.values import DeadReason, DecodeContext
from lakesplice.model.manifest import ParkCode

TOMBSTONE, MESSAGE = "tombstone", "message"
_OPENING = re.compile(r'\{\s*"schema"\s*:\s*')
_BETWEEN = re.compile(r'\s*,\s*"payload"\s*:\s*')
_NO_SCHEMA = "null"
_WRAPPED = "p"


@dataclass(frozen=True)
class Template:
    """How to read the records like the first one.

    Their values start with the bytes `prefix`; the rest, completed by `closing`, is the payload and
    a brace. `exact`: a record with the prefix that hasn't the shape is damaged, since its own
    schema, being the prefix, says it has; without a schema it is just another kind of record.
    """

    prefix: bytes
    closing: bytes
    shape: EventShape
    exact: bool


@dataclass(frozen=True, slots=True)
class Ignored:
    """The record is no change."""

    kind: str


@dataclass(frozen=True, slots=True)
class Halt:
    """The record says that its table can't go on."""

    code: ParkCode
    detail: str


@dataclass(frozen=True, slots=True)
class _Opened:
    prefix: bytes
    schema: str | None
    payload: object

    @property
    def closing(self) -> bytes:
        return b"" if self.prefix else b"}"


Verdict = Flaw | Ignored | Halt


def split_schema(text: str) -> tuple[str, str] | None:
    """Split `{"schema":S,"payload":…}` into everything before the payload, and S; None if it is not
    so.
    """
    if not (opening := _OPENING.match(text)):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, opening.end())
    except (ValueError, RecursionError):
        return None
    between = _BETWEEN.match(text, end)
    return (text[: between.end()], text[opening.end() : end]) if between else None


def read_payload(rest: bytes, closing: bytes) -> object | Flaw:
    """Read what follows a prefix: exactly one JSON value and the brace that ends the record."""
    lead = b'{"%s":' % _WRAPPED.encode()
    wrapped = read_json(lead + rest + closing, lead=len(lead))
    if isinstance(wrapped, Flaw):
        return wrapped
    if not isinstance(wrapped, dict) or len(wrapped) != 1:
        return Flaw(DeadReason.NOT_JSON, "more than one value in the record")
    payload: object = wrapped[_WRAPPED]
    return payload


def _open(value: bytes) -> _Opened | Flaw:
    try:
        split = split_schema(value.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Flaw(DeadReason.NOT_JSON, f"not UTF-8: {error.reason} at byte {error.start}")
    if not split:
        payload = read_json(value)
        return payload if isinstance(payload, Flaw) else _Opened(b"", None, payload)
    prefix = split[0].encode()
    payload = read_payload(value[len(prefix) :], b"")
    return payload if isinstance(payload, Flaw) else _Opened(prefix, split[1], payload)


def inspect(value: bytes, context: DecodeContext, shapes: Shapes) -> Template | Verdict:
    """Read one record by the book; `shapes` are those of the table's events without schemas."""
    opened = _open(value)
    if isinstance(opened, Flaw):
        return opened
    payload = opened.payload
    if payload is None:
        return Ignored(TOMBSTONE)
    if not isinstance(payload, Mapping):
        return Flaw(
            DeadReason.NOT_AN_ENVELOPE, f"the value is {shown(payload)}, not a change event"
        )
    source, op = payload.get("source"), payload.get("op")
    if not isinstance(source, Mapping) or op is None:
        return _no_envelope(payload)
    if op == "m":
        return Ignored(MESSAGE)
    if wrong := other_table(source.get("db"), source.get("table"), context.table):
        return wrong
    if op == "t":
        return truncated()
    if op not in ("c", "u", "d", "r"):
        return unknown_op(op)
    shape = (
        _shape_without_schema(payload, context, shapes)
        if opened.schema in (None, _NO_SCHEMA)
        else _shape_with_schema(opened.schema)
    )
    if not isinstance(shape, EventShape):
        return shape
    if flaw := shape.check(payload, "payload"):
        return flaw
    exact = opened.schema not in (None, _NO_SCHEMA)
    return Template(opened.prefix, opened.closing, shape, exact)


def unknown_op(op: object) -> Flaw:
    """The verdict on an operation that no version of the connector is known to send."""
    return Flaw(DeadReason.UNKNOWN_OP, f"operation {shown(op)}; known are c, u, d, r, t and m")


def truncated() -> Halt:
    """The verdict on a truncated table."""
    return Halt(
        ParkCode.TRUNCATED,
        "the source table was truncated; reset the table, or set skipped.operations=t at the"
        " connector to keep rows that a TRUNCATE removes",
    )


def _shape_with_schema(schema: str | None) -> EventShape | Verdict:
    shape = shape_of_schema(schema or _NO_SCHEMA)
    if isinstance(shape, EventShape):
        return shape
    assert isinstance(shape, NoShape)
    if shape.unsupported:
        return Halt(ParkCode.UNSUPPORTED, shape.detail)
    return Flaw(DeadReason.NOT_AN_ENVELOPE, shape.detail)


def _shape_without_schema(
    payload: Mapping[str, object], context: DecodeContext, shapes: Shapes
) -> EventShape | Verdict:
    for name in ("before", "after"):
        if name not in payload:
            return Flaw(DeadReason.NOT_AN_ENVELOPE, f"a change event without {name!r}")
    images = [payload[name] for name in ("after", "before") if payload[name] is not None]
    names = shapes.columns
    if images:
        if not isinstance(images[0], Mapping):
            return Flaw(DeadReason.WRONG_TYPE, f"a row image is {shown(images[0])}, not an object")
        names = tuple(map(str, images[0]))
    if names is None:
        return Flaw(DeadReason.MISSING_IMAGE, "neither a row before nor a row after")
    shape = shapes.of_event(payload, names)
    return _undeclared(shape, context) if isinstance(shape, Undeclared) else shape


def _undeclared(undeclared: Undeclared, context: DecodeContext) -> Halt:
    names = ", ".join(undeclared.names)
    columns = ", ".join(f"{json.dumps(name)}: TYPE" for name in undeclared.names)
    return Halt(
        ParkCode.TYPES_UNDECLARED,
        f"events without schemas, and no types declared for {names}; add to the configuration"
        f' tables: [{{match: "{context.table}", columns: {{{columns}}}}}], or switch on'
        " value.converter.schemas.enable at the connector",
    )


def _no_envelope(payload: Mapping[str, object]) -> Flaw:
    if "ddl" in payload or "tableChanges" in payload:
        return Flaw(
            DeadReason.WRONG_TABLE, "a schema change event; it belongs to the connector's topic"
        )
    if "data_collections" in payload:
        return Flaw(
            DeadReason.WRONG_TABLE, "a transaction marker; it belongs to a topic of its own"
        )
    if payload.keys() == {"ts_ms"}:
        return Flaw(DeadReason.WRONG_TABLE, "a heartbeat; it belongs to a topic of its own")
    names = ", ".join(list(payload)[:8])
    return Flaw(
        DeadReason.NOT_AN_ENVELOPE,
        f"an object with {shown(names)}, not before, after, source and op; if the connector"
        " flattens its events, remove the ExtractNewRecordState transform for this topic",
    )
