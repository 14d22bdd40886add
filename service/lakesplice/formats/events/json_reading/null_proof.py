"""Proves that no field of a row is absent: every cell that was read as null was written as null.

The JSON reader returns null both for an absent field and for a null one. A field that is written as
null appears in the text as `"name":null`. So for each row the null cells that were read and the
nulls that are written are counted. The second number never exceeds the first, and if they are
equal, no field is absent.

A written null is counted at its `:`, preceded by a quote and followed by `nu`. This quote must end
a name. It could also be inside a string, or open a string that starts with `:nu`. The byte before
it excludes this: it isn't a backslash, nor a byte that may precede an opening quote. A name that
ends in one of those bytes is not counted; its row then only goes through the slow check.
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
class NullProof:
    """The result of a proof: a mask of `unproven` rows, and `notes`, further findings for the
    format, one per row and null where unproven. `notes` is None if the format needs none.
    """

    unproven: Mask
    notes: pa.Array | None = None


def prove_rows(texts: pa.Array, rows: pa.Array) -> NullProof:
    """Prove for each row that all its null cells were written as null."""
    return NullProof(unproven_rows(texts, rows))


def prove_nothing(texts: pa.Array, _rows: pa.Array) -> NullProof:
    """Prove nothing, so that every text is read strictly: a member of unknown form may look like
    another.
    """
    return NullProof(np.ones(len(texts), np.bool_))


def unproven_rows(texts: pa.Array, rows: pa.Array) -> Mask:
    """Mark the rows for which it isn't proven that all null cells were written as null."""
    written = written_nulls(texts)
    # In no row does the first number exceed the second, so equal sums mean that all rows are equal.
    if int(written.sum()) == _null_cells(rows):
        return np.zeros(len(rows), np.bool_)
    expected = np.zeros(len(rows), np.int64)
    for cells in _null_masks(rows):
        expected += cells.to_numpy(zero_copy_only=False)
    unproven: Mask = written != expected
    return unproven


def _null_cells(rows: pa.Array) -> int:
    """How many members, at any depth, the texts must have as null."""
    total = 0
    for member in rows.flatten():
        total += member.null_count - rows.null_count
        if pa.types.is_struct(member.type):
            total += _null_cells(member)
    return total


def _null_masks(rows: pa.Array) -> Iterator[pa.Array]:
    """Yield for each member, at any depth, a mask of the rows whose text must have it as null."""
    present = rows.is_valid()
    for member in rows.flatten():
        yield pc.and_(member.is_null(), present)
        if pa.types.is_struct(member.type):
            yield from _null_masks(member)


def written_nulls(texts: pa.Array) -> Integers:
    """Return for each text the number of members that are written as null; it may be too low, never
    too high.
    """
    data, offsets = text_bytes(texts)
    return np.bincount(rows_of(null_offsets(data), offsets), minlength=len(texts)).astype(np.int64)


def null_offsets(data: Bytes) -> Integers:
    """Return the offsets of the closing quotes of names whose value is written as null,
    ascending.
    """
    at = pairs_of(data, _LETTER_N, _LETTER_U)
    at = at[at > 3] - 1
    at = np.where(data[at] == _SPACE, at - 1, at)
    at = at[(data[at] == _COLON) & (data[at - 1] == _QUOTE)]
    found: Integers = at[~NO_NAME_ENDS_IN[data[at - 2]]] - 1
    return found
