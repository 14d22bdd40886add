"""Converts values of MySQL's JSON columns, which Maxwell writes into its events as nested JSON.

A table stores such a value as its text. So before events are read, the values of JSON columns are
replaced by strings that hold exactly that text. MariaDB's JSON is text at the source and already a
string; Maxwell calls such a column longtext. So a string counts as a JSON string, and gets its
quotes, only if Maxwell's DDL shows that the column always had the type JSON. If JSON is only
declared, a string is kept as it is. The JSON null can't be distinguished from a missing value: both
become null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from lakesplice.formats.events.json_reading.object_members import members_in
from lakesplice.formats.events.values.decode_context import DecodeContext

_IMAGES = ("data", "old")


def with_texts(values: pa.Array, context: DecodeContext) -> pa.Array:
    """Return records' values in which JSON columns hold their JSON as text. Values are unchanged if
    the table has no such columns, or if they aren't events.
    """
    names = _columns(context)
    if not names:
        return values
    texts = values.to_pylist()
    return pa.array([text and _with_texts(text, names) for text in texts], pa.binary())


def _columns(context: DecodeContext) -> Mapping[str, bool]:
    """Return the JSON columns, and for each whether its strings are JSON too."""
    declared = context.declared or {}
    found = {name: False for name, type_ in declared.items() if type_.written == "json"}
    seen: dict[str, set[bool]] = {}
    for version in context.history.versions if context.history is not None else ():
        for name, type_ in version.columns.items():
            seen.setdefault(name, set()).add(type_.written == "json")
    return found | {name: among == {True} for name, among in seen.items() if True in among}


def _with_texts(value: bytes, names: Mapping[str, bool]) -> bytes:
    try:
        text = value.decode()
        found = [
            (start, end)
            for image, opening, _ in members_in(text, 0)
            if image in _IMAGES and text[opening] == "{"
            for name, start, end in members_in(text, opening)
            if name in names and _is_json(text[start], quoted=names[name])
        ]
    except (ValueError, IndexError, RecursionError):
        return value  # the reader gives the verdict
    pieces, last = [], 0
    for start, end in found:
        pieces += [text[last:start], json.dumps(text[start:end], ensure_ascii=False)]
        last = end
    return "".join((*pieces, text[last:])).encode() if found else value


def _is_json(first: str, *, quoted: bool) -> bool:
    """Whether a value with this start is nested JSON, not a text of JSON and not null."""
    return quoted if first == '"' else first != "n"
