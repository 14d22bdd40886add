"""What `old` holds: the changed columns' values before, among them nulls, which the JSON reader
can't tell from columns that are absent.

So nulls are counted where they are written, as in `proof.py`, by the part of the text in which they
stand: the head, `data`, or `old`. Bare quotes within strings are escaped, so `"data":{` and
`"old":{` can only be members. A text is proven if

- `data` is its last member, or `old` is, right behind it: it ends in `}}`, which only these two
  members can, and before `old` ends an object, which only `data` can be;
- no null stands in the head, where what must be there was read;
- as many nulls stand in `data` as were read of it: none of its columns is absent.

The nulls in `old` are then looked for by column. A text that isn't so is read by the book.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.lines import (
    Bytes,
    Integers,
    Mask,
    positions_of,
    rows_of,
    text_bytes,
)
from lakesplice.formats.events.proof import null_places
from lakesplice.formats.events.template import read_payload

REQUIRED = ("database", "table", "type", "ts")
_DATA, _OLD = '"data":{', '"old":{'
_BRACE, _COMMA, _BRACE_OPEN = b"},{"


@dataclass(frozen=True)
class _Parts:
    """Which texts are proven, and how many nulls are written in the `old` of each."""

    proven: Mask
    old_nulls: Integers


def unproven_parts(texts: pa.Array, rows: pa.Array) -> Mask:
    """Mark the texts of which it isn't proven that every null read outside of `old` was written."""
    return ~_parts(texts, rows).proven


def _parts(texts: pa.Array, rows: pa.Array) -> _Parts:
    data, offsets = text_bytes(texts)
    starts, ends = offsets[:-1], offsets[1:]
    braces = positions_of(data, _BRACE_OPEN)
    data_at, old_at = (_first(data, offsets, braces, part) for part in (_DATA, _OLD))
    places = null_places(data)
    owner = rows_of(places, offsets)
    within = places - starts[owner]
    in_head = within < data_at[owner]
    in_old = (old_at[owner] >= 0) & (within > old_at[owner])
    head, old, all_ = (
        np.bincount(owner[of], minlength=len(texts)) for of in (in_head, in_old, slice(None))
    )
    expected = np.zeros(len(texts), np.int64)
    for column in rows.field("data").flatten():
        expected += column.is_null().to_numpy(zero_copy_only=False)
    has_old = rows.field("old").is_valid().to_numpy(zero_copy_only=False)
    behind_data = (old_at > data_at) & _stands(data, starts + old_at - 2, _BRACE)
    behind_data &= _stands(data, starts + old_at - 1, _COMMA)
    proven = (data_at > 0) & (head == 0) & (all_ - old == expected)
    proven &= np.where(has_old, behind_data, old_at < 0)
    proven &= _stands(data, ends - 1, _BRACE) & _stands(data, ends - 2, _BRACE)
    for name in REQUIRED:
        proven &= rows.field(name).is_valid().to_numpy(zero_copy_only=False)
    return _Parts(proven, old)


def _first(data: Bytes, offsets: Integers, braces: Integers, opening: str) -> Integers:
    """Return where in each text an opening, which ends in a brace, first stands; -1 if nowhere.

    There are few braces; Arrow's search for a text takes ten times as long.
    """
    lead = opening.encode()[:-1]
    at = braces
    for back, byte in enumerate(reversed(lead), start=1):
        at = at[data[np.maximum(at - back, 0)] == byte]
    at = at - len(lead)
    found = np.full(len(offsets) - 1, -1, np.int64)
    owner = rows_of(at, offsets)
    # The last assignment stands, so the first place is assigned last.
    found[owner[::-1]] = (at - offsets[owner])[::-1]
    found[found < 0] = -1
    return found


def _stands(data: Bytes, at: Integers, byte: int) -> Mask:
    """Whether a byte stands at places of the data; at none before its start."""
    found: Mask = (at >= 0) & (data[np.maximum(at, 0)] == byte)
    return found


def changed_columns(
    texts: pa.Array, rows: pa.Array, old: Mapping[str, pa.Array], closing: bytes
) -> dict[str, Mask]:
    """Return per column of `old` which rows have it there, be it as null."""
    found = {name: column.is_valid().to_numpy(zero_copy_only=False) for name, column in old.items()}
    found = {name: mask.copy() for name, mask in found.items()}
    parts = _parts(texts, rows)
    has_old = rows.field("old").is_valid().to_numpy(zero_copy_only=False)
    slow = has_old & ~parts.proven
    asked = np.flatnonzero(has_old & parts.proven & (parts.old_nulls > 0))
    if len(asked):
        nulls = _named_nulls(texts.take(pa.array(asked)), tuple(old))
        told = np.sum(list(nulls.values()), axis=0) == parts.old_nulls[asked]
        slow[asked[~told]] = True
        for name, mask in nulls.items():
            found[name][asked[told]] |= mask[told]
    for row in map(int, np.flatnonzero(slow)):
        payload = read_payload(texts[row].as_py(), closing)
        stated = payload.get("old") if isinstance(payload, Mapping) else None
        for name in stated if isinstance(stated, Mapping) else ():
            found[str(name)][row] = True
    return found


def _named_nulls(texts: pa.Array, names: Sequence[str]) -> dict[str, Mask]:
    """Per column the texts whose `old`, their last member, names it as null."""
    pieces = pc.split_pattern(texts.cast(pa.string()), _OLD, max_splits=1)
    old = pc.list_element(pieces, 1)
    return {
        name: pc.match_substring_regex(old, rf"(?:^|,){_written(name)}:null").to_numpy(
            zero_copy_only=False
        )
        for name in names
    }


def _written(name: str) -> str:
    return re.escape(json.dumps(name, ensure_ascii=False))
