"""Debezium's events in Avro, whole or flattened, with the schemas in a registry.

Values and keys start with the number of their schema (`avro/frame.py`), so all records of one
number are read as one. After that they are handled like records in JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from lakesplice.formats.events.avro import framed
from lakesplice.formats.events.debezium.avro_keys import AvroKey, inspect_avro_key
from lakesplice.formats.events.debezium.avro_schema import (
    AvroShape,
    shape_of_envelope,
    shape_of_row,
)
from lakesplice.formats.events.debezium.block import BINLOG, BY_COMMIT, COMMIT, build_block
from lakesplice.formats.events.debezium.connect import UnsupportedSchema
from lakesplice.formats.events.debezium.envelope import DEBEZIUM, PLACEHOLDER, key_shape
from lakesplice.formats.events.debezium.flattened import FLATTENED, build_rows, no_deletes
from lakesplice.formats.events.debezium.keys import in_image
from lakesplice.formats.events.debezium.suspect_settings import NULLS_IN_AVRO
from lakesplice.formats.events.event_format import EventFormat, Group
from lakesplice.formats.events.json_reading.strict import Flaw, shown
from lakesplice.formats.events.json_reading.template import Halt, Template, Verdict
from lakesplice.formats.events.json_reading.verdict_ledger import VerdictLedger
from lakesplice.formats.events.values.decode_context import DecodeContext, SchemaText
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode


class AvroReader:
    """Reads events by the schemas that their heads name."""

    def __init__(
        self,
        context: DecodeContext,
        shape_of: Callable[[SchemaText], AvroShape | UnsupportedSchema],
    ) -> None:
        self._context = context
        self._shape_of = shape_of

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record's head; its schema says how to read those like it."""
        head = framed(value)
        if head is None:
            detail = f"the value {shown(value)} doesn't begin with the number of a schema"
            return Flaw(DeadReason.NOT_AN_ENVELOPE, detail)
        if self._context.schemas is None:
            return _no_registry()
        schema = self._context.schemas.get(head.schema)
        if schema is None:
            detail = f"the registry has no schema {head.schema}, which the value names"
            return Flaw(DeadReason.UNKNOWN_SCHEMA, detail)
        shape = self._shape_of(schema)
        return (
            shape.verdict if isinstance(shape, UnsupportedSchema) else shape.template(head.prefix)
        )

    def inspect_key(self, key: bytes | None, template: Template) -> AvroKey | Flaw | None:
        """Read one record's key, all of whose columns the row must have."""
        shape = None if key is None else inspect_avro_key(key, self._context)
        return in_image(shape, template.shape.names) if isinstance(shape, AvroKey) else shape

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        key = key_shape(group.key)
        source = group.template.shape.payload.field("source").type
        position_source = BY_COMMIT if source.get_field_index(COMMIT) >= 0 else BINLOG
        build_block(group, key, self._context, ledger, position_source, NULLS_IN_AVRO)


class FlattenedAvroReader(AvroReader):
    """Reads rows by the schemas that their heads name."""

    def inspect(self, value: bytes) -> Template | Verdict:
        """Read one record's head; without `__deleted` in its schema the table can't continue."""
        template = super().inspect(value)
        if isinstance(template, Template):
            members = template.shape.payload
            if members.get_field_index("__deleted") < 0:
                return no_deletes()
        return template

    def build(self, group: Group, ledger: VerdictLedger) -> None:
        """Make a block of the records that were read."""
        build_rows(group, key_shape(group.key), self._context, ledger)


def _no_registry() -> Halt:
    return Halt(
        ParkCode.UNSUPPORTED,
        "the records are in Avro, with schemas in a registry; set schema_registry.url",
    )


def _envelopes(context: DecodeContext) -> AvroReader:
    return AvroReader(context, shape_of_envelope)


def _rows(context: DecodeContext) -> AvroReader:
    return FlattenedAvroReader(context, shape_of_row)


def _recognises(_: Mapping[str, object]) -> bool:
    """No event in Avro is JSON; `avro_schema.format_of` recognises them by their schemas."""
    return False


_TYPES = "the schema in the registry"
AVRO = EventFormat(
    FormatName.AVRO,
    replace(
        DEBEZIUM.knows,
        position="`source.file`, `pos` and `row`, or TiCDC's `source.commit_ts`; without either the"
        " order of records",
        types=_TYPES,
    ),
    _recognises,
    _envelopes,
    PLACEHOLDER,
)
FLATTENED_AVRO = EventFormat(
    FormatName.FLATTENED_AVRO,
    replace(FLATTENED.knows, types=_TYPES),
    _recognises,
    _rows,
    PLACEHOLDER,
)
