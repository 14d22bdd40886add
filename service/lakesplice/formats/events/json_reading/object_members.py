"""Finds the members of an object in its text."""

from __future__ import annotations

import json
from collections.abc import Iterator

_SPACE = " \t\r\n"


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


# Python's decoder would take NaN and infinities, at any depth.
_DECODER = json.JSONDecoder(parse_constant=_refused)


def members_in(text: str, opening: int) -> Iterator[tuple[str, int, int]]:
    """Yield the names of an object's members, and the start and end of their values. Raises
    `ValueError` or `IndexError` if the text isn't an object of JSON.
    """
    at = _behind(text, opening, "{")
    if text[at] == "}":
        return
    while True:
        name, at = _DECODER.raw_decode(text, at)
        if not isinstance(name, str):
            raise ValueError("a name was expected")
        start = _behind(text, _skipped(text, at), ":")
        _, end = _DECODER.raw_decode(text, start)
        yield name, start, end
        at = _skipped(text, end)
        if text[at] == "}":
            return
        at = _behind(text, at, ",")


def _behind(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        raise ValueError(f"{text[at]!r} where {sign!r} was expected")
    return _skipped(text, at + 1)


def _skipped(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at
