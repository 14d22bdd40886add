"""Columns of Parquet and CSV files as programs that don't know Lakesplice write MySQL's values.

A form brings a value as it is, or doesn't bring it (`CANNOT_HOLD`). Some forms mislead: their
numbers or bytes are those of another value.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.mysql_values import TIME_MAX, ZERO, clock_text, whole_digits, written

_MICROS = {"s": 10**6, "ms": 10**3, "us": 1}
_DAY = 86_400_000_000
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(),
             pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())  # fmt: skip
_LONG_MAX = (1 << 63) - 1
_HEAD_BYTES = 5


class _CannotHold:
    """The form has no such value."""


CANNOT_HOLD = _CannotHold()


@dataclass(frozen=True)
class Form:
    """A column of a file: its type, and how a value is put. `taken` says that docs/bootstrap.md
    promises to take every value that the type of MySQL can have. Only the descriptions of a column
    that `known_by` is true for show that the form isn't another value's.
    """

    name: str
    type: pa.DataType
    put: Callable[[Any], Any]
    taken: bool = False
    known_by: Callable[[Any], bool] = lambda _: True

    def holds(self, value: Any) -> bool:
        """Whether a column can bring the value; a null always."""
        return value is None or self.put(value) is not CANNOT_HOLD

    def column(self, values: Sequence[Any]) -> pa.Array:
        """Return a column of values that it holds."""
        return pa.array([None if v is None else self.put(v) for v in values], self.type)


def _in(of: pa.DataType, *, taken: bool = True) -> Form:
    """Whole numbers in a type of Arrow's."""
    bits, low = of.bit_width, 0
    if pa.types.is_signed_integer(of):
        bits -= 1
        low = -(1 << bits)
    return Form(
        str(of),
        of,
        lambda v: v if isinstance(v, int) and low <= v < 1 << bits else CANNOT_HOLD,
        taken,
    )


def _digits(of: pa.DataType, *, taken: bool = True) -> Form:
    """Numbers as decimals, which may have other digits behind the point than the column."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return CANNOT_HOLD
        number = whole_digits(Decimal(value), of.scale)
        if number is None or abs(number) >= 10**of.precision:
            return CANNOT_HOLD
        return Decimal(f"{number}E-{of.scale}")

    return Form(str(of), of, put, taken)


def _text(of: pa.DataType, put: Callable[[Any], str | None], *, taken: bool = False) -> Form:
    def held(value: Any) -> Any:
        text = put(value)
        return CANNOT_HOLD if text is None else text

    return Form(f"text in {of}", of, held, taken)


def _float(of: pa.DataType, *, taken: bool) -> Form:
    code = {16: "e", 32: "f", 64: "d"}[of.bit_width]

    def put(value: Any) -> Any:
        try:
            held = struct.unpack(code, struct.pack(code, value))[0]
        except OverflowError:
            return CANNOT_HOLD
        return held if held == value or held != held else CANNOT_HOLD  # NaN

    return Form(str(of), of, put, taken)


def _moments(of: pa.DataType, per_day: int = 0, *, taken: bool = False) -> Form:
    """Moments, dates and times as the whole number of the type's unit."""
    unit = 1 if per_day else _MICROS.get(getattr(of, "unit", "us"), 0)
    width = 1 << (of.bit_width - 1)

    def put(value: Any) -> Any:
        if value == ZERO or (unit and value % unit):
            return CANNOT_HOLD
        number = value * per_day if per_day else value // unit if unit else value * 1000
        if pa.types.is_time(of) and not 0 <= value < _DAY:
            return CANNOT_HOLD
        return number if -width <= number < width else CANNOT_HOLD

    return Form(str(of), of, put, taken)


def _binary(of: pa.DataType, put: Callable[[Any], Any], *, taken: bool = True) -> Form:
    def held(value: Any) -> Any:
        octets = put(value)
        fits = of.bit_width == 8 * len(octets) if pa.types.is_fixed_size_binary(of) else True
        return octets if fits else CANNOT_HOLD

    return Form(f"bytes in {of}", of, held, taken)


def _shape(value: tuple[bytes, int], *, always: bool = False) -> bytes:
    """A geometry with its reference system after the type, as PostGIS has it."""
    wkb, system = value
    if not system and not always:
        return wkb
    head, rest = wkb[: _HEAD_BYTES - 1], wkb[_HEAD_BYTES:]
    return head + b"\x20" + system.to_bytes(4, "little") + rest


