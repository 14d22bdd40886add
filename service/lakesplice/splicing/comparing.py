"""Compares edits with the values that a file already has, and keeps only the new values.

    bounds of the pages  ->  some pages  ->  all pages that values are given for

The cheapest test comes first. A page of one value, or of nulls only, isn't read. Of the others a
few are decoded: if each of them gets a new value, the edits of the rest are taken as new without a
comparison. Text with a dictionary is compared by dictionary entries; only the dictionary is
decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError, UnsupportedError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.planning.rows.edits import ColumnEdit, ComparedEdits, Edits
from lakesplice.splicing.columns.constant_pages import constant_pages
from lakesplice.splicing.metadata.schemas import refuse_doubles
from lakesplice.splicing.options import SPAN_BYTES, Options
from lakesplice.splicing.pages.new_values import differing, stored
from lakesplice.splicing.pages.plan import rows_in_pages
from lakesplice.splicing.pages.rows import read_chunk_rows, read_nested_rows
from lakesplice.splicing.structures.enums import PhysicalType
from lakesplice.splicing.structures.source import SourceFile

# The number of a chunk's pages that are compared first; if there are at most twice as many, all are
# compared.
_PAGES_FIRST = 8
# Of all threads together; a chunk that is decoded in few spans takes half the time.
_DECODED_BYTES = 16 * 1024 * 1024
_EXACT_WITHIN = frozenset(
    (PhysicalType.BOOLEAN, PhysicalType.INT32, PhysicalType.INT64, PhysicalType.BYTE_ARRAY)
)
# Raised for pages that can't be read, and for values that don't fit the column's type or that Arrow
# can't compare.
_INCOMPARABLE = (
    CorruptFileError,
    UnsupportedError,
    pa.ArrowInvalid,
    pa.ArrowTypeError,
    pa.ArrowNotImplementedError,
)


@dataclass(frozen=True, eq=False, slots=True)
class _ChunkEdit:
    """The edit of one chunk; its rows count from the row group's first row. About `span_bytes` of
    the chunk are decoded at a time.
    """

    row_group: int
    column: int
    edit: ColumnEdit
    span_bytes: int


@dataclass(frozen=True, eq=False, slots=True)
class _NewValues:
    """Which values of a chunk's edit are new, and how many of the edited pages get no new value."""

    new: Mask
    pages_equal: int = 0


