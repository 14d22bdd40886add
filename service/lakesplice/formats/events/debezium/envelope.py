"""Reads Debezium's envelope: before, after, source and op, with or without Connect's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lakesplice.formats.events.blocks.positions import binlog_position, other_table
from lakesplice.formats.events.debezium.block import build_block
from lakesplice.formats.events.debezium.connect import UnsupportedSchema, shape_of_schema
from lakesplice.formats.events.debezium.keys import (
    ComparedKey,
    KeyShape,
    in_image,
    inspect_key,
    without_table_id,
)
from lakesplice.formats.events.debezium.numeric import key_in_numbers, read_as
from lakesplice.formats.events.debezium.schemaless import TableShapes, UndeclaredColumns
from lakesplice.formats.events.debezium.verdicts import truncated, undeclared, unknown_op
from lakesplice.formats.events.event_format import EventFormat, FormatCapabilities, Group, KeyForm
from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import (
    MESSAGE,
    Ignored,
    Opened,
    Template,
    Verdict,
    open_event,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.column_types import EVERYWHERE
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.choices import FormatName

# TiCDC's name in `source`; `ticdc.py` reads its protocol.
TICDC_CONNECTOR = "TiCDC"
_HEARTBEAT, _TRANSACTION = "heartbeat", "transaction"


class EnvelopeReader:
    """Reads envelopes; keeps the columns of those without schemas."""

    def __init__(self, context: DecodeContext) -> None:
        self._context = context
        self._shapes = TableShapes(context.declared or {}, context.history)

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check."""
        template = inspect(value, self._context, self._shapes)
        if isinstance(template, Template) and not template.exact:
            self._shapes.latest = template.shape.names
        return template

    def inspect_key(self, key: bytes | None, template: Template) -> KeyShape | Flaw | None:
        """Read one record's key, all of whose columns the row must have."""
        shape = None if key is None else inspect_key(key)
        if key is not None and isinstance(shape, KeyShape):
            shape = without_table_id(shape, key, template.shape.names)
        if not isinstance(shape, KeyShape):
            return shape
        return key_in_numbers(template, shape.names) or in_image(shape, template.shape.names)

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        build_block(group, key_shape(group.key), self._context, ledger)


def key_shape(key: KeyForm | None) -> ComparedKey | None:
    """Return the shape of a group's keys as one of this package's types."""
    return cast("ComparedKey | None", key)


def _recognises(payload: Mapping[str, object]) -> bool:
    source = payload.get("source")
    if not isinstance(source, Mapping) or not isinstance(payload.get("op"), str):
        return False
    return source.get("connector") != TICDC_CONNECTOR


def inspect(value: bytes, context: DecodeContext, shapes: TableShapes) -> Template | Verdict:
    """Read one record with every check; `shapes` are those of the table's events without
    schemas.
    """
    opened = open_event(value)
    if not isinstance(opened, Opened):
        return opened
    payload = opened.payload
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
        return truncated(source)
    if op not in ("c", "u", "d", "r"):
        return unknown_op(op)
    span = EVERYWHERE
    if opened.schema is None:
        span = shapes.go_to(binlog_position(source.get("file"), source.get("pos"), 0))
        shape = shape_without_schema(payload, context, shapes)
    else:
        shape = _shape_with_schema(opened.schema)
    if not isinstance(shape, EventShape):
        return shape
    return read_as(opened, shape, span)


def _shape_with_schema(schema: str) -> EventShape | Verdict:
    shape = shape_of_schema(schema)
    return shape.verdict if isinstance(shape, UnsupportedSchema) else shape


def shape_without_schema(
    payload: Mapping[str, object],
    context: DecodeContext,
    shapes: TableShapes,
    needed: tuple[str, ...] = ("before", "after"),
) -> EventShape | Verdict:
    """Return the shape of an event that doesn't contain its columns' types."""
    for name in needed:
        if name not in payload:
            return Flaw(DeadReason.NOT_AN_ENVELOPE, f"a change event without {name!r}")
    images = [payload[name] for name in ("after", "before") if payload.get(name) is not None]
    names = shapes.columns
    if images:
        if not isinstance(images[0], Mapping):
            return Flaw(DeadReason.WRONG_TYPE, f"a row image is {shown(images[0])}, not an object")
        names = tuple(map(str, images[0]))
    if names is None:
        return Flaw(
            DeadReason.MISSING_IMAGE, "the event has neither the row before nor the row after"
        )
    shape = shapes.of_event(payload, names)
    return undeclared(shape, context) if isinstance(shape, UndeclaredColumns) else shape


def _no_envelope(payload: Mapping[str, object]) -> Flaw | Ignored:
    if payload.keys() == {"ts_ms"}:
        return Ignored(_HEARTBEAT)
    if "data_collections" in payload and payload.get("status") in ("BEGIN", "END"):
        return Ignored(_TRANSACTION)
    if "ddl" in payload or "tableChanges" in payload:
        return Flaw(
            DeadReason.WRONG_TABLE,
            "the record is a schema change event, which belongs in the connector's own topic",
        )
    if {"old", "data", "pkNames"} <= payload.keys():
        return Flaw(
            DeadReason.NOT_AN_ENVELOPE,
            "Canal's message without isDdl, es and mysqlType, as Flink CDC's sink writes it; let it"
            " write debezium-json",
        )
    names = ", ".join(list(payload)[:8])
    return Flaw(
        DeadReason.NOT_AN_ENVELOPE,
        f"an object with {shown(names)}, not before, after, source and op; if the connector"
        " flattens its events, let its ExtractNewRecordState transform rewrite deletes and add op,"
        " source.file, source.pos and source.row",
    )


# Debezium's default of unavailable.value.placeholder.
PLACEHOLDER = b"__debezium_unavailable_value"

DEBEZIUM = EventFormat(
    FormatName.DEBEZIUM,
    FormatCapabilities(
        position="`source.file`, `pos` and `row`; without a file the order of records",
        before="`before`",
        changed="`before` against `after`",
        key="the record's key",
        types="the schema in the record; without schemas the schema-change topic, `columns`",
        lacking="Debezium's placeholder for BLOB and TEXT; for others null, which shows nothing",
    ),
    _recognises,
    EnvelopeReader,
    PLACEHOLDER,
)
