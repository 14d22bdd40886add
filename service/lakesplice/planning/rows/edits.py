"""Edits: the new values of a base file's rows, column by column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.arrays import Integers

_WORD_BYTES = 8


@dataclass(frozen=True)
class ColumnEdit:
    """New values of one column: `values[i]` is for row `rows[i]`; rows ascend and don't repeat."""

    rows: Integers
    values: pa.Array

    def within(self, first: int, last: int) -> ColumnEdit:
        """Return the part for rows [first, last), with rows counted from `first`."""
        start, stop = (int(at) for at in np.searchsorted(self.rows, (first, last)))
        return ColumnEdit(self.rows[start:stop] - first, self.values.slice(start, stop - start))


@dataclass(frozen=True)
class Edits:
    """All edits of one file, or of a range of its rows.

    rows        the rows that get a newer state, ascending
    columns     for each edited column its new values. A system column is edited in all rows; in a
                table fed by hand only if its value may change. A user column is edited only in rows
                where it changed, a key column never
    applied     the number of changes above their row's position, also of those that a later change
                overwrites
    stale       the number of changes at or below their row's position, and of repetitions
    unlinked    how many of `applied` were computed from another state than the one that they are
                applied to: a change before them is missing or late
    known_new   columns that are known to get other values than they have: comparing them would be
                no use
    """

    rows: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    columns: Mapping[str, ColumnEdit] = field(default_factory=dict)
    applied: int = 0
    stale: int = 0
    unlinked: int = 0
    known_new: frozenset[str] = frozenset()

    def within(self, first: int, last: int) -> Edits:
        """Return the edits of rows [first, last), with rows counted from `first`; the counts stay
        those of the whole file.
        """
        start, stop = (int(at) for at in np.searchsorted(self.rows, (first, last)))
        parts = ((name, edit.within(first, last)) for name, edit in self.columns.items())
        columns = {name: edit for name, edit in parts if len(edit.rows)}
        return replace(self, rows=self.rows[start:stop] - first, columns=columns)


@dataclass(frozen=True)
class ComparedEdits:
    """Edits without values that the file already has; `pages_equal` pages had only such values."""

    edits: Edits
    pages_equal: int = 0


def united_edits(one: Edits, other: Edits) -> Edits:
    """Return the edits of both, which are for different rows."""
    names = dict.fromkeys((*one.columns, *other.columns))
    columns = {}
    for name in names:
        parts = [edits.columns[name] for edits in (one, other) if name in edits.columns]
        rows = np.concatenate([part.rows for part in parts])
        order = np.argsort(rows)
        values = pa.concat_arrays([part.values for part in parts]).take(pa.array(order))
        columns[name] = ColumnEdit(rows[order], values)
    return Edits(
        np.sort(np.concatenate((one.rows, other.rows))),
        columns,
        one.applied + other.applied,
        one.stale + other.stale,
        one.unlinked + other.unlinked,
        one.known_new & other.known_new,
    )


def apply_edits(table: pa.Table, edits: Edits) -> pa.Table:
    """Return `table` with the edits of the columns that it has.

    Edited rows are counted from the table's first row.
    """
    for at, name in enumerate(table.column_names):
        edit = edits.columns.get(name)
        if edit is not None and len(edit.rows):
            column = _replaced(table.column(at), edit)
            table = table.set_column(at, table.field(at), column)
    return table


def _replaced(column: pa.ChunkedArray, edit: ColumnEdit) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        return _taken_from_both(column, edit)
    if pa.types.is_boolean(kind):
        # Most rows aren't deleted, neither before nor after a change.
        if _all_false(column) and _all_false(edit.values):
            return column
    elif pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return _overwritten(column, edit)
    return pc.replace_with_mask(column, _mask(len(column), edit.rows), edit.values)


def _all_false(values: pa.Array | pa.ChunkedArray) -> bool:
    return not values.null_count and pc.any(values).as_py() is False


def _taken_from_both(column: pa.ChunkedArray, edit: ColumnEdit) -> pa.ChunkedArray:
    """Take the values from both arrays: two to three times faster than a mask for values of varying
    length.
    """
    source = np.arange(len(column))
    source[edit.rows] = len(column) + np.arange(len(edit.rows))
    return pa.chunked_array([*column.chunks, edit.values]).take(pa.array(source))


def _overwritten(column: pa.ChunkedArray, edit: ColumnEdit) -> pa.ChunkedArray:
    """Overwrite values of one width in a copy: four to seven times faster than a mask."""
    whole = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    # Arrow's allocator has the memory of the row group before; NumPy's returns it to the system.
    buffer = pa.allocate_buffer(len(whole) * whole.type.bit_width // 8)
    found = _words(whole)
    values = np.frombuffer(buffer, found.dtype)
    values[:] = found
    values[edit.rows] = _words(edit.values)
    valid = None
    if whole.null_count or edit.values.null_count:
        marks = whole.is_valid().to_numpy(zero_copy_only=False)
        marks[edit.rows] = edit.values.is_valid().to_numpy(zero_copy_only=False)
        valid = pa.py_buffer(np.packbits(marks, bitorder="little"))
    array = pa.Array.from_buffers(column.type, len(whole), [valid, buffer])
    return pa.chunked_array([array])


def _words(array: pa.Array) -> np.ndarray:
    """The values of one width as bytes, those under nulls too."""
    width = array.type.bit_width // 8
    words = np.dtype(f"u{width}") if width <= _WORD_BYTES else np.dtype(f"V{width}")
    return np.frombuffer(array.buffers()[1], words, len(array), array.offset * width)


def _mask(size: int, rows: Integers) -> pa.Array:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return pa.array(mask)
