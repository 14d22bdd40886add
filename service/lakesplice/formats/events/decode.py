"""The list of formats, how one is chosen, and decoding with it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lakesplice.formats.events.avro import framed
from lakesplice.formats.events.blocks.configured_key import with_key
from lakesplice.formats.events.blocks.renames import name_formerly
from lakesplice.formats.events.blocks.type_mappings import map_types
from lakesplice.formats.events.blocks.unavailable_values import without_unavailable
from lakesplice.formats.events.canal import CANAL
from lakesplice.formats.events.debezium import (
    AVRO,
    DEBEZIUM,
    FLATTENED,
    FLATTENED_AVRO,
    TICDC_DEBEZIUM,
    format_of,
)
from lakesplice.formats.events.event_format import EventFormat
from lakesplice.formats.events.json_reading.strict import Flaw
from lakesplice.formats.events.json_reading.template import Halt, open_record
from lakesplice.formats.events.maxwell import MAXWELL
from lakesplice.formats.events.records_to_blocks import settle_records
from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.formats.events.values.decode_context import DecodeContext, SchemaText
from lakesplice.model.choices import FormatName
from lakesplice.model.parking import ParkCode

EVENT_FORMATS: Mapping[FormatName, EventFormat] = {
    format_.name: format_
    for format_ in (DEBEZIUM, FLATTENED, AVRO, FLATTENED_AVRO, TICDC_DEBEZIUM, MAXWELL, CANAL)
}


def decode(records: pa.RecordBatch, context: DecodeContext) -> Decoded:
    """Decode consecutive records of one topic partition, in offset order; never raises because of
    their content.

    `records` has the columns `key` and `value`, binary and nullable, and `offset`; others are
    ignored. Records without a key come in blocks of their own, with an empty `schema.key`; the
    caller decides about them. Nothing at or after the first stop is decoded.

    The format is the context's; otherwise it is the format of the first record that is an event of
    any format. If there is no such record, the records are read as Debezium's, so that each gets a
    reason.
    """
    chosen = context.format or _first_recognised(records.column("value"), context)
    format_ = EVENT_FORMATS[chosen or FormatName.DEBEZIUM]

    def stranger(value: bytes) -> Halt | None:
        other = recognise(value, context.schemas)
        if other in (None, format_.name):
            return None
        return Halt(
            ParkCode.FORMAT_CHANGED,
            f"the record is {other}, the topic's records so far are {format_.name}; give"
            f" `lakesplice reset --anew`, or state its format: tables:"
            f' [{{match: "{context.table}", format: {other}}}]',
        )

    if format_.prepare is not None:
        prepared = format_.prepare(records.column("value"), context)
        records = records.set_column(records.schema.get_field_index("value"), "value", prepared)
    ledger = settle_records(records, format_.reader(context), stranger, threads=context.threads)
    map_types(ledger, context.mappings)
    name_formerly(ledger, context.history)
    if context.history is not None:
        ledger.suspect_settings.update(context.history.cautions)
    decoded = ledger.result(chosen)
    if context.key:
        decoded = with_key(decoded, context.key)
    placeholder = format_.placeholder
    return decoded if placeholder is None else without_unavailable(decoded, placeholder)


def recognise(value: bytes, schemas: Mapping[int, SchemaText] | None = None) -> FormatName | None:
    """Return the format in which a record's value is an event; None if it isn't in any.

    `schemas` are those of a registry, as in `DecodeContext`.
    """
    if head := framed(value):
        schema = (schemas or {}).get(head.schema)
        return format_of(schema) if schema else None
    opened = open_record(value)
    if isinstance(opened, Flaw) or not isinstance(opened.payload, dict):
        return None
    found = [name for name, format_ in EVENT_FORMATS.items() if format_.recognises(opened.payload)]
    return found[0] if len(found) == 1 else None


def _first_recognised(values: pa.Array, context: DecodeContext) -> FormatName | None:
    """Inspect records until one shows the format; usually the first one does.

    Without a registry, nothing shows whether a record that looks like Avro is an event. If no other
    record is an event, the records are read as Avro, and the table is parked since it needs a
    registry.
    """
    heads = False
    for value in values:
        if not value.is_valid:
            continue
        bytes_ = value.as_py()
        if found := recognise(bytes_, context.schemas):
            return found
        heads = heads or framed(bytes_) is not None
    return FormatName.AVRO if heads and context.schemas is None else None
