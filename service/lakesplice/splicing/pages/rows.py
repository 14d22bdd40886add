"""Reads chosen rows of a column; for a flat column only the pages that hold them are decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError
from lakesplice.model.arrays import Integers
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.metadata.schemas import column_of
from lakesplice.splicing.options import SPAN_BYTES
from lakesplice.splicing.output.images import dictionary_bytes
from lakesplice.splicing.pages.page_decoding import decode_pages, read_type
from lakesplice.splicing.pages.page_runs import read_spans
from lakesplice.splicing.pages.plan import rows_in_pages, touched_pages
from lakesplice.splicing.pages.streaming import ChunkValues
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile


def read_rows(source: SourceFile, name: str, rows: Integers) -> pa.Array:
    """Return the column's values at `rows`, which ascend without repetition.

    The values have the type to which the pages decode. Blocks; verifies checksums. Raises
    `CorruptFileError`, `UnsupportedError` for a chunk that isn't flat, and `UsageError` for a
    column that the file lacks.
    """
    column = column_of(source.footer, name, source.name)
    found, first = [], 0
    for at, group in enumerate(source.footer.row_groups):
        start, stop = (int(n) for n in np.searchsorted(rows, (first, first + group.num_rows)))
        if stop > start:
            found.append(read_chunk_rows(source, at, column, rows[start:stop] - first))
        first += group.num_rows
    if not found:
        return pa.nulls(0)
    return pa.concat_arrays(found)


def read_nested_rows(source: SourceFile, name: str, rows: Integers) -> pa.Array:
    """Return a nested column's values at `rows`, which ascend without repetition.

    Decodes the column's chunks in every row group that has one of the rows. Blocks; verifies
    checksums. Raises `CorruptFileError` if they can't be decoded.
    """
    found, first = [], 0
    with decoding(FilePart(source.name, f"column {name}")):
        file = pq.ParquetFile(
            source.source, page_checksum_verification=True, arrow_extensions_enabled=False
        )
        for at, group in enumerate(source.footer.row_groups):
            start, stop = (int(n) for n in np.searchsorted(rows, (first, first + group.num_rows)))
            if stop > start:
                # A name with a dot may also be the path of a leaf, so several columns may match.
                column = file.read_row_group(at, [name], use_threads=False).column(name)
                found.append(column.combine_chunks().take(pa.array(rows[start:stop] - first)))
            first += group.num_rows
    return pa.concat_arrays(found) if found else pa.nulls(0)


def read_column(source: SourceFile, row_group: int, column: int) -> pa.Array:
    """Return all values of a flat chunk, in the type to which its pages decode."""
    _check_readable(source, row_group, column)
    count = source.chunk(row_group, column).num_values
    if not count:
        leaf, created_by = source.leaf(column), source.footer.created_by
        return pa.nulls(0, read_type(leaf, created_by, source.file_part(row_group, column)))
    return ChunkValues(source, row_group, column).next(count)


def read_chunk_rows(
    source: SourceFile, row_group: int, column: int, rows: Integers, span_bytes: int = SPAN_BYTES
) -> pa.Array:
    """Return a chunk's values at `rows` (at least one), which count from the row group's first row.

    Some `span_bytes` are decoded at a time. Otherwise as `read_rows`.
    """
    _check_readable(source, row_group, column)
    index = source.offset_index(row_group, column)
    found = (
        _streamed(source, row_group, column, rows)
        if index is None
        else _of_pages(source, row_group, column, index, rows, span_bytes)
    )
    return pa.concat_arrays(list(found))


def _check_readable(source: SourceFile, row_group: int, column: int) -> None:
    reason = source.refusal(row_group, column)
    if reason not in (None, Reason.NO_PAGE_INDEX):
        raise UnsupportedError(
            "a column chunk can't be read page by page",
            path=source.name,
            place=source.file_part(row_group, column).part,
            reason=str(reason),
        )


def _streamed(
    source: SourceFile, row_group: int, column: int, rows: Integers
) -> Iterator[pa.Array]:
    values = ChunkValues(source, row_group, column)
    num_rows = source.chunk(row_group, column).num_values
    step = max(SPAN_BYTES // values.width, 1)
    for first in range(0, num_rows, step):
        part = values.next(min(step, num_rows - first))
        start, stop = (int(n) for n in np.searchsorted(rows, (first, first + step)))
        yield part.take(pa.array(rows[start:stop] - first))


def _of_pages(
    source: SourceFile,
    row_group: int,
    column: int,
    index: OffsetIndex,
    rows: Integers,
    span_bytes: int,
) -> Iterator[pa.Array]:
    chunk, file_part = source.chunk(row_group, column), source.file_part(row_group, column)
    head = dictionary_bytes(source, row_group, column)
    dictionary = source.read(chunk.start, head) if head else None
    counts = index.rows(chunk.num_values)
    pages = touched_pages(index.first_rows, rows)
    for span in read_spans(source, row_group, column, index, pages, span_bytes):
        firsts, held = index.first_rows[span.numbers], counts[span.numbers]
        start, stop = (int(n) for n in np.searchsorted(rows, (firsts[0], firsts[-1] + held[-1])))
        mine = rows[start:stop]
        moved = np.cumsum(held) - held - firsts
        at = mine + np.repeat(moved, rows_in_pages(firsts, mine))
        values = decode_pages(
            leaf=source.leaf(column),
            chunk=chunk,
            dictionary=dictionary,
            pages=span.buffers,
            rows=int(held.sum()),
            created_by=source.footer.created_by,
            file_part=file_part,
            as_dictionary=span.as_dictionary,
        ).take(pa.array(at))
        yield values.dictionary_decode() if span.as_dictionary else values
