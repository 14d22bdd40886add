"""Columns of a source whose values are easily taken for others: times beyond a day, bits, zeros in
dates, negative zeros, charsets; values drawn for them, and other values that aren't equal.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Context, Decimal
from typing import Any

from tests.support.debezium import money
from tests.support.mirrored import MirroredColumn, Row
from tests.support.sent_types import TIME, connect, decimal

_DATA = "io.debezium.data."
_EPOCH_DAY, _SECOND = dt.date(1970, 1, 1), dt.timedelta(seconds=1)
_MICRO = dt.timedelta(microseconds=1)
_EXACT = Context(prec=80)
_TEXT = {"type": "string"}
Draw = Callable[[random.Random], Any]
Lies = Callable[[Any], list[Any]]


def of_text(value: str | None) -> list[str | None]:
    """Texts that differ from one."""
    return ["" if value is None else None, f"{value or ''} ", (value or "x").swapcase() + "\x00"]


def or_null(value: Any, *others: Any) -> list[Any]:
    """For null the first of some values, else null and the other ones."""
    return list(others[:1]) if value is None else [None, *others[1:]]


def zoned(value: dt.datetime) -> dt.datetime:
    """A wall clock of UTC as the moment."""
    return value.replace(tzinfo=dt.UTC)


def _among(*values: Any) -> Draw:
    return lambda chance: chance.choice(values)


def _micros(value: dt.timedelta) -> int:
    return value // _MICRO


def _day(value: dt.date | str) -> dt.date:
    """The driver gives a date with a zero as a text, which Debezium sends as the first day."""
    return value if isinstance(value, dt.date) else _EPOCH_DAY


def _days_or_null(value: dt.date | str) -> int | None:
    return (value - _EPOCH_DAY).days if isinstance(value, dt.date) else None


def _bits(length: int) -> tuple[Callable[[int], str], Callable[[int], bytes]]:
    def stored(value: int) -> bytes:
        return value.to_bytes((length + 7) // 8, "little")

    return lambda value: base64.b64encode(stored(value)).decode(), stored


def _single(value: float) -> float:
    (found,) = struct.unpack("<f", struct.pack("<f", value))
    return float(found)


def _next_single(value: float) -> float:
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    (found,) = struct.unpack("<f", struct.pack("<i", bits + 1))
    return float(found)


def _other_double(value: float | None) -> list[Any]:
    return [0.0] if value is None else [None, -value, math.nextafter(value, math.inf)]


def _other_single(value: float | None) -> list[Any]:
    return [-0.0] if value is None else [None, _next_single(value) if value else -value]


def _decimal(value: Decimal, scale: int = 10) -> str:
    return money(int(Decimal(value).scaleb(scale, _EXACT)))


def _characters(name: str, ddl: str, *values: str) -> tuple[MirroredColumn, Lies]:
    return MirroredColumn(name, ddl, _TEXT, _among("", "a", *values)), of_text


def _bit_column(name: str, length: int, *values: int) -> MirroredColumn:
    sent, stored = _bits(length)
    field = connect("bytes", _DATA + "Bits", length=str(length))
    return MirroredColumn(name, f"bit({length})", field, _among(*values), sent, stored)


_STAMP = MirroredColumn(
    "stamp", "timestamp(6) null", connect("string", TIME + "ZonedTimestamp"),
    _among(*map(dt.datetime.fromisoformat, ("1970-01-01T00:00:01", "2038-01-19T03:14:07.999999"))),
    lambda value: f"{value.isoformat()}Z", zoned,
)  # fmt: skip
_HOURS = MirroredColumn(
    "hours", "time(6)", connect("int64", TIME + "MicroTime"),
    _among(3_020_399 * _SECOND, -3_020_399 * _SECOND, 0 * _SECOND, -_MICRO, 90_000 * _SECOND),
    _micros, _micros,
)  # fmt: skip
_FLAG = MirroredColumn("flag", "bit(1)", {"type": "boolean"}, _among(0, 1), bool, bool)
_FEW_BITS = _bit_column("few_bits", 12, 0, 1, 256, 4095)
_ALL_BITS = _bit_column("all_bits", 64, 0, 2**64 - 1)
_YEAR = MirroredColumn(
    "yr", "year", connect("int32", TIME + "Year"), _among(1901, 2155, 1970),
    lambda value: value or 1900, lambda value: value or 1900,
)  # fmt: skip
_TAGS = MirroredColumn(
    "tags", "set('a','b','ü')", connect("string", _DATA + "EnumSet", allowed="a,b,ü"),
    _among("", "a", "a,b", "b,ü"),
)  # fmt: skip
_HUGE = MirroredColumn(
    "huge", "bigint unsigned zerofill", decimal(20, 0), _among(0, 2**64 - 1, 7),
    lambda value: _decimal(value, 0),
)  # fmt: skip
_FIXED = MirroredColumn(
    "fixed", "binary(3)", {"type": "bytes"}, _among(b"\0\0\0", b"a\0\0", b"abc"),
    lambda value: base64.b64encode(value).decode(),
)  # fmt: skip
_ZERO_DAY = MirroredColumn(
    "zero_day", "date", connect("int32", TIME + "Date"),
    _among(_EPOCH_DAY, "0000-00-00", "2024-02-00"), _days_or_null,
)  # fmt: skip
_ZERO_KEY = replace(
    _ZERO_DAY, ddl="date not null", sent=lambda value: (_day(value) - _EPOCH_DAY).days, stored=_day
)
_LATIN, _ = _characters("latin", "varchar(20) character set latin1", "€ä", "a ", "A")
_WIDE, _ = _characters("wide", "varchar(20) character set utf16 collate utf16_bin", "😀", "a ")
_SJIS, _ = _characters("sjis", "varchar(20) character set sjis collate sjis_bin", "表", "ソa", "~")

ODD: Mapping[str, tuple[MirroredColumn, Lies]] = {
    column.name: (column, lies)
    for column, lies in (
        (_STAMP, lambda v: or_null(v, dt.datetime(2000, 1, 1), v and v - _MICRO)),  # noqa: DTZ001
        (_HOURS, lambda v: or_null(v, 0 * _SECOND, (v or _SECOND) - _MICRO)),
        (_FLAG, lambda v: or_null(v, 0, 1 - (v or 0))),
        (_FEW_BITS, lambda v: or_null(v, 0, 0x0FF0)),
        (_ALL_BITS, lambda v: or_null(v, 0, 2**62)),
        (_YEAR, lambda v: or_null(v, 1970, 1902)),
        (_TAGS, lambda v: or_null(v, "", "b,a")),
        (
            MirroredColumn("neg", "double", {"type": "double"}, _among(0.0, -0.0, 5e-324, 0.1)),
            _other_double,
        ),
        (
            MirroredColumn("single", "float", {"type": "float"}, _among(0.0, -0.0, 0.1), _single),
            _other_single,
        ),
        (_LATIN, of_text),
        (_WIDE, of_text),
        (_SJIS, of_text),
        _characters("gbk", "varchar(20) character set gbk collate gbk_bin", "汉", "誠"),
        _characters("ucs", "char(9) character set ucs2 collate ucs2_bin", "漢"),
        (
            MirroredColumn("tiny", "tinyint", {"type": "int16"}, _among(-128, 127, 0)),
            lambda v: or_null(v, 0, 5),
        ),
        (_HUGE, lambda v: or_null(v, 0, 8)),
        (_FIXED, lambda v: or_null(v, b"\0\0\0", v and v.rstrip(b"\0") + b"\0\0\0\0")),
        (_ZERO_DAY, lambda v: [None if isinstance(v, dt.date) else dt.date(1970, 1, 2)]),
        (
            MirroredColumn(
                "digits", "decimal(38,10)", decimal(38, 10),
                _among(Decimal("1E-10"), Decimal(f"-{'9' * 28}.{'9' * 10}")), _decimal,
            ),
            lambda v: or_null(v, Decimal(0), Decimal("2E-10")),
        ),
    )
}  # fmt: skip

_FIRST = dt.datetime(2000, 1, 1)  # noqa: DTZ001  # the driver gives it without a zone
# Keys with a number behind them have few values themselves.
ODD_KEYS: tuple[tuple[MirroredColumn, Callable[[int], Row]], ...] = (
    (
        replace(_STAMP, ddl="timestamp(6) not null"),
        lambda n: (_FIRST + n * (86_400 * _SECOND + _MICRO),),
    ),
    (_HOURS, lambda n: ((1 if n % 2 else -1) * n * (7_200 * _SECOND + _MICRO),)),
    (_FEW_BITS, lambda n: (n * 9 % 4096,)),
    (_ALL_BITS, lambda n: (2**63 + n,)),
    (_FLAG, lambda n: (n % 2, n)),
    (_YEAR, lambda n: (1901 + n if n % 5 else 0, n)),
    (_TAGS, lambda n: (("", "a", "a,b", "b,ü")[n % 4], n)),
    (_LATIN, lambda n: (f"{'aAäÄ€'[n % 5]}{n}x",)),
    (_WIDE, lambda n: (f"{'aA漢😀'[n % 4]}{n}",)),
    (_SJIS, lambda n: (f"{'aA表ソ~'[n % 5]}{n}",)),
    (_HUGE, lambda n: (2**64 - 1 - n,)),
    (_FIXED, lambda n: (bytes((n, 0, n % 3)),)),
    (_ZERO_KEY, lambda n: (("0000-00-00", _EPOCH_DAY, "2024-00-10", _FIRST.date())[n % 4], n)),
)
