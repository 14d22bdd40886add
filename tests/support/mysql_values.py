"""Values of every type of MySQL's, drawn, and how the connector sends each of them.

family      in Python
whole       an integer; so are BIT(n) and YEAR
decimal     a `Decimal`, also with more digits than the type has
clock       microseconds since 1970, or `ZERO` for a zero date; a DATE has days
time        microseconds
geometry    well-known binary and the number of its reference system
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from tests.support.sent_types import unscaled

ZERO = "0000-00-00"
TIME_MAX = 3_020_399_999_999
_DAY = 86_400_000_000
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_FIRST, _DAY_LAST = -719_162, 2_932_896
_TEXTS = ["a", "", 'a "b", c\n', "\r\n", "\0", "é😀", "NULL", "\\N", " ", "nan", "1", "a\\b"]
_POINT = struct.pack("<BIdd", 1, 1, 1.0, -2.0)


class _CannotBeSent:
    """The type of MySQL can't have the value, so the connector never sends it."""


CANNOT_BE_SENT = _CannotBeSent()


@dataclass(frozen=True)
class Kind:
    """A type of MySQL: its values and others that it can't have, and `sent`, which makes of a value
    and the connector's description of the column what an event has. `places` are a decimal's.
    """

    family: str
    sound: st.SearchStrategy[Any]
    wrong: st.SearchStrategy[Any]
    sent: Callable[[Any, Any], Any]
    places: int = 0


def is_of(described: Any, name: str) -> bool:
    """Whether a column is described so, in Connect's schema or by its declaration."""
    text = described if isinstance(described, str) else str(described)
    return name in text


def whole_digits(value: Decimal, places: int) -> int | None:
    """The unscaled value; None if it has more digits behind the point."""
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + places
    number, power = int("".join(map(str, digits))), int(10 ** abs(shift))
    if shift < 0 and number % power:
        return None
    number = number * power if shift >= 0 else number // power
    return -number if sign else number


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _whole(value: int, described: Any) -> Any:
    says_unsigned = described in ("bigint unsigned", "unsigned_long")
    if is_of(described, "BIGINT UNSIGNED") or says_unsigned:
        if not 0 <= value < 1 << 64:
            return CANNOT_BE_SENT
        if described != "bigint unsigned":
            return value - (value >> 63 << 64)
    if is_of(described, "Decimal") or described == "bigint unsigned":
        return _base64(unscaled(Decimal(value), 0))
    return value


def _decimal(places: int) -> Callable[[Decimal, Any], Any]:
    def sent(value: Decimal, described: Any) -> Any:
        number = whole_digits(value, places)
        if described == "string":
            return written(value, places)
        if number is None:
            return CANNOT_BE_SENT
        if is_of(described, "_text"):
            return written(value, places)
        return _base64(number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True))

    return sent


def written(value: Decimal, places: int) -> str:
    """A decimal as MySQL writes it; one with more digits as it is."""
    number = whole_digits(value, places)
    if number is None:
        return f"{value:f}"
    digits = str(abs(number)).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def clock_text(micros: int) -> str | None:
    """A moment as MySQL writes it; None beyond the years 1 to 9999."""
    if not _DAY_FIRST * _DAY <= micros < (_DAY_LAST + 1) * _DAY:
        return None
    moment = _EPOCH + dt.timedelta(microseconds=micros)
    return moment.replace(tzinfo=None).isoformat(" ", "microseconds")


def _clock(value: Any, described: Any) -> Any:
    if value == ZERO:
        return None
    if is_of(described, "ZonedTimestamp") or described == "timestamp":
        text = clock_text(value)
        return CANNOT_BE_SENT if text is None else text.replace(" ", "T") + "Z"
    if is_of(described, "MicroTimestamp") or described == "datetime(6)":
        return value
    return CANNOT_BE_SENT if value % 1000 else value // 1000


