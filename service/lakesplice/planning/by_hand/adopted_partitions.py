"""Partitions of an adopted table: values that its log or its folders have, and its files lack.

A table fed by hand has no partition columns, so they become ordinary columns. A log has their
types. Folders don't, so a column has whole numbers or dates if all its values look like these, else
texts. Source: the Delta protocol, "Partition Value Serialization".
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from lakesplice.formats.log.state import LogState
from lakesplice.model.names import HIVE_NULL

# Per file the values of columns that it lacks.
Constants: TypeAlias = Mapping[str, Mapping[str, pa.Scalar]]

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def of_log(log: LogState, columns: pa.Schema) -> tuple[Constants, list[str]]:
    """Return the values that a table's log has of its partition columns, by file, and the
    reasons why they can't be known.
    """
    found: dict[str, dict[str, pa.Scalar]] = {}
    obstacles = []
    for path, add in sorted(log.adds.items()):
        found[path] = {}
        for name in log.metadata.partition_columns:
            kind, text = columns.field(name).type, add.partition_values.get(name)
            try:
                found[path][name] = _read(text, kind)
            except (pa.ArrowInvalid, ValueError):
                obstacles.append(
                    f"it is partitioned by {name}, whose value {text!r} isn't one exact {kind}:"
                    " rewrite it, partitioned by another column or not at all"
                )
    return found, obstacles


def of_folders(paths: Sequence[str]) -> tuple[Constants, pa.Schema, list[str]]:
    """Return the values that the names of folders (`country=de`) have of columns, by file, these
    columns, and the reasons why they can't be known.
    """
    texts = {path: dict(_folder_values(path)) for path in paths}
    names = [*dict.fromkeys(name for values in texts.values() for name in values)]
    obstacles = [
        f"{path} is not in a folder of {name}, and other files are: rewrite it"
        for path, values in texts.items()
        for name in names
        if name not in values
    ][:1]
    kinds = {name: _kind([values.get(name) for values in texts.values()]) for name in names}
    found = {
        path: {name: _read(text, kinds[name]) for name, text in values.items()}
        for path, values in texts.items()
    }
    return found, pa.schema([*kinds.items()]), obstacles


def _folder_values(path: str) -> list[tuple[str, str | None]]:
    """The values in the names of a file's folders, the outermost first."""
    pairs = [part.partition("=") for part in path.split("/")[:-1]]
    values = ((unquote(name), unquote(value)) for name, equals, value in pairs if equals)
    return [(name, None if value == HIVE_NULL else value) for name, value in values]


def _kind(texts: Sequence[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    if known and all(_WHOLE.fullmatch(text) for text in known):
        return pa.int64()
    return pa.date32() if known and all(_is_day(text) for text in known) else pa.string()


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text)) and bool(dt.date.fromisoformat(text))
    except ValueError:
        return False


def _read(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """Parse a value; `ValueError` for a moment without a time zone, and for bytes, which writers
    encode differently.
    """
    if text is None or text == "":
        return pa.scalar(None, kind)
    if pa.types.is_binary(kind) or (pa.types.is_timestamp(kind) and not text.endswith("Z")):
        raise ValueError(text)
    return pa.scalar(text).cast(kind)
