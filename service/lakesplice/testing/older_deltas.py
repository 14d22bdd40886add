"""Writes deltas in Avro, as versions before the format number 12 did: for tests of older tables."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import polars as pl
import pyarrow as pa

from lakesplice.formats.deltas.avro import SCHEMA, SCHEMA_VERSION
from lakesplice.formats.deltas.avro_container import read_head, write_head
from lakesplice.formats.deltas.avro_decimals import decimal_bytes
from lakesplice.formats.deltas.codec import in_address_order
from lakesplice.model.schema import TableSchema

RECORD_NAME = "lakesplice_change"
_SMALL = {pa.int8(): pa.int32(), pa.int16(): pa.int32()}


def encode_avro_delta(located: pa.Table, schema: TableSchema) -> bytes:
    """Return a delta in Avro; the arguments are those of `encode_delta`."""
    ordered = in_address_order(located, schema)
    columns = [_written(column) for column in ordered.columns]
    frame = pl.from_arrow(pa.table(columns, names=ordered.column_names))
    assert isinstance(frame, pl.DataFrame)
    sink = io.BytesIO()
    frame.write_avro(sink, compression="uncompressed", name=RECORD_NAME)
    data = sink.getvalue()
    metadata, sync = read_head(data, "")
    # Polars calls every timestamp without a zone local; all of ours are instants.
    named = metadata[SCHEMA].replace(b'"local-timestamp-micros"', b'"timestamp-micros"')
    metadata[SCHEMA] = _with_decimals(named, ordered.schema)
    metadata |= {"avro.codec": b"null", SCHEMA_VERSION: str(schema.version).encode()}
    return write_head(metadata) + data[sync:]


def decimal_words(column: pa.ChunkedArray) -> pa.Array:
    """Return a decimal column as binary values of `decimal_bytes` each; nulls stay null."""
    width = decimal_bytes(column.type)
    values = (None if value is None else _word(value, width) for value in column.to_pylist())
    return pa.array(values, pa.binary())


def _word(value: Decimal, width: int) -> bytes:
    sign, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    return (-unscaled if sign else unscaled).to_bytes(width, "big", signed=True)


def _written(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column in the type that Polars writes as wanted."""
    kind = column.type
    if pa.types.is_decimal(kind):
        return decimal_words(column)
    return column.cast(
        pa.timestamp("us") if pa.types.is_timestamp(kind) else _SMALL.get(kind, kind)
    )


def _with_decimals(avro_schema: bytes, layout: pa.Schema) -> bytes:
    """Declare the byte columns that are decimals in `layout` as decimals."""
    schema = json.loads(avro_schema)
    for described in schema["fields"]:
        type_ = layout.field(described["name"]).type
        if pa.types.is_decimal(type_):
            decimal = {
                "type": "bytes",
                "logicalType": "decimal",
                "precision": type_.precision,
                "scale": type_.scale,
            }
            described["type"] = ["null", decimal]
    return json.dumps(schema, separators=(",", ":")).encode()