def compared(source: SourceFile, edits: Edits, options: Options) -> ComparedEdits:
    """Return the edits without values that the file already has (bit by bit).

    A column without new values is no longer edited; `rows` and the counts are unchanged. These
    edits are returned unchanged: columns in `Edits.known_new`, what can't be compared (a damaged
    page included: applying the edits will report it), and all edits if values are to be erased.
    Blocks; `options.threads` threads read pages and verify their checksums. Raises `UsageError` if
    columns share a name.
    """
    refuse_doubles(source.footer, edits.columns, source.name)
    if options.erase:
        return ComparedEdits(edits)
    columns, names = dict(edits.columns), _wanted(source, edits)
    threads = max(options.threads, 1)
    span_bytes = max(_DECODED_BYTES // threads, SPAN_BYTES)
    parts = [
        _ChunkEdit(row_group, column, edit, span_bytes)
        for name, column in names.items()
        for row_group, first, last in source.row_ranges()
        if len((edit := columns[name].within(first, last)).rows)
    ]
    try:
        source.read_offset_indexes([(part.row_group, part.column) for part in parts])
    except _INCOMPARABLE:
        return ComparedEdits(edits)
    with ThreadPoolExecutor(threads, thread_name_prefix="compare") as pool:
        verdicts = list(pool.map(lambda part: _compared(source, part), parts))
    for name, column in names.items():
        marks = [v.new for part, v in zip(parts, verdicts, strict=True) if part.column == column]
        columns[name] = _only(columns[name], marks)
    equal = _equal_nested(source, edits)
    left = {n: edit for n, edit in columns.items() if len(edit.rows) and n not in equal}
    return ComparedEdits(replace(edits, columns=left), sum(v.pages_equal for v in verdicts))


def _wanted(source: SourceFile, edits: Edits) -> dict[str, int]:
    """The flat columns to compare: name to number.

    Not INT96: it holds times that the type it is decoded to can't represent.
    """
    leaves = (leaf for leaf in source.footer.leaves if leaf.flat)
    found = {leaf.path[0]: leaf for leaf in leaves if leaf.physical != PhysicalType.INT96}
    return {name: found[name].column for name in _comparable(source, edits) if name in found}


def _comparable(source: SourceFile, edits: Edits) -> list[str]:
    """The columns whose edited rows all exist; applying the edits refuses the others."""
    last = source.footer.num_rows - 1
    return [
        name
        for name, edit in edits.columns.items()
        if name not in edits.known_new and len(edit.rows)
        if edit.rows[0] >= 0 and edit.rows[-1] <= last
    ]


def _equal_nested(source: SourceFile, edits: Edits) -> list[str]:
    """The nested columns without a new value. Columns with floats are left out, since 0.0 would
    equal -0.0.
    """
    leaves = [leaf for leaf in source.footer.leaves if not leaf.flat]
    nested = {leaf.path[0] for leaf in leaves}
    nested -= {leaf.path[0] for leaf in leaves if leaf.physical not in _EXACT_WITHIN}
    equal = []
    for name in _comparable(source, edits):
        if name in nested:
            edit = edits.columns[name]
            try:
                held = read_nested_rows(source, name, edit.rows)
                equal += [name] if held.equals(stored(edit.values, held.type)) else []
            except _INCOMPARABLE:
                continue
    return equal


def _compared(source: SourceFile, part: _ChunkEdit) -> _NewValues:
    try:
        return _verdict(source, part)
    except _INCOMPARABLE:
        return _NewValues(np.ones(len(part.edit.rows), np.bool_))


def _verdict(source: SourceFile, part: _ChunkEdit) -> _NewValues:
    every, index = np.arange(len(part.edit.rows)), source.offset_index(part.row_group, part.column)
    if index is None:
        return _NewValues(_new_at(source, part, every))
    given = rows_in_pages(index.first_rows, part.edit.rows)
    page_of = np.repeat(np.arange(len(given)), given)
    constants = constant_pages(source, part.row_group, part.column)
    decided = np.zeros(len(every), np.bool_) if constants is None else constants.known[page_of]
    new = np.ones(len(every), np.bool_)
    if constants is not None and decided.any():
        held = constants.values.take(pa.array(page_of[decided]))
        new[decided] = _differing(part, every[decided], held)
    if not decided.all():
        new[~decided] = _new_by_pages(source, part, every[~decided], page_of[~decided])
    left = rows_in_pages(index.first_rows, part.edit.rows[new])
    return _NewValues(new, int(np.count_nonzero((given > 0) & (left == 0))))


def _new_by_pages(source: SourceFile, part: _ChunkEdit, at: Integers, page_of: Integers) -> Mask:
    """Mark which of the edit's values at `at` are new; `page_of` is the page of each.

    If each page that is compared first gets a new value, all values of the other pages count as
    new.
    """
    pages = page_of[np.flatnonzero(np.diff(page_of, prepend=-1))]
    if len(pages) <= 2 * _PAGES_FIRST:
        return _new_at(source, part, at)
    is_first = np.zeros(pages[-1] + 1, np.bool_)
    # In pairs of neighbours, since each run of neighbouring pages costs a read.
    pairs = np.linspace(0, len(pages) - 2, _PAGES_FIRST // 2).astype(np.int64)
    is_first[pages[pairs]] = is_first[pages[pairs + 1]] = True
    chosen, new = is_first[page_of], np.ones(len(at), np.bool_)
    new[chosen] = _new_at(source, part, at[chosen])
    if len(np.unique(page_of[chosen & new])) == _PAGES_FIRST:
        return new
    # All pages are read, the first ones again: without them the runs of neighbours would be
    # shorter.
    return _new_at(source, part, at)


def _new_at(source: SourceFile, part: _ChunkEdit, at: Integers) -> Mask:
    """Mark which of the edit's values at `at` are new."""
    chunk, rows = (part.row_group, part.column), part.edit.rows[at]
    held = read_chunk_rows(source, *chunk, rows, part.span_bytes)
    return _differing(part, at, held)


def _differing(part: _ChunkEdit, at: Integers, held: pa.Array) -> Mask:
    every = len(at) == len(part.edit.rows)
    given = part.edit.values if every else part.edit.values.take(pa.array(at))
    return differing(held, stored(given, held.type))


def _only(edit: ColumnEdit, marks: Sequence[Mask]) -> ColumnEdit:
    """Keep the marked values; `marks` has one array for each row group, in order."""
    new = np.concatenate(marks) if marks else np.zeros(0, np.bool_)
    if new.all():
        return edit
    return ColumnEdit(edit.rows[new], edit.values.filter(pa.array(new)))
