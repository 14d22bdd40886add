"""Proves that no column is absent from `data`; the JSON reader reads an absent column as null.

All members and all columns of `data` must be present; `old` has only changed columns. So the nulls
that were read outside of `old` are compared with the nulls that are written outside of it. Columns'
values are texts, so `"old":[{`, or any other member that opens a list or an object, can't be inside
a column. `old` extends from its opening to the next such member, or to the end, and must be closed
before that.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.blocks.positions import nulls_in
from lakesplice.formats.events.json_reading.null_proof import NullProof, null_offsets
from lakesplice.formats.events.json_reading.texts import positions_of, rows_of, text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask

_OLD = b'"old":[{'
_OTHERS = (b'"data":[{', b'"mysqlType":{', b'"sqlType":{', b'"pkNames":[', b'"_tidb":{')
_CLOSING, _END = b"}],", b"}]}"
_FAR = np.iinfo(np.int64).max


def prove_messages(texts: pa.Array, rows: pa.Array) -> NullProof:
    """Mark the texts in which every null that was read outside of `old` was written."""
    data, offsets = text_bytes(texts)
    ends = offsets[1:]
    places = null_offsets(data)
    owner = rows_of(places, offsets)
    old_at = np.full(len(texts), _FAR, np.int64)
    opened = _openings(data, _OLD)
    old_at[rows_of(opened, offsets)] = opened
    has_old = old_at < _FAR
    old_end = ends.copy()
    for other in _OTHERS:
        at = _openings(data, other)
        row = rows_of(at, offsets)
        behind = at > old_at[row]
        np.minimum.at(old_end, row[behind], at[behind])
    closes = np.where(
        old_end == ends, _stand(data, ends - len(_END), _END), _stand(data, old_end - 3, _CLOSING)
    )
    in_old = (places > old_at[owner]) & (places < old_end[owner])
    written = np.bincount(owner[~in_old], minlength=len(texts))
    proven = (written == _expected(rows)) & (~has_old | closes)
    proven &= has_old == rows.field("old").is_valid().to_numpy(zero_copy_only=False)
    return NullProof(~proven)


def _openings(data: Bytes, opening: bytes) -> Integers:
    """Return the offsets of an opening, ascending; it is found by its last byte."""
    at = positions_of(data, opening[-1])
    at = at[at >= len(opening) - 1]
    for back in range(1, len(opening)):
        at = at[data[at - back] == opening[-1 - back]]
    return at - (len(opening) - 1)


def _stand(data: Bytes, at: Integers, wanted: bytes) -> Mask:
    """Whether these bytes are at these offsets of the data."""
    found = at >= 0
    for ahead, byte in enumerate(wanted):
        found &= data[np.clip(at + ahead, 0, len(data) - 1)] == byte
    return found


def _expected(rows: pa.Array) -> Integers:
    """Return for each message how many members outside of `old` its text must have as null."""
    total = np.zeros(len(rows), np.int64)
    for field, member in zip(rows.type, rows.flatten(), strict=True):
        total += nulls_in(member)
        if pa.types.is_struct(field.type):
            present = member.is_valid().to_numpy(zero_copy_only=False)
            for inner in member.flatten():
                total += nulls_in(inner) & present
        elif field.name == "data":
            owners = np.repeat(np.arange(len(rows)), lengths_of(member))
            for column in member.flatten().flatten():
                total += np.bincount(owners[nulls_in(column)], minlength=len(rows))
    return total


def lengths_of(lists: pa.Array) -> Integers:
    """Return the number of items of each list; 0 for null."""
    lengths: Integers = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    return lengths
