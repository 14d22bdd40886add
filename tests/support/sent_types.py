"""A type of MySQL as each format sends it: values, their declaration, and the resulting column."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.support.workload import utc

TIME = "io.debezium.time."


_KAFKA = "org.apache.kafka.connect.data."
DEAD, PARKED = "dead letter", "parked"


@dataclass(frozen=True)
class Sent:
    """A value as one format sends it: `type` is what is declared, or what the message says;
    `outcome` is the resulting value, DEAD or PARKED.
    """

    type: Any
    value: Any
    outcome: Any
    column: str


@dataclass(frozen=True)
class Type:
    """A type: per format values as they are sent. `note` goes into the document."""

    name: str
    connect: tuple[Sent, ...] = ()
    declared: tuple[Sent, ...] = ()
    maxwell: tuple[Sent, ...] = ()
    canal: tuple[Sent, ...] = ()
    note: str = ""


def connect(type_: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    """A field's schema in Kafka Connect."""
    named = {} if name is None else {"name": name, "version": 1}
    return {"type": type_, **named, **({"parameters": parameters} if parameters else {})}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    more = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    return {**connect("bytes", _KAFKA + "Decimal"), "parameters": more}


def unscaled(value: Decimal, scale: int) -> bytes:
    """A decimal's digits as Connect sends them."""
    sign, digits, exponent = value.as_tuple()
    power: int = 10 ** (int(exponent) + scale)
    number = int("".join(map(str, digits))) * power * (-1 if sign else 1)
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


def whole(
    name: str, sent_as: str, by_schema: str, declared: str, column: str, least: int, most: int
) -> Type:
    mysql = name.lower()
    return Type(
        name,
        tuple(Sent(connect(sent_as), v, v, by_schema) for v in (least, most)),
        tuple(Sent(declared, v, v, column) for v in (least, most)),
        tuple(Sent(declared, v, v, column) for v in (least, most)),
        (
            *(Sent(mysql, str(v), v, column) for v in (least, most)),
            Sent(mysql, str(10**19 * 2), DEAD, column),
        ),
    )


def text(name: str, declared: str, *values: str, semantic: str | None = None) -> Type:
    canal = () if semantic else tuple(Sent(name.lower(), v, v, "string") for v in values)
    return Type(
        name,
        tuple(Sent(connect("string", semantic), v, v, "string") for v in values),
        tuple(Sent(declared, v, v, "string") for v in values),
        tuple(Sent("text", v, v, "string") for v in values),
        canal or tuple(Sent(f"declared {declared}", v, v, "string") for v in values),
    )


def bytes_of_any_length(name: str) -> Type:
    values = (b"", b"\x00\xff\x10", bytes(range(256)))
    return Type(
        name,
        tuple(Sent(connect("bytes"), v, v, "binary") for v in values),
        tuple(Sent("blob", v, v, "binary") for v in values),
        tuple(Sent("blob", v, v, "binary") for v in values),
        tuple(Sent(name.lower(), v.decode("latin-1"), v, "binary") for v in values),
    )


def fixed_bytes(length: int) -> Type:
    """Values whose zeros at the end Maxwell and Canal leave out, as the binlog does."""
    whole = [value.ljust(length, b"\0") for value in (b"", b"a", b"\x00\xff", b"a\x00b")]
    cut = [value.rstrip(b"\0") for value in whole]
    type_ = f"binary({length})"
    pairs = list(zip(cut, whole, strict=True))
    return Type(
        type_.upper(),
        tuple(Sent(connect("bytes"), v, v, "binary") for v in whole),
        tuple(Sent(type_, v, v, "binary") for v in whole),
        tuple(Sent(type_, sent, v, "binary") for sent, v in pairs),
        (
            *(Sent(type_, sent.decode("latin-1"), v, "binary") for sent, v in pairs),
            *(Sent(f"declared {type_}", sent.decode("latin-1"), v, "binary") for sent, v in pairs),
        ),
        note="Maxwell and Canal omit zeros at the end; if the length is known, Lakesplice adds them"
        " again. As `blob`, without a length, a value is stored as it was sent",
    )


def epoch(moment: dt.datetime, unit: int) -> int:
    micros = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
    assert micros % unit == 0
    return micros // unit


def clock(digits: int) -> Type:
    fraction = int("123456"[:digits].ljust(6, "0")) if digits else 0
    moments = (utc(1000, 1, 1), utc(9999, 12, 31, 23, 59, 59, fraction))
    unit, semantic = (1000, "Timestamp") if digits <= 3 else (1, "MicroTimestamp")
    declared = f"datetime({digits})"
    texts = [m.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")[: 20 + digits] for m in moments]
    texts = [text.rstrip(".") for text in texts]
    type_, column = connect("int64", TIME + semantic), "timestamp"
    zero = "0000-00-00 00:00:00"
    return Type(
        f"DATETIME({digits})",
        tuple(Sent(type_, epoch(m, unit), m, column) for m in moments),
        tuple(Sent(declared, epoch(m, unit), m, column) for m in moments),
        (
            *(Sent(declared, t, m, column) for t, m in zip(texts, moments, strict=True)),
            Sent(declared, zero, DEAD, column),
        ),
        (
            *(Sent(declared, t, m, column) for t, m in zip(texts, moments, strict=True)),
            Sent(declared, zero, DEAD, column),
        ),
        "the wall clock, kept as if it were UTC's",
    )


def decimal_type(precision: int, scale: int, *values: str) -> Type:
    type_, name = decimal(precision, scale), f"decimal({precision},{scale})"
    found = [Decimal(value) for value in values]
    too_wide = Decimal((0, (9,) * (precision + 1), -scale))
    return Type(
        name.upper(),
        (
            *(Sent(type_, unscaled(v, scale), v, name) for v in found),
            Sent(type_, unscaled(too_wide, scale), DEAD, name),
        ),
        (
            *(Sent(name, unscaled(v, scale), v, name) for v in found),
            *(Sent(f"decimal_text({precision},{scale})", str(v), v, name) for v in found),
        ),
        (*(Sent(name, str(v), v, name) for v in found), Sent(name, str(too_wide), DEAD, name)),
        (*(Sent(name, str(v), v, name) for v in found), Sent(name, "", DEAD, name)),
    )  # fmt: skip
