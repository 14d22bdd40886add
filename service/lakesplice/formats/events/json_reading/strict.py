"""Reads one record strictly: the slow, exact check for everything that the fast reading can't
decide.

It accepts one JSON value with exactly the expected fields and types, without a repeated field, NaN,
a number out of range, or text that isn't valid Unicode.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import NoReturn, Self

import pyarrow as pa

from lakesplice.formats.events.values.refusals import DeadReason

_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_SHOWN_CHARS_MAX = 80
_LEVELS_MAX = 50
# Larger exponents are beyond every decimal type; for smaller ones the digits are compared.
_EXPONENT_MAX = 100


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a record can't be decoded."""

    reason: DeadReason
    detail: str


class ExactFloat(float):
    """A number with a fraction or an exponent, and its text."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """Read the text of a JSON number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


_TOO_DEEP = Flaw(DeadReason.NOT_JSON, "nested too deeply")
Check = Callable[[object, str], Flaw | None]
_ABSENT = object()
_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


class _RefusedError(Exception):
    """Carries a flaw out of the JSON parser's hooks."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.detail)
        self.flaw = flaw


def _constant(text: str) -> NoReturn:
    raise _RefusedError(Flaw(DeadReason.NOT_JSON, f"{text} is no JSON number"))


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _RefusedError(Flaw(DeadReason.UNEXPECTED_FIELD, f"field {twice!r} occurs twice"))
    return members


def _object_in_unicode(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if not all(_is_unicode(name) for name, _ in pairs):
        name = next(name for name, _ in pairs if not _is_unicode(name))
        raise _RefusedError(
            Flaw(DeadReason.NOT_JSON, f"field {shown(name)} has a name that isn't valid Unicode")
        )
    return _object(pairs)


def shown(value: object) -> str:
    """Return a value as messages show it: shortened, on one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def read_json(data: bytes, *, lead: int = 0) -> object | Flaw:
    """Read exactly one JSON value from UTF-8; the first `lead` bytes aren't the record's."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Flaw(DeadReason.NOT_JSON, f"not UTF-8: {error.reason} at byte {error.start - lead}")
    # Half of a surrogate pair can only be an escape, and hardly any record has one.
    read_object = _object_in_unicode if _HALF_A_PAIR.search(text) else _object
    try:
        value: object = json.loads(
            text, object_pairs_hook=read_object, parse_constant=_constant, parse_float=ExactFloat
        )
    except _RefusedError as error:
        return error.flaw
    except RecursionError:
        return _TOO_DEEP
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos - lead}"
        return Flaw(DeadReason.NOT_JSON, f"not JSON: {where} of {shown(text[lead:])}")
    except ValueError as error:
        return Flaw(DeadReason.NOT_JSON, f"not JSON: {error}")
    opened = data.count(b"[") + data.count(b"{")
    return _TOO_DEEP if opened > _LEVELS_MAX and _is_deeper(value, _LEVELS_MAX) else value


def _is_deeper(value: object, levels: int) -> bool:
    """Whether a value nests deeper than allowed; walking it recursively would exhaust the stack."""
    if not isinstance(value, dict | list):
        return False
    members = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(member, levels - 1) for member in members)


def find_flaw(value: object, expected: pa.DataType, path: str = "payload") -> Flaw | None:
    """Compare a value with its expected type; null fits every type, but an absent field fits
    none.
    """
    return None if value is None else check_of(expected)(value, path)


def check_of(expected: pa.DataType, optional: Collection[str] = ()) -> Check:
    """Return a function that compares values, not null, with a type.

    `optional` members of an object may be absent, and if they are objects or lists of objects,
    their members may be absent too. The function is made once per type, since asking Arrow about a
    type costs more than the comparison.
    """
    if pa.types.is_struct(expected):
        members = {field.name: _member_check(field, optional) for field in expected}
        return partial(_struct_flaw, members, frozenset(optional))
    if pa.types.is_decimal(expected):
        return partial(_decimal_flaw, expected)
    if pa.types.is_list(expected):
        return partial(_list_flaw, check_of(expected.value_type))
    if pa.types.is_string(expected):
        return _text_flaw
    if pa.types.is_boolean(expected):
        return _boolean_flaw
    if pa.types.is_integer(expected):
        return _integer_flaw
    return _number_flaw if pa.types.is_floating(expected) else _null_flaw


def _member_check(member: pa.Field, optional: Collection[str]) -> Check:
    of = member.type
    if member.name in optional and pa.types.is_struct(of):
        return check_of(of, [inner.name for inner in of])
    if member.name in optional and pa.types.is_list(of) and pa.types.is_struct(of.value_type):
        return partial(_list_flaw, check_of(of.value_type, [inner.name for inner in of.value_type]))
    return check_of(of)


def _struct_flaw(
    members: Mapping[str, Check], optional: Collection[str], value: object, path: str
) -> Flaw | None:
    if not isinstance(value, dict):
        return _wrong(value, "an object", path)
    for name, check in members.items():
        member = value.get(name, _ABSENT)
        if member is None or (member is _ABSENT and name in optional):
            continue
        if member is _ABSENT:
            detail = f"{path} lacks the field {name!r} that its schema has"
            return Flaw(DeadReason.MISSING_FIELD, detail)
        if flaw := check(member, f"{path}.{name}"):
            return flaw
    if not value.keys() <= members.keys():
        name = next(name for name in value if name not in members)
        detail = f"{path} has a field {shown(name)} that its schema doesn't have"
        return Flaw(DeadReason.UNEXPECTED_FIELD, detail)
    return None


def _list_flaw(check: Check, value: object, path: str) -> Flaw | None:
    if not isinstance(value, list):
        return _wrong(value, "an array", path)
    flaws = (check(item, f"{path}[]") for item in value if item is not None)
    return next((flaw for flaw in flaws if flaw), None)


def _text_flaw(value: object, path: str) -> Flaw | None:
    if not isinstance(value, str):
        return _wrong(value, "a string", path)
    return None if _is_unicode(value) else _wrong(value, "Unicode text", path)


def _boolean_flaw(value: object, path: str) -> Flaw | None:
    return None if isinstance(value, bool) else _wrong(value, "true or false", path)


def _integer_flaw(value: object, path: str) -> Flaw | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return _wrong(value, "a whole number", path)
    return None if _LONG_MIN <= value <= _LONG_MAX else _beyond(value, path)


def _number_flaw(value: object, path: str) -> Flaw | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return _wrong(value, "a number", path)
    return None if _is_finite(value) else _beyond(value, path)


def _decimal_flaw(of: pa.Decimal128Type, value: object, path: str) -> Flaw | None:
    """Return the flaw of a decimal: it must be a number, or digits as text, and fit without
    rounding.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return _wrong(value, "a decimal number", path)
    try:
        exact = Decimal(value.text if isinstance(value, ExactFloat) else str(value))
        if not exact.is_finite() or abs(exact.adjusted()) > _EXPONENT_MAX:
            return _beyond(value, path)
        pa.scalar(exact, of)
    except (InvalidOperation, pa.ArrowInvalid):
        return _beyond(value, path)
    return None


def _null_flaw(value: object, path: str) -> Flaw | None:
    return _wrong(value, "null", path)


def _beyond(value: object, path: str) -> Flaw:
    return Flaw(DeadReason.OUT_OF_RANGE, f"{path} is {shown(value)}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def as_read(value: object, of: pa.DataType) -> object:
    """Convert a value without flaws so that Arrow can make a scalar of the type: Arrow refuses a
    whole number for a float that would round it, and a float for a decimal.
    """
    if pa.types.is_floating(of) and isinstance(value, int):
        return float(value)
    if pa.types.is_decimal(of) and value is not None:
        return Decimal(value.text if isinstance(value, ExactFloat) else str(value))
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _wrong(value: object, expected: str, path: str) -> Flaw:
    return Flaw(DeadReason.WRONG_TYPE, f"{path} is {shown(value)}, not {expected}")
