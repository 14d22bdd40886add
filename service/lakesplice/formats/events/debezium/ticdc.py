"""Reads TiCDC's events in Debezium's protocol, which have the payload first and the schema after
it. Source: TiCDC's documentation and encoder.

Its schemas aren't used: they declare bytes as a string, although the value is Base64, and a decimal
as a double. So the columns must be declared. TiCDC converts a decimal to a double, which keeps 15
digits; a decimal with more digits is refused. The position is the transaction's commit timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.blocks.positions import (
    other_table,
    source_time,
    tidb_position,
)
from lakesplice.formats.events.debezium.block import BY_COMMIT, build_block
from lakesplice.formats.events.debezium.envelope import (
    TICDC_CONNECTOR,
    key_shape,
    shape_without_schema,
)
from lakesplice.formats.events.debezium.keys import KeyShape, in_image, inspect_key
from lakesplice.formats.events.debezium.schemaless import TableShapes
from lakesplice.formats.events.debezium.verdicts import unknown_op
from lakesplice.formats.events.event_format import EventFormat, FormatCapabilities, Group
from lakesplice.formats.events.json_reading.payload_shape import EventShape
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import (
    Halt,
    Ignored,
    PayloadFirst,
    Template,
    Truncated,
    Verdict,
    split_payload,
)
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.decode_context import DecodeContext
from lakesplice.formats.events.values.encoding import Encoding
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode
from lakesplice.model.types import Primitive

_DOUBLE_DIGITS = 15
_UNSIGNED = ("bigintunsigned",)
_TRUNCATE = re.compile(r"\s*truncate\b", re.IGNORECASE)


class TicdcReader:
    """Reads TiCDC's envelopes; keeps their columns."""

    def __init__(self, context: DecodeContext) -> None:
        self._context = context
        self._refused: Halt | None = None
        try:
            declared = {n: _as_sent(n, type_) for n, type_ in (context.declared or {}).items()}
        except UnsupportedError as error:
            self._refused, declared = Halt(ParkCode.UNSUPPORTED, str(error)), {}
        self._shapes = TableShapes(declared)

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record with every check."""
        halves = _split(value)
        if halves is None:
            return Flaw(DeadReason.NOT_AN_ENVELOPE, f"{shown(value)} isn't a payload in an object")
        payload = halves.payload(value)
        if isinstance(payload, Flaw):
            return payload
        if not isinstance(payload, Mapping) or not isinstance(payload.get("source"), Mapping):
            return Flaw(DeadReason.NOT_AN_ENVELOPE, f"the payload is {shown(payload)}")
        if verdict := self._verdict(payload, payload["source"]):
            return verdict
        if self._refused:
            return self._refused
        # With output-old-value=false an update lacks the row before. An update of the key is sent
        # as a delete and an insert.
        needed = ("after",) if payload["op"] == "u" else ("before", "after")
        shape = shape_without_schema(payload, self._context, self._shapes, needed)
        if not isinstance(shape, EventShape):
            return shape
        if flaw := shape.check(payload, "payload"):
            return flaw
        self._shapes.latest = shape.names
        return Template(halves.prefix, b"}", shape, exact=False, suffix=halves.suffix)

    def _verdict(
        self, payload: Mapping[str, object], source: Mapping[str, object]
    ) -> Verdict | None:
        """Return the verdict on an event that changes no row of the table."""
        op = payload.get("op")
        if op == "m":
            return Ignored("watermark")
        wrong = other_table(source.get("db"), source.get("table"), self._context.table)
        if "ddl" in payload:
            stated = isinstance(payload["ddl"], str) and _TRUNCATE.match(payload["ddl"])
            if wrong or not stated:
                return Ignored("schema-change")
            place = tidb_position(source.get("commit_ts"))
            if place is None:
                return Flaw(DeadReason.MISSING_POSITION, "no commit_ts")
            return Truncated(place, moment=source_time((source.get("ts_ms"), 1000)))
        if wrong:
            return Flaw(wrong.reason, f"{wrong.detail}; give each table a topic at the source")
        return None if op in ("c", "u", "d", "r") else unknown_op(op)

    def inspect_key(self, key: bytes | None, template: Template) -> KeyShape | Flaw | None:
        """Read one record's key, all of whose columns the row must have."""
        if key is None:
            return None
        halves = _split(key)
        if halves is None:
            shape = inspect_key(key)
        else:
            prefix, suffix = halves.prefix, halves.suffix
            shape = inspect_key(key[len(prefix) : len(key) - len(suffix)])
            if isinstance(shape, KeyShape):
                shape = replace(shape, prefix=prefix, suffix=suffix)
        return in_image(shape, template.shape.names) if isinstance(shape, KeyShape) else shape

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        build_block(group, key_shape(group.key), self._context, ledger, BY_COMMIT)


def _split(value: bytes) -> PayloadFirst | None:
    """Return the text around the payload; None if the value has another form."""
    try:
        return split_payload(value.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _as_sent(name: str, declared: DeclaredType) -> DeclaredType:
    """Return how TiCDC writes a declared column: like Debezium, but decimals as numbers."""
    if declared.type.kind is not Primitive.DECIMAL:
        return declared
    if declared.type.precision > _DOUBLE_DIGITS and declared.written not in _UNSIGNED:
        raise UnsupportedError(
            "TiCDC's Debezium protocol sends decimals through a double, which keeps 15 digits; use"
            " its canal-json protocol for this table",
            column=name, type=declared.name,
        )  # fmt: skip
    return replace(declared, encoding=Encoding.DECIMAL_NUMBER)


def _recognises(payload: Mapping[str, object]) -> bool:
    # Without a schema after it, the payload is a member of the record.
    inner = payload.get("payload", payload)
    source = inner.get("source") if isinstance(inner, Mapping) else None
    return isinstance(source, Mapping) and source.get("connector") == TICDC_CONNECTOR


TICDC_DEBEZIUM = EventFormat(
    FormatName.TICDC_DEBEZIUM,
    FormatCapabilities(
        position="`source.commit_ts`",
        before="`before`",
        changed="`before` against `after`",
        key="the record's key",
        types="`columns`: its schemas aren't exact",
        lacking="none: TiDB sends all",
    ),
    _recognises,
    TicdcReader,
)
