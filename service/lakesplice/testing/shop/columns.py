"""Columns of the simulated database: how a MySQL type is encoded in an event and stored in the
lake.

In memory a value has the simplest exact type: decimals are unscaled integers, dates are days, times
and timestamps are microseconds, all others have Python's own type. `encode` writes such a value as
a JSON fragment, `to_arrow` as the lake stores it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lakesplice.model.types import ColumnType, Primitive

Value = None | bool | int | float | str | bytes
Encoder = Callable[[Any], str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMAL_BYTES = 16
_DECLARED = {
    "io.debezium.time.Timestamp": "timestamp_millis",
    "io.debezium.time.MicroTimestamp": "timestamp_micros",
}
# Jackson, with which Debezium writes JSON, escapes only characters beyond the basic plane.
_BASIC_PLANE_MAX = 0xFFFF


@dataclass(frozen=True)
class Column:
    """One column: `wire` is the Connect type, `semantic` the Debezium name above it, if any.

    `default` is the column's MySQL default as a value in memory; None means it has none.
    """

    name: str
    type: ColumnType
    wire: str
    encode: Encoder = field(repr=False)
    semantic: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    optional: bool = True
    default: Value = None

    @property
    def connect_field(self) -> dict[str, object]:
        """The column in an event's `schema` block; members are in Debezium's order."""
        described: dict[str, object] = {"type": self.wire, "optional": self.optional}
        if self.semantic:
            described |= {"name": self.semantic, "version": 1}
        if self.parameters:
            described["parameters"] = dict(self.parameters)
        if self.default is not None:
            described["default"] = json.loads(self._encode_default(self.default))
        return {**described, "field": self.name}

    @property
    def declared(self) -> str:
        """How a configuration declares the column for events without schemas."""
        return _DECLARED.get(self.semantic, self.type.name)

    def _encode_default(self, default: Value) -> str:
        # Defaults of timestamps are written without trailing zeros, whatever the column's digits.
        is_zoned = self.semantic == "io.debezium.time.ZonedTimestamp"
        return _zoned(0)(default) if is_zoned else self.encode(default)

    def to_arrow(self, values: Sequence[Value]) -> pa.Array:
        """Return the values, which may be null, in the column's Arrow type."""
        if self.type.kind is Primitive.DECIMAL:
            return unscaled_to_arrow([None if v is None else int(v) for v in values], self.type)
        if self.type.kind is Primitive.TIMESTAMP:
            return pa.array(values, pa.int64()).cast(self.type.arrow)
        return pa.array(values, self.type.arrow)


def unscaled_to_arrow(values: Sequence[int | None], type_: ColumnType) -> pa.Array:
    """Build a decimal array from unscaled integers, exactly: no decimal context rounds them."""
    data = b"".join((v or 0).to_bytes(_DECIMAL_BYTES, "little", signed=True) for v in values)
    valid = pa.array([v is not None for v in values], pa.bool_()).buffers()[1]
    return pa.Array.from_buffers(type_.arrow, len(values), [valid, pa.py_buffer(data)])


def json_string(text: str) -> str:
    """Write a string as Jackson does: UTF-8 as it is, surrogate pairs escaped in upper case."""
    plain = json.dumps(text, ensure_ascii=False)
    if plain.isascii() or max(map(ord, plain)) <= _BASIC_PLANE_MAX:
        return plain
    return "".join(c if ord(c) <= _BASIC_PLANE_MAX else _surrogates(c) for c in plain)


