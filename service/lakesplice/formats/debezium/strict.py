"""One record read by the book: the slow, exact check behind every shortcut of the fast path.

What this accepts is one JSON value of exactly the expected fields and types, with no field twice,
no NaN, no number out of range and no text that isn't Unicode.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from lakesplice.formats.debezium.values import DeadReason

_LONG_MIN, _LONG_MAX = -(1 << 63), (1 << 63) - 1
_SHOWN_CHARS_MAX = 80


@dataclass(frozen=True, slots=True)
class Flaw:
    """Why a record can't be decoded."""

    reason: DeadReason
    detail: str


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


def shown(value: object) -> str:
    """A value as a message shows it: cut, on one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}…"


def read_json(data: bytes) -> object | Flaw:
    """Read exactly one JSON value from UTF-8 bytes."""
    if not data:
        return Flaw(DeadReason.EMPTY, "the value has no bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return Flaw(DeadReason.NOT_JSON, f"not UTF-8: {error.reason} at byte {error.start}")
    try:
        value: object = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except _RefusedError as error:
        return error.flaw
    except RecursionError:
        return Flaw(DeadReason.NOT_JSON, "nested too deeply")
    except ValueError as error:
        return Flaw(DeadReason.NOT_JSON, f"not JSON: {error}; it starts with {shown(text)}")
    return value


def find_flaw(value: object, expected: pa.DataType, path: str = "payload") -> Flaw | None:
    """Compare a value with the type it must have; null fits every type, absence fits none."""
    if value is None:
        return None
    if pa.types.is_struct(expected):
        return _struct_flaw(value, expected, path)
    if pa.types.is_list(expected):
        return _list_flaw(value, expected, path)
    return _scalar_flaw(value, expected, path)


def _struct_flaw(value: object, expected: pa.StructType, path: str) -> Flaw | None:
    if not isinstance(value, dict):
        return _wrong(value, "an object", path)
    for member in expected:
        if member.name not in value:
            detail = f"{path} lacks the field {member.name!r} that its schema has"
            return Flaw(DeadReason.MISSING_FIELD, detail)
        if flaw := find_flaw(value[member.name], member.type, f"{path}.{member.name}"):
            return flaw
    if len(value) > expected.num_fields:
        known = {member.name for member in expected}
        name = next(name for name in value if name not in known)
        return Flaw(DeadReason.UNEXPECTED_FIELD, f"{path} has a field {shown(name)} beyond its schema")
    return None


def _list_flaw(value: object, expected: pa.ListType, path: str) -> Flaw | None:
    if not isinstance(value, list):
        return _wrong(value, "an array", path)
    flaws = (find_flaw(item, expected.value_type, f"{path}[]") for item in value)
    return next((flaw for flaw in flaws if flaw), None)


def _scalar_flaw(value: object, expected: pa.DataType, path: str) -> Flaw | None:
    if pa.types.is_string(expected):
        if not isinstance(value, str):
            return _wrong(value, "a string", path)
        return None if _is_unicode(value) else _wrong(value, "Unicode text", path)
    if pa.types.is_boolean(expected):
        return None if isinstance(value, bool) else _wrong(value, "true or false", path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, "a number" if not pa.types.is_null(expected) else "null", path)
    if pa.types.is_integer(expected):
        if not isinstance(value, int):
            return _wrong(value, "a whole number", path)
        in_range = _LONG_MIN <= value <= _LONG_MAX
    elif pa.types.is_floating(expected):
        in_range = _is_finite(value)
    else:
        return _wrong(value, "null", path)
    return None if in_range else Flaw(DeadReason.OUT_OF_RANGE, f"{path} is {shown(value)}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _wrong(value: object, expected: str, path: str) -> Flaw:
    return Flaw(DeadReason.WRONG_TYPE, f"{path} is {shown(value)}, not {expected}")
