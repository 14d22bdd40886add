"""Checks a new file before anyone relies on it.

`verify_written` needs only what the assembler knows: sizes must add up, and chunks must not have
gaps. Opening the file, before it gets its name, shows that the footer can be read. `verify_edits`
opens it, verifies checksums and decodes pages of edited rows.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.metadata.schemas import refuse_doubles
from lakesplice.splicing.output.assemble import AssembledFile
from lakesplice.splicing.pages.new_values import bits, stored
from lakesplice.splicing.pages.plan import rows_in_pages
from lakesplice.splicing.pages.rows import read_nested_rows, read_rows
from lakesplice.splicing.structures.checksums import check_chunks, is_ours
from lakesplice.splicing.structures.footer import MAGIC
from lakesplice.splicing.structures.source import SourceFile

_DECODED_PAGES_MAX = 3


def verify_written(written: AssembledFile, rows: int, name: str) -> None:
    """Raise `CorruptFileError` unless the footer describes what was written, with `rows` rows."""
    file_part, footer = FilePart(name, "footer of the new file"), written.footer
    groups = footer.row_groups
    if footer.num_rows != rows or any(len(g.chunks) != len(footer.leaves) for g in groups):
        raise file_part.corrupt(
            "it doesn't describe the rows that were written; this is a bug in Lakesplice"
        )
    at = len(MAGIC)
    for group in groups:
        for chunk, leaf in zip(group.chunks, footer.leaves, strict=True):
            if leaf.flat and chunk.num_values != group.num_rows:
                raise file_part.corrupt(
                    "a column has another number of values than rows; this is a bug in Lakesplice",
                    column=leaf.name,
                    values=chunk.num_values,
                )
            if chunk.compressed_size and chunk.start != at:
                raise file_part.corrupt(
                    "its chunks don't touch; this is a bug in Lakesplice", offset=at
                )
            at += chunk.compressed_size
    if at != written.pages_end:
        raise file_part.corrupt(
            "its chunks don't end where the pages do; this is a bug in Lakesplice"
        )


def verify_edits(source: pa.NativeFile, name: str, edits: Edits) -> None:
    """Raise `CorruptFileError` unless the file `name` holds the edits.

    Reads the footer, the indexes of the edited columns and the pages of the edited rows. Blocks. In
    our own files all pages have checksums; those of the edited chunks are verified, and at most
    _DECODED_PAGES_MAX pages of each chunk are decoded, since new pages were checked when they were
    encoded. Raises `UsageError` if several columns have one name.
    """
    file = SourceFile(source, name)
    refuse_doubles(file.footer, edits.columns, name)
    flat = {leaf.path[0]: leaf.column for leaf in file.footer.leaves if leaf.flat}
    edited = {column: edit for column, edit in edits.columns.items() if len(edit.rows)}
    if is_ours(file):
        _verify_checksums(
            file, {flat[column]: edit for column, edit in edited.items() if column in flat}
        )
    for column, edit in edited.items():
        if column not in flat:
            _verify(file, column, edit, read_nested_rows(file, column, edit.rows))
            continue
        some = _some(file, flat[column], edit) if is_ours(file) else edit
        _verify(file, column, some, read_rows(file, column, some.rows))


def _verify_checksums(file: SourceFile, edits: Mapping[int, ColumnEdit]) -> None:
    for row_group, first, last in file.row_ranges():
        columns = [column for column, edit in edits.items() if len(edit.within(first, last).rows)]
        check_chunks(file, [(row_group, column) for column in columns])


def _some(file: SourceFile, column: int, edit: ColumnEdit) -> ColumnEdit:
    """The edits of some touched pages of each chunk, the first and the last included."""
    chosen = []
    for row_group, first, last in file.row_ranges():
        start, stop = np.searchsorted(edit.rows, (first, last)).tolist()
        index = file.offset_index(row_group, column)
        if index is None or start == stop:
            chosen.append(np.arange(start, stop))
            continue
        counts = rows_in_pages(index.first_rows, edit.rows[start:stop] - first)
        touched = np.flatnonzero(counts)
        few = min(len(touched), _DECODED_PAGES_MAX)
        decoded = np.zeros(len(counts), np.bool_)
        decoded[touched[np.linspace(0, len(touched) - 1, few).astype(np.int64)]] = True
        chosen.append(np.flatnonzero(np.repeat(decoded, counts)) + start)
    at = np.concatenate(chosen)
    return ColumnEdit(edit.rows[at], edit.values.take(pa.array(at)))


def _verify(file: SourceFile, column: str, edit: ColumnEdit, found: pa.Array) -> None:
    if not bits(found).equals(bits(stored(edit.values, found.type))):
        raise CorruptFileError(
            "a spliced file doesn't contain the intended values; check the disk",
            path=file.name,
            column=column,
        )
