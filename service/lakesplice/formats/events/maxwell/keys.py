"""Finds the key's columns: `primary_key_columns` if the event has it, otherwise the record's key.

The values are taken from the row, since `data` has the key's columns too. A record's key has column
names in lower case, whatever their case in the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.event_format import Group
from lakesplice.formats.events.json_reading.strict import Flaw, read_json, shown
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.arrays import Mask

_STRING = r'"(?:[^"\\]|\\.)*"'
_SCALAR = rf'(?:{_STRING}|[^",\[\]\{{\}}]+)'
# An array has the members of a SET.
_VALUE = rf"(?:{_SCALAR}|\[(?:{_STRING}(?:,{_STRING})*)?\])"
_COLUMN = "pk."
_NO_KEY = "_uuid"
_ARRAY_PARTS = 3


@dataclass(frozen=True)
class MaxwellKey:
    """The key's columns, and the pattern of record keys that have them; None if each event names
    them.
    """

    names: tuple[str, ...]
    pattern: str | None
    prefix: bytes = b""

    def unlike(self, group: Group, stated: pa.Array) -> Mask:
        """Mark the records whose key has, or may have, other columns; `stated` has each event's
        `primary_key_columns`.
        """
        if self.pattern is None:
            names = pc.binary_join(stated, "\0")
            alike = pc.equal(names, "\0".join(self.names)).fill_null(False)
        else:
            silent = stated.is_null()
            alike = pc.and_(silent, pc.match_substring_regex(group.keys, self.pattern))
        mask: Mask = ~np.asarray(alike.fill_null(False))
        return mask


def key_of(key: bytes | None, stated: object, columns: Sequence[str]) -> MaxwellKey | Flaw:
    """Read one record's key with every check; `stated` is the event's `primary_key_columns`, None
    if it has none. Without columns the table has no key.
    """
    if isinstance(stated, list):
        found = MaxwellKey(tuple(map(str, stated)), None)
    else:
        payload = None if key is None else read_json(key)
        if isinstance(payload, Flaw):
            return _flaw(f"the key can't be read: {payload.detail}")
        read = _key_with_names(payload)
        if read is None:
            return _flaw(
                f"the key {shown(payload)} doesn't name the key's columns; set"
                " output_primary_key_columns=true in Maxwell"
            )
        found = replace(read, names=_as_in_row(read.names, columns))
    missing = next((name for name in found.names if name not in columns), None)
    if missing is None:
        return found
    return _flaw(f"the row has no column {missing!r}, which the record's key has")


def _as_in_row(names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...]:
    """Return names in the row's spelling: no two columns of a table differ only in case."""
    written = {column.lower(): column for column in columns}
    return tuple(name if name in columns else written.get(name, name) for name in names)


def _key_with_names(payload: object) -> MaxwellKey | None:
    """Read a key in Maxwell's format `hash` or `array`."""
    if isinstance(payload, Mapping) and {"database", "table"} <= payload.keys():
        members = [str(name) for name in payload if name not in ("database", "table")]
        if members == [_NO_KEY]:
            return MaxwellKey((), _hash_pattern(members))
        if members and all(name.startswith(_COLUMN) for name in members):
            names = tuple(name.removeprefix(_COLUMN) for name in members)
            return MaxwellKey(names, _hash_pattern(members))
    if isinstance(payload, list) and len(payload) == _ARRAY_PARTS and isinstance(payload[2], list):
        parts = payload[2]
        if parts and all(isinstance(part, Mapping) and len(part) == 1 for part in parts):
            names = tuple(str(name) for part in parts for name in part)
            return MaxwellKey(names, _array_pattern(names))
    return None


def _hash_pattern(members: Sequence[str]) -> str:
    columns = "".join(f",{_written(name)}:{_VALUE}" for name in members)
    return rf'^\{{"database":{_STRING},"table":{_STRING}{columns}\}}$'


def _array_pattern(names: Sequence[str]) -> str:
    columns = ",".join(rf"\{{{_written(name)}:{_VALUE}\}}" for name in names)
    return rf"^\[{_STRING},{_STRING},\[{columns}\]\]$"


def _written(name: str) -> str:
    return re.escape(json.dumps(name, ensure_ascii=False))


def _flaw(detail: str) -> Flaw:
    return Flaw(DeadReason.MISSING_KEY, detail)
