"""A flat column chunk encoded whole: its pages keep their rows, its dictionary is made anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakesplice.planning.edits import ColumnEdit
from lakesplice.splicing.codec import EncodedPages, Style, decode_pages, decoded, encode_pages
from lakesplice.splicing.dictionaries import with_entries_at_first
from lakesplice.splicing.footer import Chunk
from lakesplice.splicing.images import ChunkImage, dictionary_bytes
from lakesplice.splicing.laying import bits, laid_over, refused, stored
from lakesplice.splicing.options import Tally
from lakesplice.splicing.page_headers import PageHeader, read_page
from lakesplice.splicing.page_index import Int64s, OffsetIndex
from lakesplice.splicing.reasons import Reason
from lakesplice.splicing.source import SourceFile


def rewritten_chunk(
    source: SourceFile, row_group: int, column: int, edit: ColumnEdit, reason: Reason
) -> ChunkImage:
    """Return a flat chunk with `edit` laid over, all of it encoded anew because of `reason`.

    Blocks. Raises `CorruptFileError` where it can't be decoded, `UnsupportedError` where it can't
    be written again in the chunk's layout.
    """
    chunk, leaf = source.chunk(row_group, column), source.leaf(column)
    place = source.place(row_group, column)
    first_rows, header = _pages(source, row_group, column)
    head = dictionary_bytes(source, row_group, column)
    values = decode_pages(
        leaf,
        chunk,
        source.read(chunk.start, head) if head else None,
        [source.read(chunk.start + head, chunk.compressed_size - head)],
        chunk.num_values,
        source.footer.created_by,
        place,
    )
    new = laid_over(values, edit.rows, stored(edit.values, values.type))
    rows = np.diff(first_rows, append=chunk.num_values)
    arrays = [
        new.slice(first, count)
        for first, count in zip(first_rows.tolist(), rows.tolist(), strict=True)
    ]
    encoding = None if head else header.encoding
    pages = encode_pages(leaf, arrays, encoding, Style.of(chunk, header), place)
    if pages is None:
        raise refused(source, row_group, column, Reason.OTHER_LAYOUT)
    if not bits(decoded(leaf, chunk, pages, len(new), place)).equals(bits(new)):
        raise place.corrupt("new pages don't hold what was meant; this is a defect")
    image = encoded_chunk(chunk, pages, first_rows)
    tally = replace(
        image.tally,
        wholes={leaf.name: reason},
        bloom_filters_dropped=int(bool(chunk.bloom_offset)),
    )
    return replace(image, tally=tally)


def encoded_chunk(chunk: Chunk, pages: EncodedPages, first_rows: Int64s) -> ChunkImage:
    """Return the image of a chunk made of new pages only; what `chunk` says beside is kept."""
    dictionary = pages.dictionary
    head = 0 if dictionary is None else dictionary.size
    offsets = head + np.cumsum(pages.sizes) - pages.sizes
    new, index = pages.chunk, pages.column_index
    return ChunkImage(
        chunk=replace(
            with_entries_at_first(chunk, None).valueless(),
            encodings=new.encodings,
            encoding_stats=new.encoding_stats,
            num_values=new.num_values,
            compressed_size=head + pages.pages.size,
            uncompressed_size=pages.dictionary_uncompressed + pages.uncompressed,
            statistics=pages.statistics.to_struct(),
        ),
        pieces=(pages.pages,) if dictionary is None else (dictionary, pages.pages),
        dictionary_bytes=head,
        index=OffsetIndex(offsets, pages.sizes, first_rows),
        column_index=None if index is None else pa.py_buffer(index.encode()),
        bloom=None,
        tally=Tally(
            pages_encoded=len(pages.sizes),
            bytes_encoded=head + pages.pages.size,
        ),
    )


def _pages(source: SourceFile, row_group: int, column: int) -> tuple[Int64s, PageHeader]:
    """The first rows of a chunk's pages, and the header of the first data page."""
    chunk, place = source.chunk(row_group, column), source.place(row_group, column)
    index = source.offset_index(row_group, column)
    if index is not None:
        page = read_page(source.source, int(index.offsets[0]), chunk.end, place)
        return index.first_rows, page.header
    headers = [page.header for page in source.pages(row_group, column) if page.header.is_data]
    rows = np.array([header.num_values for header in headers if header.num_values], np.int64)
    if not headers or int(rows.sum()) != chunk.num_values:
        raise place.corrupt("its pages hold another number of values", values=chunk.num_values)
    return np.cumsum(rows) - rows, headers[0]