def _surrogates(char: str) -> str:
    high, low = divmod(ord(char) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def unscaled_bytes(value: int) -> bytes:
    """The shortest big-endian two's complement of a decimal's unscaled value."""
    length = ((value if value >= 0 else ~value).bit_length() + 8) // 8
    return value.to_bytes(length, "big", signed=True)


def _or_null(encode: Encoder) -> Encoder:
    return lambda value: "null" if value is None else encode(value)


_integer = _or_null(int.__repr__)
_float = _or_null(float.__repr__)
_string = _or_null(json_string)
_boolean: Encoder = {None: "null", True: "true", False: "false"}.__getitem__


def _base64(value: bytes) -> str:
    return f'"{b64encode(value).decode()}"'


def _unscaled(value: int) -> str:
    return _base64(unscaled_bytes(value))


def _millis(micros: int) -> str:
    return str(micros // 1000)


def _zoned(digits: int) -> Encoder:
    """An encoder of ISO timestamps with as many fraction digits as the MySQL column has."""

    def encode(micros: int) -> str:
        moment = (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
        whole, fraction = moment[:19], moment[20:26]
        return f'"{whole}.{fraction[:digits]}Z"' if digits else f'"{whole}Z"'

    return encode


def integer(name: str, *, optional: bool = True, default: int | None = None) -> Column:
    """INT."""
    return Column(
        name, ColumnType(Primitive.INTEGER), "int32", _integer, optional=optional, default=default
    )


def bigint(name: str, *, optional: bool = True) -> Column:
    """BIGINT, or INT UNSIGNED; BIGINT UNSIGNED arrives as a signed number of the same bits."""
    return Column(name, ColumnType(Primitive.LONG), "int64", _integer, optional=optional)


def smallint(name: str, *, optional: bool = True) -> Column:
    """SMALLINT, or TINYINT."""
    return Column(name, ColumnType(Primitive.SHORT), "int16", _integer, optional=optional)


def boolean(name: str, *, optional: bool = True) -> Column:
    """BIT(1)."""
    return Column(name, ColumnType(Primitive.BOOLEAN), "boolean", _boolean, optional=optional)


def varchar(name: str, *, optional: bool = True, default: str | None = None) -> Column:
    """VARCHAR, CHAR or TEXT, which Debezium doesn't distinguish."""
    return Column(
        name, ColumnType(Primitive.STRING), "string", _string, optional=optional, default=default
    )


def blob(name: str, *, optional: bool = True) -> Column:
    """BLOB, BINARY or VARBINARY."""
    return Column(name, ColumnType(Primitive.BINARY), "bytes", _or_null(_base64), optional=optional)


def bits(name: str, length: int, *, optional: bool = True) -> Column:
    """BIT(length) of more than one bit: bytes, the least significant first."""
    return Column(
        name=name,
        type=ColumnType(Primitive.BINARY),
        wire="bytes",
        encode=_or_null(_base64),
        semantic="io.debezium.data.Bits",
        parameters={"length": str(length)},
        optional=optional,
    )


def real(name: str, *, optional: bool = True) -> Column:
    """FLOAT; values must be exact in 32 bits."""
    return Column(name, ColumnType(Primitive.FLOAT), "float", _float, optional=optional)


def double(name: str, *, optional: bool = True) -> Column:
    """DOUBLE."""
    return Column(name, ColumnType(Primitive.DOUBLE), "double", _float, optional=optional)


def decimal(
    name: str, precision: int, scale: int, *, optional: bool = True, default: int | None = None
) -> Column:
    """DECIMAL(precision, scale); values and the default are unscaled integers."""
    return Column(
        name=name,
        type=ColumnType(Primitive.DECIMAL, precision, scale),
        wire="bytes",
        encode=_or_null(_unscaled),
        semantic="org.apache.kafka.connect.data.Decimal",
        parameters={"scale": str(scale), "connect.decimal.precision": str(precision)},
        optional=optional,
        default=default,
    )


def enum(
    name: str, allowed: Sequence[str], *, optional: bool = True, default: str | None = None
) -> Column:
    """ENUM."""
    return Column(
        name=name,
        type=ColumnType(Primitive.STRING),
        wire="string",
        encode=_string,
        semantic="io.debezium.data.Enum",
        parameters={"allowed": ",".join(allowed)},
        optional=optional,
        default=default,
    )


def enum_set(name: str, allowed: Sequence[str], *, optional: bool = True) -> Column:
    """SET; a value is its members joined by commas."""
    return Column(
        name=name,
        type=ColumnType(Primitive.STRING),
        wire="string",
        encode=_string,
        semantic="io.debezium.data.EnumSet",
        parameters={"allowed": ",".join(allowed)},
        optional=optional,
    )


def json_text(name: str, *, optional: bool = True) -> Column:
    """JSON as MySQL prints it; a value is the document's text."""
    return Column(
        name=name,
        type=ColumnType(Primitive.STRING),
        wire="string",
        encode=_string,
        semantic="io.debezium.data.Json",
        parameters={},
        optional=optional,
    )


def date(name: str, *, optional: bool = True) -> Column:
    """DATE, in days."""
    return Column(
        name=name,
        type=ColumnType(Primitive.DATE),
        wire="int32",
        encode=_integer,
        semantic="io.debezium.time.Date",
        parameters={},
        optional=optional,
    )


def time(name: str, *, optional: bool = True) -> Column:
    """TIME, in microseconds; it may be negative or longer than a day. The lake holds the number."""
    return Column(
        name=name,
        type=ColumnType(Primitive.LONG),
        wire="int64",
        encode=_integer,
        semantic="io.debezium.time.MicroTime",
        parameters={},
        optional=optional,
    )


def year(name: str, *, optional: bool = True) -> Column:
    """YEAR."""
    return Column(
        name=name,
        type=ColumnType(Primitive.INTEGER),
        wire="int32",
        encode=_integer,
        semantic="io.debezium.time.Year",
        parameters={},
        optional=optional,
    )


def datetime_millis(name: str, *, optional: bool = True) -> Column:
    """DATETIME(0) to DATETIME(3): sent as milliseconds; values are whole milliseconds."""
    return Column(
        name=name,
        type=ColumnType(Primitive.TIMESTAMP),
        wire="int64",
        encode=_or_null(_millis),
        semantic="io.debezium.time.Timestamp",
        parameters={},
        optional=optional,
    )


def datetime_micros(name: str, *, optional: bool = True) -> Column:
    """DATETIME(4) to DATETIME(6): microseconds."""
    return Column(
        name=name,
        type=ColumnType(Primitive.TIMESTAMP),
        wire="int64",
        encode=_integer,
        semantic="io.debezium.time.MicroTimestamp",
        parameters={},
        optional=optional,
    )


def timestamp(
    name: str, digits: int, *, optional: bool = True, default: int | None = None
) -> Column:
    """TIMESTAMP(digits): ISO text in UTC."""
    return Column(
        name=name,
        type=ColumnType(Primitive.TIMESTAMP),
        wire="string",
        encode=_or_null(_zoned(digits)),
        semantic="io.debezium.time.ZonedTimestamp",
        parameters={},
        optional=optional,
        default=default,
    )
