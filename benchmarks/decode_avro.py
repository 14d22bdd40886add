"""Decoding of Debezium's events in Avro beside the floor: Polars' Avro reader on the same bytes.

Run: python -m benchmarks.decode_avro [--rows N] [--repeats N]. The events of `benchmarks/decode.py`
in 0.5 kB. The floor reads the sound values as a file's blocks of 4,096, both images and the whole
envelope, into Avro's own types. Half of the malformed ones are cut off, half are of another
schema's number.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl
import pyarrow as pa

from benchmarks.decode import MALFORMED_SHARES, SEED, TYPES, _event, rates
from lakesplice.formats.events import DecodeContext, SchemaText, decode
from lakesplice.formats.events.avro import Record, parse_schema
from lakesplice.model.names import TableName
from lakesplice.testing.avro_records import frame, write_long, write_value

KEY_ID, VALUE_ID, NO_ID = 1, 2, 77
BLOCK_ROWS = 4096
_DECIMAL = {
    "type": "bytes", "scale": 2, "precision": 12,
    "connect.parameters": {"scale": "2", "connect.decimal.precision": "12"},
    "connect.name": "org.apache.kafka.connect.data.Decimal", "logicalType": "decimal",
}  # fmt: skip
_AVRO: dict[str, Any] = {
    "integer": "int", "long": "long", "double": "double", "string": "string",
    "decimal(12,2)": _DECIMAL,
    "date": {"type": "int", "connect.name": "io.debezium.time.Date"},
    "timestamp": {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"},
    "timestamp_micros": {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
}  # fmt: skip
_SOURCE = {
    "version": "string", "connector": "string", "name": "string", "ts_ms": "long",
    "snapshot": ["string", "null"], "db": "string", "sequence": ["null", "string"],
    "ts_us": ["null", "long"], "ts_ns": ["null", "long"], "table": ["null", "string"],
    "server_id": "long", "gtid": ["null", "string"], "file": "string", "pos": "long",
    "row": "int", "thread": ["null", "long"], "query": ["null", "string"],
}  # fmt: skip


def _record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    listed = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "namespace": "bench", "fields": listed}


def envelope(*, spelled_out: bool = False) -> str:
    """The events' schema; `spelled_out` for a reader that knows no names."""
    types = {n: _AVRO[kind] if n == "id" else ["null", _AVRO[kind]] for n, kind in TYPES.items()}
    row = _record("Value", types)
    numbers = ("total_order", "data_collection_order")
    block = _record("block", {"id": "string", **dict.fromkeys(numbers, "long")})
    return json.dumps(
        _record(
            "Envelope",
            {
                "before": ["null", row], "after": ["null", row if spelled_out else "Value"],
                "source": _record("Source", _SOURCE), "transaction": ["null", block],
                "op": "string", "ts_ms": ["null", "long"], "ts_us": ["null", "long"],
                "ts_ns": ["null", "long"],
            },
        )
    )  # fmt: skip


SCHEMAS = {
    KEY_ID: SchemaText(json.dumps(_record("Key", {"id": "long"}))),
    VALUE_ID: SchemaText(envelope()),
}


def _in_avro(image: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: base64.b64decode(value) if value and TYPES[name].startswith("decimal") else value
        for name, value in image.items()
    }


def values(rows: int) -> list[bytes]:
    """The events' values, without heads."""
    node = cast("Record", parse_schema(envelope()))
    chance = random.Random(SEED)
    events = (_event(row, chance) for row in range(rows))
    return [
        write_value(
            node, {**event, "before": _in_avro(event["before"]), "after": _in_avro(event["after"])}
        )
        for event in events
    ]


def records(sound: Sequence[bytes], share: float) -> tuple[pa.RecordBatch, int]:
    """Return a batch of events, and how many of them are malformed."""
    chance = random.Random(SEED)
    framed, bad = [], 0
    for value in sound:
        if chance.random() < share:
            framed.append(frame(VALUE_ID, value[:-9]) if bad % 2 else frame(NO_ID, value))
            bad += 1
        else:
            framed.append(frame(VALUE_ID, value))
    keys = [frame(KEY_ID, write_long(row)) for row in range(len(framed))]
    columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(framed, pa.binary())}
    return pa.record_batch({"offset": pa.array(range(len(keys)), pa.int64()), **columns}), bad


def container(sound: Sequence[bytes]) -> bytes:
    """The values as an Avro file."""
    schema, sync = envelope(spelled_out=True).encode(), b"sixteen bytes ok"
    head = [b"Obj\x01", write_long(2)]
    for name, content in ((b"avro.schema", schema), (b"avro.codec", b"null")):
        head += [write_long(len(name)), name, write_long(len(content)), content]
    blocks = [*head, write_long(0), sync]
    for start in range(0, len(sound), BLOCK_ROWS):
        block = b"".join(part := sound[start : start + BLOCK_ROWS])
        blocks += [write_long(len(part)), write_long(len(block)), block, sync]
    return b"".join(blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line per share of malformed events: the decoder's rate, and the floor's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    context = DecodeContext(TableName("shop", "sales"), schemas=SCHEMAS)
    sound = values(options.rows)
    file = container(sound)
    print(f"{options.rows} events of {len(file) // options.rows} bytes")
    for share in MALFORMED_SHARES:
        batch, bad = records(sound, share)
        decoded = decode(batch, context)
        assert sum(map(len, decoded.blocks)) == options.rows - bad, "a sound event was lost"
        works = (lambda batch=batch: decode(batch, context), lambda: pl.read_avro(io.BytesIO(file)))
        ours, least = rates(options.rows, works, options.repeats)
        print(
            f"{share:4.0%} malformed: decode {ours:9,.0f}/s, Polars {least:9,.0f}/s,"
            f" ratio {ours / least:.2f}"
        )


if __name__ == "__main__":
    main()
