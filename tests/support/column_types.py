"""Columns of every type that a source may have: their DDL, and values drawn for them."""

from __future__ import annotations

import datetime as dt
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

_LETTERS = string.ascii_letters + string.digits + " ÄßéñЖ漢😀'\"\\\n\t\x00"
_TIMES = dt.timedelta(hours=838, minutes=59, seconds=59)
_LARGE_BYTES = 1_500_000

Random = random.Random


@dataclass(frozen=True)
class Typed:
    """A column: its DDL and what it holds.

    `stored` is the type in the lake, `told` where another one if the DDL says it, `as_stored` makes
    of the database's value the lake's.
    """

    name: str
    ddl: str
    stored: pa.DataType
    draw: Callable[[Random], Any]
    as_stored: Callable[[Any], Any] = lambda value: value
    told: pa.DataType | None = None


def within(low: int, high: int) -> Callable[[Random], int]:
    """A whole number, its limits often."""
    return lambda chance: chance.choice((low, high, 0, 1, chance.randint(low, high)))


def digits_of(precision: int, scale: int) -> Callable[[Random], Decimal]:
    """A decimal number, its limits often."""
    most = 10**precision - 1
    whole = within(-most, most)
    # From its text, since arithmetic would round to 28 digits.
    return lambda chance: Decimal(f"{whole(chance)}E-{scale}")


def text_of(most: int, letters: str = _LETTERS) -> Callable[[Random], str]:
    def draw(chance: Random) -> str:
        size = chance.choice((0, 1, chance.randint(0, most)))
        return "".join(chance.choices(letters, k=size)).strip()

    return draw


def _bytes(most: int, least: int = 0) -> Callable[[Random], bytes]:
    return lambda chance: chance.randbytes(chance.randint(least, most))


def large(chance: Random) -> bytes:
    """Bytes that now and then are more than a page."""
    return chance.randbytes(_LARGE_BYTES if chance.random() < 0.1 else chance.randint(0, 50_000))


def _date(chance: Random) -> dt.date:
    most = dt.date.max.toordinal()
    return dt.date.fromordinal(chance.choice((1, 577_736, most, chance.randint(1, most))))


def _moment(low: dt.datetime, high: dt.datetime, digits: int) -> Callable[[Random], dt.datetime]:
    unit = 10 ** (6 - digits)

    def draw(chance: Random) -> dt.datetime:
        spread = (high - low) // dt.timedelta(microseconds=unit)
        steps = chance.choice((0, spread, chance.randint(0, spread)))
        return low + dt.timedelta(microseconds=steps * unit)

    return draw


def _time(digits: int) -> Callable[[Random], dt.timedelta]:
    unit = 10 ** (6 - digits)

    def draw(chance: Random) -> dt.timedelta:
        most = _TIMES // dt.timedelta(microseconds=unit)
        return dt.timedelta(microseconds=within(-most, most)(chance) * unit)

    return draw


def _json(chance: Random) -> str:
    value = {"k": [1, None, {"ü": chance.random()}], "t": text_of(20)(chance)}
    return json.dumps(value, ensure_ascii=chance.random() < 0.5)


def _utc(value: dt.datetime) -> dt.datetime:
    return value.replace(tzinfo=dt.UTC)


def _plain(text: str) -> dt.datetime:
    """A moment without a zone, as the driver of the database has them."""
    return dt.datetime.fromisoformat(text)


_DATETIMES = _plain("1000-01-01"), _plain("9999-12-31T23:59:59")
_STAMPS = _plain("1970-01-01T00:00:01"), _plain("2038-01-19T03:14:07")
_INSTANT = pa.timestamp("us", tz="UTC")


def of_text(name: str, ddl: str, most: int, letters: str = _LETTERS) -> Typed:
    return Typed(name, ddl, pa.string(), text_of(most, letters))


def _of_bytes(name: str, ddl: str, most: int, least: int = 0) -> Typed:
    return Typed(name, ddl, pa.binary(), _bytes(most, least))


