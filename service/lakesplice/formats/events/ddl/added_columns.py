"""The values that existing rows get in a column that their source adds.

MySQL stores the column's default in them. Without a default they get null, or, if null isn't
allowed, the type's own first value: zero, an empty text, the first member, zero bytes. No event
shows it. Moments have no such value here: MySQL's is a zero date, which no column type can hold.
"""

from __future__ import annotations

import datetime as dt
import re
from base64 import b64encode

import pyarrow as pa

from lakesplice.formats.events.ddl import DefinedColumn
from lakesplice.formats.events.ddl.columns import CHARACTERS
from lakesplice.model.column_values import fill_text, fill_value
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive

BYTES = frozenset(("VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"))
NUMBERS = frozenset(
    (
        *WHOLE_NUMBERS,
        Primitive.FLOAT,
        Primitive.DOUBLE,
        Primitive.DECIMAL,
    )
)
_DECIMALS = ("DECIMAL", "DECIMAL UNSIGNED")
_NO_UUID = "00000000-0000-0000-0000-000000000000"
_FIXED = {"SET": "", "JSON": "null", "UUID": _NO_UUID}
_BITS_PER_BYTE = 8
_TIME = re.compile(r"(-?)(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?")
_NO_DIGIT = re.compile(r"^(-?)\.")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def fill_of(column: DefinedColumn, of: ColumnType) -> str | None:
    """Return the value of existing rows in an added column, which is stored as `of`, in the form of
    `model/column_values.py`; None if it is null or unknown.
    """
    if column.default is not None:
        return _constant(column, column.default, of)
    if column.optional or not column.default_known:
        return None
    return _implied(column, of)


def as_fill(text: str, of: ColumnType) -> str | None:
    """Convert a value's text to the form of `fill_text`; None if the type can't hold it."""
    try:
        return fill_text(fill_value(text, of), of)
    except (pa.ArrowException, ValueError):
        return None


def _implied(column: DefinedColumn, of: ColumnType) -> str | None:
    """The value of a column that may not be null and has no default."""
    if of.kind is Primitive.BINARY:
        return _zero_bytes(column)
    if of.kind is Primitive.BOOLEAN:
        return "false"
    if of.kind in NUMBERS:
        return as_fill("0", of)
    if of.kind is not Primitive.STRING:
        return None
    if column.type in _DECIMALS:
        # One of more digits than a decimal has here is stored as its digits.
        return "0." + "0" * column.scale if column.scale else "0"
    if column.type == "ENUM":
        return column.members[0] if column.members else None
    return "" if column.type in CHARACTERS else _FIXED.get(column.type)


def _zero_bytes(column: DefinedColumn) -> str | None:
    """BINARY(n) and BIT(n) have a length; the others are empty."""
    if column.type in BYTES:
        return _encoded(b"")
    if column.type in ("BINARY", "CHAR"):
        return _encoded(bytes(1 if column.length is None else column.length))
    if column.type == "BIT" and column.length:
        return _encoded(bytes(-(-column.length // _BITS_PER_BYTE)))
    return _encoded(b"") if column.type in CHARACTERS else None


def _constant(column: DefinedColumn, text: str, of: ColumnType) -> str | None:
    """A constant from its text."""
    if column.type == "TIME":
        return _time(text, of)
    if column.type == "YEAR":
        return as_fill(text, of) if len(text) == len("2026") or text == "0" else None
    if column.type == "DATE":
        return _date(text) if of.kind is Primitive.DATE else None
    if column.type == "DATETIME":
        return _datetime(text) if of.kind is Primitive.TIMESTAMP else None
    if of.kind in NUMBERS or of.kind is Primitive.BOOLEAN:
        return as_fill(_NO_DIGIT.sub(r"\g<1>0.", text), of)
    if column.type == "CHAR" and of.kind is Primitive.STRING:
        return text.rstrip(" ")  # as MySQL gives it back
    if column.type in CHARACTERS | {"ENUM", "SET"} and of.kind is Primitive.STRING:
        return text
    if column.type in BYTES | {"BINARY"} and of.kind is Primitive.BINARY:
        return _bytes(column, text)
    return None


def _bytes(column: DefinedColumn, text: str) -> str | None:
    """Only plain letters: how others and hexadecimal digits were written isn't known."""
    if not text.isascii() or text[:2].lower() in ("0x", "x'", "b'"):
        return None
    length = column.length if column.type == "BINARY" else 0
    return _encoded(text.encode().ljust(1 if length is None else length, b"\0"))


def _time(text: str, of: ColumnType) -> str | None:
    found = _TIME.fullmatch(text)
    if found is None or of.kind is not Primitive.LONG:
        return None
    sign, hours, minutes, seconds, fraction = found.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    micros = whole * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return str(-micros if sign else micros)


def _date(text: str) -> str | None:
    try:
        return str((dt.date.fromisoformat(text) - _EPOCH.date()).days)
    except ValueError:
        return None


def _datetime(text: str) -> str | None:
    """The epoch itself is left out, since the connector writes it for the present time."""
    try:
        moment = dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)
    except ValueError:
        return None
    if moment == _EPOCH:
        return None
    return str((moment - _EPOCH) // dt.timedelta(microseconds=1))


def _encoded(value: bytes) -> str:
    return b64encode(value).decode()
