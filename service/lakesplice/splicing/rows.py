"""Chosen rows of a column; a flat one's are decoded from no more pages than hold them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.codec import decode_pages
from lakesplice.splicing.images import dictionary_bytes
from lakesplice.splicing.page_index import Int64s
from lakesplice.splicing.place import Place
from lakesplice.splicing.plan import runs, touched_pages
from lakesplice.splicing.reasons import Reason
from lakesplice.splicing.schemas import column_of
from lakesplice.splicing.source import SourceFile


def read_rows(source: SourceFile, name: str, rows: Int64s) -> pa.Array:
    """Return the column's values at `rows`, which ascend without repetition.

    In the type that the pages decode to. Blocks; checks checksums. Raises `CorruptFileError`,
    `UnsupportedError` for a chunk that isn't flat, `UsageError` for a column that isn't there.
    """
    column = column_of(source.footer, name, source.name)
    found, first = [], 0
    for at, group in enumerate(source.footer.row_groups):
        start, stop = (int(n) for n in np.searchsorted(rows, (first, first + group.num_rows)))
        if stop > start:
            found.append(_read(source, at, column, rows[start:stop] - first))
        first += group.num_rows
    if not found:
        return pa.nulls(0)
    return pa.concat_arrays(found)


def read_nested_rows(source: SourceFile, name: str, rows: Int64s) -> pa.Array:
    """Return a nested column's values at `rows`, which ascend without repetition.

    Decodes the column's chunks in every row group that holds one. Blocks; checks checksums.
    `CorruptFileError` if they can't be decoded.
    """
    found, first = [], 0
    try:
        file = pq.ParquetFile(
            source.source, page_checksum_verification=True, arrow_extensions_enabled=False
        )
        for at, group in enumerate(source.footer.row_groups):
            start, stop = (int(n) for n in np.searchsorted(rows, (first, first + group.num_rows)))
            if stop > start:
                # A name with a dot means a leaf too, so there may be more columns than one.
                column = file.read_row_group(at, [name], use_threads=False).column(name)
                found.append(column.combine_chunks().take(pa.array(rows[start:stop] - first)))
            first += group.num_rows
    except (pa.ArrowException, OSError) as error:
        place = Place(source.name, f"column {name}")
        raise place.corrupt("its pages cannot be decoded", cause=str(error)) from error
    return pa.concat_arrays(found) if found else pa.nulls(0)


def read_column(source: SourceFile, row_group: int, column: int) -> pa.Array:
    """Return all values of a flat chunk, in the type that its pages decode to."""
    return _read(source, row_group, column, None)


def _read(source: SourceFile, row_group: int, column: int, rows: Int64s | None) -> pa.Array:
    chunk, place = source.chunk(row_group, column), source.place(row_group, column)
    reason = source.refusal(row_group, column)
    if reason not in (None, Reason.NO_PAGE_INDEX):
        raise UnsupportedError(
            "a column chunk can't be read page by page",
            path=source.name,
            place=place.part,
            reason=str(reason),
        )
    head = dictionary_bytes(source, row_group, column)
    index = source.offset_index(row_group, column)
    if index is None or rows is None:
        buffers = [source.read(chunk.start + head, chunk.compressed_size - head)]
        count, at = chunk.num_values, rows
    else:
        pages = touched_pages(index.first_rows, rows)
        buffers = []
        for first, last in runs(pages):
            offset = int(index.offsets[first])
            buffers.append(source.read(offset, int(index.ends[last]) - offset))
        counts = index.rows(chunk.num_values)[pages]
        page = np.searchsorted(index.first_rows[pages], rows, side="right") - 1
        at = rows - index.first_rows[pages][page] + (np.cumsum(counts) - counts)[page]
        count = int(counts.sum())
    values = decode_pages(
        source.leaf(column),
        chunk,
        source.read(chunk.start, head) if head else None,
        buffers,
        count,
        source.footer.created_by,
        place,
    )
    return values if at is None else values.take(pa.array(at))