def _of_integers() -> list[Typed]:
    kinds: list[tuple[str, pa.DataType, int, bool]] = [
        ("tinyint", pa.int16(), 8, True),
        ("tinyint unsigned", pa.int16(), 8, False),
        ("smallint", pa.int16(), 16, True),
        ("smallint unsigned", pa.int32(), 16, False),
        ("mediumint", pa.int32(), 24, True),
        ("mediumint unsigned", pa.int32(), 24, False),
        ("int", pa.int32(), 32, True),
        ("int unsigned", pa.int64(), 32, False),
        ("bigint", pa.int64(), 64, True),
        ("bigint unsigned", pa.decimal128(20, 0), 64, False),
    ]
    return [
        Typed(
            f"n_{ddl.replace(' ', '_')}",
            ddl,
            stored,
            within(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else within(0, 2**bits - 1),
            told=pa.int8() if ddl == "tinyint" else None,
        )
        for ddl, stored, bits, signed in kinds
    ]


def _of_moments() -> list[Typed]:
    times = [
        Typed(
            f"t_{digits}", f"time({digits})", pa.int64(), _time(digits),
            lambda value: value // dt.timedelta(microseconds=1),
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    datetimes = [
        Typed(
            f"d_{digits}", f"datetime({digits})", _INSTANT,
            _moment(*_DATETIMES, digits), _utc,
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    stamps = [
        Typed(
            f"s_{digits}", f"timestamp({digits})", _INSTANT,
            _moment(*_STAMPS, digits), _utc,
        )
        for digits in (0, 3, 6)
    ]  # fmt: skip
    return [*times, *datetimes, *stamps]


def every_type() -> list[Typed]:
    """A column of every type that can be stored, all nullable."""
    return [
        *_of_integers(),
        Typed("n_bool", "tinyint(1)", pa.int16(), within(-128, 127), told=pa.int8()),
        Typed("p_12", "decimal(12,2)", pa.decimal128(12, 2), digits_of(12, 2)),
        Typed("p_38", "decimal(38,10)", pa.decimal128(38, 10), digits_of(38, 10)),
        Typed("p_5", "decimal(5,5)", pa.decimal128(5, 5), digits_of(5, 5)),
        # Six digits are what the server prints of a FLOAT.
        Typed("f_4", "float", pa.float32(), lambda c: c.randint(-99_999, 99_999) / 100),
        Typed("f_8", "double", pa.float64(), lambda c: c.gauss(0, 1e12)),
        Typed("b_1", "bit(1)", pa.bool_(), within(0, 1), lambda v: v != b"\0"),
        Typed("b_12", "bit(12)", pa.binary(), within(0, 4095), lambda v: v[::-1]),
        Typed("b_64", "bit(64)", pa.binary(), within(0, 2**64 - 1), lambda v: v[::-1]),
        of_text("c_10", "char(10)", 10),
        of_text("c_100", "varchar(100)", 100),
        of_text("c_latin", "varchar(50) character set latin1", 50, string.printable + "äÿ€"),
        of_text("x_tiny", "tinytext", 40),
        of_text("x_text", "text", 400),
        of_text("x_medium", "mediumtext", 400),
        of_text("x_long", "longtext", 400),
        _of_bytes("y_16", "binary(16)", 16, 1),
        _of_bytes("y_20", "varbinary(20)", 20),
        _of_bytes("y_tiny", "tinyblob", 40),
        _of_bytes("y_blob", "blob", 400),
        _of_bytes("y_long", "longblob", 400),
        Typed("e", "enum('new','ü','c d')", pa.string(), lambda c: c.choice(("new", "ü"))),
        Typed("z", "set('a','b','c')", pa.string(), lambda c: c.choice(("", "a", "a,c"))),
        Typed("j", "json", pa.string(), _json),
        Typed("d", "date", pa.date32(), _date),
        *_of_moments(),
        Typed("yr", "year", pa.int32(), lambda c: c.choice((1901, 2024, 2155))),
    ]


def required(name: str, ddl: str, stored: pa.DataType, draw: Any) -> Typed:
    return Typed(name, f"{ddl} not null", stored, draw)
