"""Deltas of earlier versions are plain Avro: the official library reads those that tests use."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import avro.datafile
import avro.io
import pyarrow as pa

from lakesplice.model.change import Op, delta_schema
from lakesplice.testing.older_deltas import encode_avro_delta
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row

EXPECTED_TYPES = {
    "c_long_0": "long",
    "c_boolean_1": "boolean",
    "c_byte_2": "int",
    "c_short_3": "int",
    "c_integer_4": "int",
    "c_float_5": "float",
    "c_double_6": "double",
    "c_decimal_7": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
    "c_decimal_8": {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 3},
    "c_decimal_9": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
    "c_string_10": "string",
    "c_binary_11": "bytes",
    "c_date_12": {"type": "int", "logicalType": "date"},
    "c_timestamp_13": {"type": "long", "logicalType": "timestamp-micros"},
    "_op": "int",
    "_position_file": "long",
    "_changed": "bytes",
    "_source_ts": {"type": "long", "logicalType": "timestamp-micros"},
}


def _group(change: dict[str, Any]) -> int:
    group: int = change["_group"]
    return group


def change(at: int, values: tuple[object, ...] | None) -> dict[str, object]:
    return row(at, values) | {
        "_group": 9 - at,
        "_row": at,
        "_op": int(Op.UPDATE),
        "_position_file": 1 << 40,
        "_position_offset": at,
        "_before_digest": None,
        "_row_digest": -(2**63),
        "_changed": b"\x03\x00",
        "_source_ts": dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=dt.UTC),
    }


CHANGES = [change(1, LOW), change(2, HIGH), change(3, None)]


def written() -> bytes:
    table = pa.Table.from_pylist(CHANGES, schema=delta_schema(EVERY_TYPE))
    return encode_avro_delta(table, EVERY_TYPE)


def test_the_official_library_reads_every_value() -> None:
    with avro.datafile.DataFileReader(io.BytesIO(written()), avro.io.DatumReader()) as reader:
        assert list(reader) == sorted(CHANGES, key=_group)


def test_every_field_is_a_union_of_null_and_its_own_type() -> None:
    with avro.datafile.DataFileReader(io.BytesIO(written()), avro.io.DatumReader()) as reader:
        schema = json.loads(reader.schema)
        assert reader.get_meta("lakesplice.schema_version") == b"1"
    assert schema["name"] == "lakesplice_change"
    fields = {field["name"]: field["type"] for field in schema["fields"]}
    assert list(fields) == delta_schema(EVERY_TYPE).names
    for name, expected in EXPECTED_TYPES.items():
        assert fields[name] == ["null", expected], name