def _of_other_end(value: tuple[bytes, int]) -> bytes:
    _, shape, x, y = struct.unpack("<BIdd", value[0])
    return struct.pack(">BIdd", 0, shape, x, y)


def _time_text(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 10**6)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' * (micros < 0)}{hours:02}:{minutes:02}:{seconds:02}.{fraction:06}"


def _has_length(described: Any) -> bool:
    """Whether a declaration says how many bits or bytes each value has; Connect's schemas don't say
    it of bytes, and nothing keeps it of bits.
    """
    return isinstance(described, str) and described.endswith(")")


def _has_digits(described: Any) -> bool:
    """Whether a column is known to have numbers, not any text."""
    return bool(described != "string")


def _beyond_micros(value: int) -> Any:
    """A time in nanoseconds, where these can't be microseconds."""
    return value * 1000 if abs(value * 1000) > TIME_MAX or not value else CANNOT_HOLD


_AS_WHOLE = (
    *(_in(of) for of in _INTEGERS),
    *(_digits(of) for of in (pa.decimal128(38, 0), pa.decimal128(22, 2), pa.decimal256(60, 3),
                             pa.decimal32(9, 0))),
    _float(pa.float64(), taken=False),
    _text(pa.string(), str),
)  # fmt: skip
_NOTHING = Form("null", pa.null(), lambda _: CANNOT_HOLD, taken=True)
_SIGNED_BITS = Form(
    "unsigned as signed",
    pa.int64(),
    lambda v: v - (v >> 63 << 64) if 0 <= v < 1 << 64 else CANNOT_HOLD,
)
# Moments that are written in Parquet's older type, if the writer is asked to.
INT96 = "clock as INT96"
_ZONES = (None, "UTC", "+00:00")
_TEXT_TYPES = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
_BINARY_TYPES = (pa.binary(), pa.large_binary(), pa.binary(3))
FORMS: dict[str, tuple[Form, ...]] = {
    "whole": _AS_WHOLE,
    "unsigned": (*_AS_WHOLE, _SIGNED_BITS),
    "year": (
        *(Form(f"{of} as sent", of, lambda v: v or 1900, taken=True) for of in _INTEGERS[1:4]),
        *(replace(form, taken=False) for form in _AS_WHOLE),
    ),
    "decimal": (
        *(_digits(of) for of in (pa.decimal128(38, 2), pa.decimal128(38, 10), pa.decimal256(76, 20),
                                 pa.decimal128(12, 1), pa.decimal64(18, 3), pa.decimal128(38, 0))),
        Form("int64", pa.int64(), lambda v: _whole_or_none(v, _LONG_MAX), taken=True),
        _float(pa.float64(), taken=False),
    ),
    "wide": (
        *(_text(of, lambda v: written(v, 30), taken=True) for of in _TEXT_TYPES),
        *(
            replace(_text(pa.string(), put), known_by=_has_digits)
            for put in (lambda v: _padded(written(v, 30)), lambda v: f"{v:f}")
        ),
        _digits(pa.decimal256(70, 30), taken=False),
    ),
    "float": (
        _float(pa.float32(), taken=True),
        _float(pa.float64(), taken=True),
        _float(pa.float16(), taken=False),
        _text(pa.string(), repr),
    ),
    "double": (
        _float(pa.float64(), taken=True),
        _float(pa.float32(), taken=False),
        _text(pa.string(), repr),
    ),
    "boolean": (
        Form("bool", pa.bool_(), lambda v: bool(v) if v in (0, 1) else CANNOT_HOLD, taken=True),
        *(_in(of) for of in (pa.int8(), pa.uint8(), pa.int64())),
    ),
    "bits": (
        *(_binary(of, lambda v: v.to_bytes(2, "little")) for of in (*_BINARY_TYPES, pa.binary(2))),
        replace(
            _binary(pa.binary(), lambda v: v.to_bytes(3, "little"), taken=False),
            known_by=_has_length,
        ),
        _in(pa.uint16(), taken=False),
    ),
    "date": (
        _moments(pa.date32(), 1, taken=True),
        _moments(pa.date64(), 86_400_000, taken=True),
        _moments(pa.timestamp("s"), 86_400),
        _text(pa.string(), lambda v: v if v == ZERO else (clock_text(v * _DAY) or "")[:10] or None),
    ),
    "clock": (
        *(_moments(pa.timestamp(unit, zone), taken=True)
          for unit in ("s", "ms", "us", "ns") for zone in _ZONES),
        _moments(pa.timestamp("us", "Europe/Berlin")),
        _moments(pa.int64()),
        _text(pa.string(), lambda v: v if v == ZERO else clock_text(v)),
    ),
    INT96: tuple(_moments(pa.timestamp(unit), taken=True) for unit in ("s", "us", "ns")),
    "time": (
        *(_moments(of, taken=True)
          for of in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
        _in(pa.int64()),
        Form("int64 of nanoseconds", pa.int64(), _beyond_micros),
        Form("duration", pa.duration("us"), lambda v: v),
        _digits(pa.decimal128(20, 0)),
        _text(pa.string(), _time_text),
    ),
    "text": (
        _NOTHING,
        *(_text(of, lambda v: v, taken=True) for of in _TEXT_TYPES),
        _text(pa.string_view(), lambda v: v),
        _binary(pa.binary(), str.encode, taken=False),
    ),
    "bytes": (
        *(_binary(of, lambda v: v) for of in _BINARY_TYPES),
        _binary(pa.binary_view(), lambda v: v, taken=False),
        _text(pa.string(), bytes.hex),
    ),
    "bytes of a length": (
        *(_binary(of, lambda v: v) for of in _BINARY_TYPES),
        Form(
            "bytes without zeros at the end",
            pa.binary(),
            lambda v: v.rstrip(b"\0"),
            known_by=_has_length,
        ),
    ),
    "geometry": (
        *(_binary(of, _shape) for of in (pa.binary(), pa.large_binary())),
        _binary(pa.binary(), lambda v: _shape(v, always=True), taken=False),
        _binary(pa.binary(), _of_other_end, taken=False),
        _binary(pa.binary(), lambda v: v[1].to_bytes(4, "little") + v[0], taken=False),
    ),
}  # fmt: skip


def _whole_or_none(value: Decimal, most: int) -> Any:
    number = whole_digits(value, 0)
    return CANNOT_HOLD if number is None or abs(number) > most else number


def _padded(digits: str) -> str:
    """A number as ZEROFILL shows it."""
    return digits if digits.startswith("-") else digits.rjust(40, "0")


def _of_texts(put: Callable[[Any], str | None], *, taken: bool = True) -> Form:
    return _text(pa.string(), put, taken=taken)


# As SELECT … INTO OUTFILE writes values, without its quotes and escapes.
_WHOLE_TEXTS = (_of_texts(str), _of_texts(lambda v: f"{v:010}"))
CSV_FORMS: dict[str, tuple[Form, ...]] = {
    "whole": _WHOLE_TEXTS,
    "unsigned": _WHOLE_TEXTS,
    "year": (_of_texts(lambda v: f"{v or 1900:04}"), _of_texts(lambda v: f"{v:04}", taken=False)),
    "decimal": (_of_texts(lambda v: f"{v:f}"), _of_texts(lambda v: _padded(f"{v:f}"))),
    "wide": (
        _of_texts(lambda v: written(v, 30)),
        replace(_of_texts(lambda v: _padded(written(v, 30)), taken=False), known_by=_has_digits),
    ),
    "float": (_of_texts(lambda v: f"{v:.6g}", taken=False),),
    "double": (_of_texts(repr),),
    "boolean": (_of_texts(str), _of_texts(chr, taken=False)),
    "bits": (_of_texts(lambda v: v.to_bytes(2, "big").decode("latin1"), taken=False),),
    "date": (
        _of_texts(
            lambda v: v if v == ZERO else (clock_text(v * _DAY) or "")[:10] or None, taken=False
        ),
    ),
    "clock": (
        _of_texts(lambda v: f"{ZERO} 00:00:00" if v == ZERO else clock_text(v), taken=False),
    ),
    "time": (_of_texts(_time_text),),
    "text": (_of_texts(lambda v: v),),
    "bytes": (
        _of_texts(bytes.hex, taken=False),
        _of_texts(lambda v: v.decode("latin1"), taken=False),
    ),
    "geometry": (_of_texts(lambda v: v[0].hex(), taken=False),),
}
