"""Columns of files become a table's values exactly, or not at all."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.formats.events import declare
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.encoding import Encoding
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.file_values import (
    InexactError,
    exact_values,
    values_of_texts,
    with_stated_types,
)

_TIME = "int64 io.debezium.time.MicroTime"
_POINT = b"\1\1\0\0\0" + bytes(16)
_MOMENT = dt.datetime(2026, 11, 24, 9, 0, 0, 1, dt.UTC)
_SECOND = _MOMENT.replace(microsecond=0)


def field(type_: str, source_type: str = "") -> SourceField:
    return SourceField("c", ColumnType.parse(type_), source_type)


@pytest.mark.parametrize(
    ("type_", "stored", "value", "expected"),
    [
        ("short", pa.int64(), -32768, -32768),
        ("long", pa.decimal128(20, 0), Decimal(7), 7),
        ("long", pa.decimal128(10, 2), Decimal("-7.00"), -7),
        ("integer", pa.decimal256(50, 3), Decimal("7.000"), 7),
        ("decimal(20,0)", pa.uint64(), 2**64 - 1, Decimal(2**64 - 1)),
        ("decimal(12,2)", pa.int64(), 7, Decimal("7.00")),
        ("decimal(12,2)", pa.decimal128(9, 1), Decimal("1.5"), Decimal("1.50")),
        ("decimal(12,2)", pa.decimal256(40, 4), Decimal("1.5000"), Decimal("1.50")),
        ("float", pa.float64(), 0.5, 0.5),
        ("double", pa.float64(), 0.1, 0.1),
        ("boolean", pa.int8(), 1, True),
        ("date", pa.date64(), dt.date(1, 1, 1), dt.date(1, 1, 1)),
        ("timestamp", pa.timestamp("ns"), _MOMENT.replace(tzinfo=None), _MOMENT),
        ("timestamp", pa.timestamp("ms", "UTC"), _MOMENT.replace(microsecond=0),
         _MOMENT.replace(microsecond=0)),
        ("string", pa.dictionary(pa.int32(), pa.string()), "ü", "ü"),
        ("binary", pa.binary(3), b"a\0\0", b"a\0\0"),
        ("string", pa.null(), None, None),
    ],
)  # fmt: skip
def test_a_value_is_the_same_in_the_columns_type(
    type_: str, stored: pa.DataType, value: Any, expected: Any
) -> None:
    column = field(type_)
    found = exact_values(column, pa.array([value, None], stored))
    assert column.type is not None
    assert found.type == column.type.arrow
    assert found.to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("type_", "stored", "value"),
    [
        ("short", pa.int64(), 32768),
        ("long", pa.uint64(), 2**63),
        ("long", pa.decimal128(20, 1), Decimal("7.5")),
        ("long", pa.decimal128(20, 0), Decimal(2**63)),
        ("decimal(38,10)", pa.decimal128(38, 0), Decimal("9" * 38)),
        ("decimal(12,2)", pa.decimal128(12, 3), Decimal("1.005")),
        ("float", pa.float64(), 0.1),
        ("double", pa.float32(), 0.1),
        ("short", pa.bool_(), True),
        ("boolean", pa.int8(), 5),
        ("timestamp", pa.timestamp("ns"), pa.scalar(1, pa.timestamp("ns"))),
        ("timestamp", pa.timestamp("us", "Europe/Berlin"), _MOMENT),
        ("string", pa.decimal256(65, 30), Decimal(1)),
        ("string", pa.binary(), b"a"),
        ("long", pa.time64("us"), dt.time(1)),
        ("timestamp", pa.timestamp("s"), pa.scalar(-62_135_596_801, pa.timestamp("s"))),
        ("date", pa.date32(), pa.scalar(2_932_897, pa.date32())),
        ("double", pa.float64(), math.inf),
        ("float", pa.float32(), -math.inf),
        ("decimal(12,2)", pa.decimal128(5, -2), Decimal(1200)),
        ("decimal(20,0)", pa.int64(), -1),
    ],
)
def test_a_value_that_would_change_is_refused(type_: str, stored: pa.DataType, value: Any) -> None:
    given = value if isinstance(value, pa.Scalar) else pa.scalar(value, stored)
    with pytest.raises(InexactError):
        exact_values(field(type_), pa.array([None, given], stored))


@pytest.mark.parametrize(
    ("type_", "source_type", "sent", "others"),
    [
        ("string", "bytes:org.apache.kafka.connect.data.Decimal(65,2)", "1.50",
         ["1.5", "abc", "01.50", "-0.00"]),
        ("decimal(20,0)", "int64:bigint unsigned", Decimal(2**64 - 1), [Decimal(-1)]),
        ("timestamp", "int64:io.debezium.time.Timestamp", _SECOND, [_MOMENT]),
        ("timestamp", "declared:timestamp_millis", _SECOND, [_MOMENT]),
        # Of a TIME nanoseconds; of a YEAR zero as the database has it.
        ("long", "int64:io.debezium.time.MicroTime", -3_020_399_999_999, [36_000_000_000_000]),
        ("integer", "int32:io.debezium.time.Year", 1900, [0, 70, 2156]),
        ("binary", "struct:io.debezium.data.geometry.Point", _POINT,
         [b"\0\0\0\0" + _POINT, b"\0\0\0\0\1" + bytes(16), b"", b"\1\1\0\0\x20" + bytes(20)]),
    ],
)  # fmt: skip
def test_a_value_of_another_notation_than_the_connectors_is_refused(
    type_: str, source_type: str, sent: Any, others: list[Any]
) -> None:
    column = field(type_, source_type)
    assert exact_values(column, pa.array([sent, None])).to_pylist() == [sent, None]
    for other in others:
        with pytest.raises(InexactError):
            exact_values(column, pa.array([sent, other, None]))


@pytest.mark.parametrize(
    ("declared", "sent", "others"),
    [
        ("year", 1900, [0]),
        ("time", -1, [36_000_000_000_000]),
        ("geometry", _POINT, [b"\0\0\0\0" + _POINT]),
        ("datetime(3)", _SECOND, [_MOMENT]),
        ("datetime(6)", _MOMENT, []),
        ("bigint unsigned", Decimal(2**64 - 1), [Decimal(-1)]),
        ("unsigned_long", Decimal(2**64 - 1), [Decimal(-1)]),
        ("bit(12)", b"\x34\x0a", [b"\x34\xa3", b"\x34", b"\x34\x0a\0", b""]),
        ("bit(8)", b"\xff", [b"\0\1"]),
        ("binary(3)", b"a\0\0", [b"a\0\0\0"]),
    ],
)
def test_a_declared_type_says_what_a_value_means(
    declared: str, sent: Any, others: list[Any]
) -> None:
    column = stated(declared)
    assert exact_values(column, pa.array([sent, None])).to_pylist() == [sent, None]
    for other in others:
        with pytest.raises(InexactError):
            exact_values(column, pa.array([sent, other, None]))


def stated(declared: str) -> SourceField:
    types = declare({"c": declared})
    return with_stated_types(SourceSchema((types["c"].cell("c").field,), ()), types).fields[0]


def test_zeros_that_a_file_lacks_are_added_to_a_declared_length() -> None:
    values = pa.array([b"a", b"", None], pa.binary())
    assert exact_values(stated("binary(3)"), values).to_pylist() == [b"a\0\0", bytes(3), None]


def test_a_wide_decimal_that_the_sources_ddl_told_has_its_digits() -> None:
    name, kind = "wide_decimal(65,2)", ColumnType.parse("string")
    types = {"c": DeclaredType(name, kind, Encoding.WIDE_DECIMAL_BASE64, name)}
    (column,) = with_stated_types(SourceSchema((types["c"].cell("c").field,), ()), types).fields
    assert exact_values(column, pa.array(["1.50"])).to_pylist() == ["1.50"]
    with pytest.raises(InexactError):
        exact_values(column, pa.array(["1.5"]))


def test_a_text_that_is_no_unicode_is_refused() -> None:
    octets = pa.array([b"\xff"])
    text = pa.Array.from_buffers(pa.string(), 1, octets.buffers())
    with pytest.raises(InexactError, match="UTF8"):
        exact_values(field("string"), text)


def test_a_time_is_taken_as_the_connector_sends_it() -> None:
    times = pa.array([dt.time(1, 2, 3, 4)], pa.time64("ns"))
    assert exact_values(field("long", _TIME), times).to_pylist() == [3_723_000_004]


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("long", "-9223372036854775808", -(2**63)),
        ("decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
        ("decimal(12,2)", "-0.10", Decimal("-0.10")),
        ("double", "1e-300", 1e-300),
        ("boolean", "0", False),
        ("date", "9999-12-31", dt.date(9999, 12, 31)),
        ("timestamp", "2026-11-24 09:00:00.000001", _MOMENT),
        ("string", " 0 ", " 0 "),
    ],
)
def test_a_text_is_the_value_that_it_says(type_: str, text: str, expected: Any) -> None:
    found = values_of_texts(field(type_), pa.array([text, None]))
    assert found.to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("type_", "source_type", "text"),
    [
        ("short", "", "40000"),
        ("long", "", "1.0"),
        ("decimal(12,2)", "", "1.005"),
        ("date", "", "2024-02-30"),
        ("float", "", "0.5"),
        ("binary", "", "ab"),
        ("long", "int32 io.debezium.time.Time", "01:00:00"),
        ("integer", "int32:io.debezium.time.Year", "0"),
    ],
)
def test_a_text_that_is_no_such_value_is_refused(type_: str, source_type: str, text: str) -> None:
    with pytest.raises(InexactError):
        values_of_texts(field(type_, source_type), pa.array([text]))


def test_a_text_of_a_time_has_its_sign_and_hours() -> None:
    found = values_of_texts(field("long", _TIME), pa.array(["-838:59:59.000001"]))
    assert found.to_pylist() == [-3_020_399_000_001]
