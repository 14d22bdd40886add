"""Which rows are proven to be whole: every cell that read as null was written as null.

The JSON reader gives null for an absent field as for a null one. A field written as null shows in
the text as `"name":null`. So, per row, count the null cells read and the nulls written: the second
number never exceeds the first, and where they are equal no field is absent.

A written null is counted at its `:`, preceded by a quote and followed by `nu`. That this quote ends
a name, rather than standing within a string or opening one that starts with `:nu`, is seen from the
byte before it: no backslash, and nothing that stands before an opening quote. A name that ends in
one of those bytes is thereby not counted, which only sends its row to the slow check.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.json_reading.texts import pairs_of, rows_of, text_bytes
from lakesplice.model.arrays import Bytes, Integers, Mask

_LETTER_N, _LETTER_U, _COLON, _QUOTE, _SPACE = b'nu:" '
NO_NAME_ENDS_IN = np.zeros(256, np.bool_)
NO_NAME_ENDS_IN[list(b"\\:,{[ \t\r\n")] = True


@dataclass(frozen=True)
class Evidence:
    """What texts say of the rows read of them: which are `unproven`; and in `notes`, row for row,
    what else the format wants to know, null where unproven. Without `notes` it wants nothing.
    """

    unproven: Mask
    notes: pa.Array | None = None


def prove_rows(texts: pa.Array, rows: pa.Array) -> Evidence:
    """Tell the rows whose null cells were all written as null from the others."""
    return Evidence(unproven_rows(texts, rows))


def prove_nothing(texts: pa.Array, _rows: pa.Array) -> Evidence:
    """Leave every text to the strict reading: a member of unknown form may look like another."""
    return Evidence(np.ones(len(texts), np.bool_))


def unproven_rows(texts: pa.Array, rows: pa.Array) -> Mask:
    """Mark the rows of which it isn't proven that the null cells were written as null."""
    written = written_nulls(texts)
    # Per row the first is at most the second, so equal sums mean equal rows.
    if int(written.sum()) == _null_cells(rows):
        return np.zeros(len(rows), np.bool_)
    expected = np.zeros(len(rows), np.int64)
    for cells in _null_masks(rows):
        expected += cells.to_numpy(zero_copy_only=False)
    unproven: Mask = written != expected
    return unproven


def _null_cells(rows: pa.Array) -> int:
    """How many members, at any depth, the texts must name as null."""
    total = 0
    for member in rows.flatten():
        total += member.null_count - rows.null_count
        if pa.types.is_struct(member.type):
            total += _null_cells(member)
    return total


def _null_masks(rows: pa.Array) -> Iterator[pa.Array]:
    """Yield per member, at any depth, the rows whose text must name it as null."""
    present = rows.is_valid()
    for member in rows.flatten():
        yield pc.and_(member.is_null(), present)
        if pa.types.is_struct(member.type):
            yield from _null_masks(member)


def written_nulls(texts: pa.Array) -> Integers:
    """Return per text how many members it names as null, or fewer; never more."""
    data, offsets = text_bytes(texts)
    return np.bincount(rows_of(null_offsets(data), offsets), minlength=len(texts)).astype(np.int64)


def null_offsets(data: Bytes) -> Integers:
    """Return where members are named as null, ascending: the places of their names' last quotes."""
    at = pairs_of(data, _LETTER_N, _LETTER_U)
    at = at[at > 3] - 1
    at = np.where(data[at] == _SPACE, at - 1, at)
    at = at[(data[at] == _COLON) & (data[at - 1] == _QUOTE)]
    found: Integers = at[~NO_NAME_ENDS_IN[data[at - 2]]] - 1
    return found
