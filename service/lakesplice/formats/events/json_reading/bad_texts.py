"""Finds the texts because of which a block can't be read, by regular expressions over all texts.

The first expression finds a member whose value doesn't start like a value of its type, such as a
number in place of a text. It is cheap, and this is the most frequent damage that is still JSON. The
second is the grammar of the shape: its names, each with the form of its values, in any order. A
text that matches the grammar may still repeat a field or hold a number out of range; one that
doesn't match may still be valid JSON in another notation. So the expressions only sort the texts;
the reader or `strict.py` decides.

A damaged producer damages the same members again and again. The JSON reader names the first such
member of a block, and to search for a few known members takes half the time of a search for all.
So they are remembered for each shape (`WrongStarts`).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

# What the JSON reader says of a value of another kind than its type's; the path ends in the name.
_CHANGED_KIND = re.compile(r"^JSON parse error: Column\(.*/([^/]+)\) changed from ")
_NAMES_MAX = 4
_SPACE = "[ ]*"
_SPACED_COLON = f'"{_SPACE}:{_SPACE}'
_STRING = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_INTEGER = r"-?(?:0|[1-9][0-9]{0,18})"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,18})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?"
_DECIMAL = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"


class WrongStarts:
    """Remembers, for texts of one shape, members whose values lately didn't start like their type.

    Only the time that reading takes depends on it.
    """

    def __init__(self, payload: pa.DataType) -> None:
        self._payload = payload
        self._known = frozenset(_allowed_starts(payload))
        self._names: frozenset[str] = frozenset()

    @classmethod
    def of(cls, payload: pa.DataType) -> WrongStarts:
        """Return what this process remembers of the shape."""
        return _remembered(payload)

    def __bool__(self) -> bool:
        return bool(self._names)

    def learn(self, refusal: str) -> bool:
        """Take the member that the JSON reader's message names; return whether texts in which its
        value starts wrong can be told from others now, and could not before.
        """
        found = _CHANGED_KIND.search(refusal)
        name = _written(found[1]) if found else None
        if name is None or name not in self._known or name in self._names:
            return False
        # An expression for many members costs as much as the one for all.
        self._names = self._known if len(self._names) == _NAMES_MAX else self._names | {name}
        return True

    def forget(self) -> None:
        """Forget all members: none of their values started wrong any more."""
        self._names = frozenset()

    def starting_right(self, texts: pa.Array) -> pa.Array:
        """Do what `starting_right` does, for the remembered members alone."""
        return starting_right(texts, self._payload, self._names)


@lru_cache(maxsize=256)
def _remembered(payload: pa.DataType) -> WrongStarts:
    return WrongStarts(payload)


def starting_right(
    texts: pa.Array, payload: pa.DataType, names: frozenset[str] | None = None
) -> pa.Array:
    """Return a boolean array that marks texts in which every member's value starts like its
    type; `names`, as they are written in expressions, may restrict the members.
    """
    return pc.invert(_search(texts, _wrong_start(payload, names), otherwise=True))


def matching(texts: pa.Array, payload: pa.DataType, closing: bytes) -> pa.Array:
    """Return a boolean array that marks texts that look like `payload`."""
    return _search(texts, _grammar(payload, closing), otherwise=False)


def _search(texts: pa.Array, pattern: str, *, otherwise: bool) -> pa.Array:
    try:
        return pc.match_substring_regex(texts, pattern)
    except pa.ArrowInvalid:
        # The engine can't handle thousands of columns: let each text be read by itself.
        return pa.array([otherwise] * len(texts))


@lru_cache(maxsize=256)
def _wrong_start(payload: pa.DataType, names: frozenset[str] | None) -> str:
    alike: dict[str, list[str]] = defaultdict(list)
    for name, allowed in _allowed_starts(payload).items():
        if names is None or name in names:
            alike["".join(map(re.escape, sorted(set(allowed))))].append(name)
    found = (f'"(?:{"|".join(same)}){_SPACED_COLON}[^{start}n ]' for start, same in alike.items())
    # Quotes within strings are escaped, so a name with an unescaped quote and a colon is a
    # member's.
    return "|".join(found)


def _allowed_starts(payload: pa.DataType) -> dict[str, str]:
    """Return for each member name, at any depth, the characters with which its value may start."""
    starts: dict[str, str] = defaultdict(str)
    _collect_starts(payload, starts)
    return starts


def _collect_starts(of: pa.StructType, starts: dict[str, str]) -> None:
    for member in of:
        starts[_written(member.name)] += _start(member.type)
        if pa.types.is_struct(member.type):
            _collect_starts(member.type, starts)


def _start(of: pa.DataType) -> str:
    if pa.types.is_struct(of):
        return "{"
    if pa.types.is_string(of):
        return '"'
    if pa.types.is_boolean(of):
        return "tf"
    if pa.types.is_list(of):
        return "["
    if pa.types.is_decimal(of):
        return '-0123456789"'
    return "" if pa.types.is_null(of) else "-0123456789"


def _written(name: str) -> str:
    """Return a name as it is written in the text, for use in an expression."""
    return re.escape(json.dumps(name, ensure_ascii=False)[1:-1])


@lru_cache(maxsize=256)
def _grammar(payload: pa.DataType, closing: bytes) -> str:
    # If nothing completes the wrapper, the text itself has the last brace.
    end = "" if closing else r"\}"
    return f"^{_value(payload)}{end}$"


def _value(of: pa.DataType) -> str:
    if pa.types.is_struct(of):
        return f"(?:null|{_object(of)})"
    if pa.types.is_string(of):
        return f"(?:null|{_STRING})"
    if pa.types.is_integer(of):
        return f"(?:null|{_INTEGER})"
    if pa.types.is_floating(of):
        return f"(?:null|{_NUMBER})"
    if pa.types.is_boolean(of):
        return "(?:null|true|false)"
    if pa.types.is_decimal(of):
        return rf"(?:null|{_DECIMAL}|{_STRING})"
    if pa.types.is_list(of):
        item = _value(of.value_type)
        return rf"(?:null|\[(?:{item}(?:,{item})*)?\])"
    return "null"


def _object(of: pa.StructType) -> str:
    """Members of one type share a pattern, so that both row images need only one."""
    names: dict[str, list[str]] = defaultdict(list)
    for member in of:
        names[_value(member.type)].append(_written(member.name))
    members = "|".join(
        f'"(?:{"|".join(alike)}){_SPACED_COLON}{value}' for value, alike in names.items()
    )
    if not members:
        return r"\{\}"
    return rf"\{{{_SPACE}(?:{members})(?:{_SPACE},{_SPACE}(?:{members}))*{_SPACE}\}}"
