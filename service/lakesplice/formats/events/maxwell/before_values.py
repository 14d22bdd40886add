"""Finds what `old` contains: the former values of changed columns, nulls included. The JSON reader
can't distinguish these nulls from absent columns.

So written nulls are counted, as in `null_proof.py`, separately in each part of the text: the head,
`data`, and `old`. Quotes within strings are escaped, so `"data":{` and `"old":{` can only be
members. A text is proven if

- its last member is `data`, or `old` directly after `data`: it ends in `}}`, which only these two
  members can cause, and an object ends before `old`, which only `data` can be;
- the head has no null, and its required members were read;
- `data` has as many written nulls as were read from it, so none of its columns is absent;
- every null in `old` is the value of a known column.

The notes of the proof are these columns of `old` that were written as null. A text that isn't
proven is read strictly.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.event_format import Group
from lakesplice.formats.events.json_reading.null_proof import (
    NO_NAME_ENDS_IN,
    NullProof,
    null_offsets,
)
from lakesplice.formats.events.json_reading.template import read_payload
from lakesplice.formats.events.json_reading.texts import positions_of, rows_of, text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask

REQUIRED = ("database", "table", "type", "ts")
_DATA, _OLD = '"data":{', '"old":{'
_BRACE, _COMMA, _BRACE_OPEN = b"},{"
_NOTES = pa.list_(pa.int32())


def prove_parts(texts: pa.Array, rows: pa.Array) -> NullProof:
    """Prove that every null that was read outside of `old` was written. The notes have for each
    text the ordinals of all columns that are written as null in `old`; these are all its nulls.
    """
    data, offsets = text_bytes(texts)
    starts, ends = offsets[:-1], offsets[1:]
    braces = positions_of(data, _BRACE_OPEN)
    data_at, old_at = (_first(data, offsets, braces, part) for part in (_DATA, _OLD))
    places = null_offsets(data)
    owner = rows_of(places, offsets)
    within = places - starts[owner]
    in_head = within < data_at[owner]
    in_old = (old_at[owner] >= 0) & (within > old_at[owner])
    head, old, all_ = (
        np.bincount(owner[of], minlength=len(texts)) for of in (in_head, in_old, slice(None))
    )
    expected = np.zeros(len(texts), np.int64)
    for column in rows.field("data").flatten():
        if column.null_count:
            expected += column.is_null().to_numpy(zero_copy_only=False)
    has_old = rows.field("old").is_valid().to_numpy(zero_copy_only=False)
    behind_data = (old_at > data_at) & _byte_is_at(data, starts + old_at - 2, _BRACE)
    behind_data &= _byte_is_at(data, starts + old_at - 1, _COMMA)
    proven = (data_at > 0) & (head == 0) & (all_ - old == expected)
    proven &= np.where(has_old, behind_data, old_at < 0)
    proven &= _byte_is_at(data, ends - 1, _BRACE) & _byte_is_at(data, ends - 2, _BRACE)
    for name in REQUIRED:
        proven &= rows.field(name).is_valid().to_numpy(zero_copy_only=False)
    names = tuple(column.name for column in rows.type.field("old").type)
    inside, of = places[in_old], owner[in_old]
    column = _columns(data, inside, (starts + old_at)[of] + len(_OLD) - 1, names)
    proven[of[column < 0]] = False
    if NO_NAME_ENDS_IN[list(_by_ending(names))].any():
        # The null of a column with such a name isn't found.
        proven &= ~has_old
    return NullProof(~proven, _notes(of[column >= 0], column[column >= 0], proven))


def _columns(data: Bytes, places: Integers, opened: Integers, names: tuple[str, ...]) -> Integers:
    """Return the ordinals of the columns whose names end at these offsets in objects; -1 for other
    names.

    `opened` has the offset of each object's opening brace: this brace or a comma must precede a
    name.
    """
    found = np.full(len(places), -1, np.int64)
    endings = _by_ending(names)
    lasts = data[places - 1]
    for last in map(int, np.unique(lasts)):
        alike = np.flatnonzero(lasts == last)
        for ordinal, written in endings.get(last, ()):
            at = alike
            for back, byte in enumerate(reversed(written[:-1]), start=1):
                at = at[data[np.maximum(places[at] - back, 0)] == byte]
                if not len(at):
                    break
            ahead = places[at] - len(written)
            comma = (ahead > opened[at]) & (data[np.maximum(ahead, 0)] == _COMMA)
            found[at[comma | (ahead == opened[at])]] = ordinal
    return found


@lru_cache(maxsize=256)
def _by_ending(names: tuple[str, ...]) -> Mapping[int, list[tuple[int, bytes]]]:
    """Return the ordinals and written names of columns, by the last byte before the closing
    quote.
    """
    endings = defaultdict(list)
    for ordinal, name in enumerate(names):
        written = json.dumps(name, ensure_ascii=False).encode()
        endings[written[-2]].append((ordinal, written))
    return endings


def _notes(owner: Integers, column: Integers, proven: Mask) -> pa.Array:
    """Return for each text the list of its columns (`owner` has ascending texts); null if it isn't
    proven.
    """
    counts = np.bincount(owner, minlength=len(proven))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.array(column.astype(np.int32)), _NOTES, mask=pa.array(~proven)
    )


def _first(data: Bytes, offsets: Integers, braces: Integers, opening: str) -> Integers:
    """Return for each text the offset of the first `opening`, which ends in a brace; -1 if there is
    none.

    Only braces are compared, which are few; Arrow's search for a text takes ten times as long.
    """
    lead = opening.encode()[:-1]
    at = braces
    for back, byte in enumerate(reversed(lead), start=1):
        at = at[data[np.maximum(at - back, 0)] == byte]
    at = at - len(lead)
    found = np.full(len(offsets) - 1, -1, np.int64)
    owner = rows_of(at, offsets)
    # The last assignment counts, so the first offset is assigned last.
    found[owner[::-1]] = (at - offsets[owner])[::-1]
    found[found < 0] = -1
    return found


def _byte_is_at(data: Bytes, at: Integers, byte: int) -> Mask:
    """Whether a byte is at these offsets of the data; False before the data's start."""
    found: Mask = (at >= 0) & (data[np.maximum(at, 0)] == byte)
    return found


def changed_columns(group: Group, old: Mapping[str, pa.Array]) -> dict[str, Mask]:
    """Return for each column of `old` a mask of the group's rows whose `old` has it, also as null.

    Rows without notes of the proof are read strictly.
    """
    masks = (column.is_valid().to_numpy(zero_copy_only=False) for column in old.values())
    found = {name: mask.copy() for name, mask in zip(old, masks, strict=True)}
    notes = pa.nulls(len(group.records), _NOTES) if group.notes is None else group.notes
    owner = np.repeat(np.arange(len(notes)), pc.list_value_length(notes).fill_null(0).to_numpy())
    named = notes.flatten().to_numpy()
    for ordinal, name in enumerate(old):
        found[name][owner[named == ordinal]] = True
    has_old = group.payloads.field("old").is_valid()
    for row in map(int, np.flatnonzero(pc.and_(has_old, notes.is_null()))):
        payload = read_payload(group.text(row), group.template.closing)
        stated = payload.get("old") if isinstance(payload, Mapping) else None
        for name in stated if isinstance(stated, Mapping) else ():
            found[str(name)][row] = True
    return found