def _limits(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([low, high, 0 if low <= 0 else low]) | st.integers(low, high)


def _kind_of_whole(low: int, high: int) -> Kind:
    beyond = st.sampled_from([low - 1, high + 1, 1 << 63, (1 << 64) - 1, -(1 << 63), 1 << 64])
    return Kind("whole", _limits(low, high), beyond, _whole)


def _kind_of_decimal(digits: int, places: int) -> Kind:
    most = 10**digits - 1
    numbers = _limits(-most, most).map(lambda number: Decimal(f"{number}E-{places}"))
    wrong = st.sampled_from(
        [Decimal(f"1E-{places + 1}"), Decimal(f"1E{digits - places}"), Decimal(f"-1E{digits}")]
    )
    short = st.integers(0, places).map(lambda scale: Decimal(f"15E-{scale}"))
    family = "wide" if digits > 38 else "decimal"
    return Kind(family, numbers | short, wrong, _decimal(places), places)


def _kind_of_clock(unit: int) -> Kind:
    moments = _limits(_DAY_FIRST * _DAY // unit, ((_DAY_LAST + 1) * _DAY - 1) // unit)
    near = st.integers(-(10**9), 10**9)
    wrong = st.sampled_from(
        [1, _DAY_FIRST * _DAY - 1_000_000, (_DAY_LAST + 1) * _DAY, (1 << 63) - 1, -(1 << 63)]
    )
    beyond = st.sampled_from([1 << 64, 10**20]).map(lambda micros: micros // 10**6 * 10**6)
    return Kind(
        "clock",
        (moments | near).map(lambda count: count * unit) | st.just(ZERO),
        wrong | beyond,
        _clock,
    )


def _kind_of_text(*values: str) -> Kind:
    return Kind("text", st.sampled_from(values), st.nothing(), lambda value, _: value)


def _kind_of_bytes(sound: st.SearchStrategy[bytes]) -> Kind:
    return Kind("bytes", sound, st.nothing(), lambda value, _: _base64(value))


def _has_32_bits(value: float) -> bool:
    try:
        held: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return False
    return held == value or math.isnan(value)


def _within(low: int, high: int) -> Callable[[int, Any], Any]:
    return lambda value, _: value if low <= value <= high else CANNOT_BE_SENT


_FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-45, 3.4028234663852886e38, 0.10000000149011612]
_WRONG = st.sampled_from([math.nan, math.inf, -math.inf])
_FREE_TEXT = _kind_of_text(*_TEXTS)
_ANY_BYTES = st.sampled_from([b"", b"\0", b"\xff\0", b"a\n,\"'"]) | st.binary(max_size=4)
KINDS: dict[str, Kind] = {
    "TINYINT": _kind_of_whole(-128, 127),
    "TINYINT UNSIGNED": _kind_of_whole(0, 255),
    "SMALLINT": _kind_of_whole(-(1 << 15), (1 << 15) - 1),
    "SMALLINT UNSIGNED": _kind_of_whole(0, (1 << 16) - 1),
    "MEDIUMINT": _kind_of_whole(-(1 << 23), (1 << 23) - 1),
    "MEDIUMINT UNSIGNED": _kind_of_whole(0, (1 << 24) - 1),
    "INT": _kind_of_whole(-(1 << 31), (1 << 31) - 1),
    "INT UNSIGNED": _kind_of_whole(0, (1 << 32) - 1),
    "INT UNSIGNED ZEROFILL": _kind_of_whole(0, (1 << 32) - 1),
    "BIGINT": _kind_of_whole(-(1 << 63), (1 << 63) - 1),
    # A negative one is a value of the DECIMAL(20,0) that the connector may send.
    "BIGINT UNSIGNED": replace(
        _kind_of_whole(0, (1 << 64) - 1), family="unsigned", wrong=st.just(1 << 64)
    ),
    "FLOAT": Kind(
        "float",
        st.sampled_from(_FLOATS),
        _WRONG | st.sampled_from([0.1, 5e-324, 1e300]),
        lambda value, _: value if _has_32_bits(value) else CANNOT_BE_SENT,
    ),
    "DOUBLE": Kind(
        "double",
        st.sampled_from([*_FLOATS, 0.1, 5e-324, -1.7976931348623157e308])
        | st.floats(allow_nan=False, allow_infinity=False),
        _WRONG,
        lambda value, _: value,
    ),
    "DECIMAL(12,2)": _kind_of_decimal(12, 2),
    "DECIMAL(38,10)": _kind_of_decimal(38, 10),
    "DECIMAL(65,30)": _kind_of_decimal(65, 30),
    "BIT(1)": Kind(
        "boolean",
        st.sampled_from([0, 1]),
        st.just(2),
        lambda value, _: bool(value) if value < len((False, True)) else CANNOT_BE_SENT,
    ),
    "BIT(12)": Kind(
        "bits",
        _limits(0, 4095),
        st.just(4096),
        # Connect's schemas say how many bits there are, but nothing keeps that.
        lambda value, described: (
            CANNOT_BE_SENT
            if value >= 1 << 12 and isinstance(described, str)
            else _base64(value.to_bytes(2, "little"))
        ),
    ),
    # The connector sends 1900 for a YEAR of zero.
    "YEAR": Kind(
        "year",
        st.sampled_from([0, 1901, 2155]) | st.integers(1901, 2155),
        st.sampled_from([1899, 2156, 70]),
        lambda value, _: (value or 1900) if value in (0, *range(1901, 2156)) else CANNOT_BE_SENT,
    ),
    "DATE": Kind(
        "date",
        _limits(_DAY_FIRST, _DAY_LAST) | st.just(ZERO),
        st.sampled_from([_DAY_FIRST - 1, _DAY_LAST + 1, (1 << 31) - 1]),
        lambda value, _: None if value == ZERO else value,
    ),
    "DATETIME(0)": _kind_of_clock(1_000_000),
    "DATETIME(3)": _kind_of_clock(1_000),
    "DATETIME(6)": _kind_of_clock(1),
    "TIMESTAMP(6)": _kind_of_clock(1),
    "TIME(6)": Kind(
        "time",
        _limits(-TIME_MAX, TIME_MAX) | st.integers(0, 86_399).map(lambda second: second * 10**6),
        st.sampled_from([TIME_MAX + 1, -TIME_MAX - 1, 86_400_000_000_000]),
        _within(-TIME_MAX, TIME_MAX),
    ),
    **dict.fromkeys(
        ("CHAR(10)", "VARCHAR(255)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"), _FREE_TEXT
    ),
    "ENUM('a','b')": _kind_of_text("", "a", "b"),
    "SET('a','b')": _kind_of_text("", "a", "a,b"),
    "JSON": _kind_of_text('{"a": [1, null]}', "null", '"\\u0000"'),
    "BINARY(3)": replace(
        _kind_of_bytes(st.sampled_from([b"a\0\0", bytes(3), b"abc", b"\0\0a"])),
        family="bytes of a length",
    ),
    **dict.fromkeys(
        ("VARBINARY(300)", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"),
        _kind_of_bytes(_ANY_BYTES),
    ),
    "GEOMETRY, POINT, …": Kind(
        "geometry",
        st.sampled_from([(_POINT, 0), (_POINT, 4326)]),
        st.nothing(),
        lambda value, _: {"wkb": _base64(value[0]), "srid": value[1]},
    ),
}
