"""Makes column chunks that no source file has: those of a new column, or of new rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.errors import UnsupportedError
from lakesplice.model.arrays import Integers
from lakesplice.splicing.columns.rewriting import encoded_chunk
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.options import SpliceCounts
from lakesplice.splicing.output.images import ChunkImage, dictionary_bytes
from lakesplice.splicing.pages.page_encoding import PageStyle, encode_pages
from lakesplice.splicing.structures.enums import Codec, Encoding
from lakesplice.splicing.structures.footer import Chunk, Leaf
from lakesplice.splicing.structures.page_headers import PageHeader, read_page
from lakesplice.splicing.structures.source import SourceFile

ROWS_PER_PAGE = 4096


def leaf_of(field: pa.Field, file_part: FilePart) -> Leaf:
    """Return the leaf as which pyarrow writes a flat field; raises `UnsupportedError` for a nested
    one.
    """
    if pa.types.is_nested(field.type) or pa.types.is_null(field.type):
        raise UnsupportedError(
            "only a flat column can be added; rewrite the file",
            path=file_part.path,
            column=field.name,
            reason=str(Reason.NESTED),
        )
    buffer = pa.BufferOutputStream()
    schema = pa.schema([field])
    pq.ParquetWriter(
        buffer, schema, version="2.6", store_decimal_as_integer=True, store_schema=False
    ).close()
    return SourceFile(pa.BufferReader(buffer.getvalue()), file_part.path).leaf(0)


def fresh_chunk(
    leaf: Leaf,
    arrays: Sequence[pa.Array],
    style: PageStyle,
    file_part: FilePart,
    encoding: int | None = None,
) -> ChunkImage:
    """Return a chunk of one data page for each array; without an `encoding` it has a dictionary."""
    if not sum(map(len, arrays)):
        return _empty_chunk(leaf, style)
    pages = encode_pages(leaf, arrays, encoding, style, file_part)
    if pages is None:
        raise UnsupportedError(
            "a column's type can't be written in the file's layout; rewrite the file",
            path=file_part.path,
            place=file_part.part,
            reason=str(Reason.OTHER_LAYOUT),
        )
    rows = np.array([len(array) for array in arrays], np.int64)
    chunk = replace(pages.chunk, path=leaf.path, codec=style.codec)
    return encoded_chunk(_bare(chunk), pages, [pages.pages], np.cumsum(rows) - rows)


def _empty_chunk(leaf: Leaf, style: PageStyle) -> ChunkImage:
    chunk = Chunk(
        physical=leaf.physical,
        path=leaf.path,
        codec=style.codec,
        encodings=(Encoding.RLE,),
        num_values=0,
        uncompressed_size=0,
        compressed_size=0,
        data_page_offset=0,
    )
    return ChunkImage(
        chunk=chunk,
        pieces=(),
        dictionary_bytes=0,
        index=None,
        column_index=None,
        bloom=None,
        counts=SpliceCounts(),
    )


def pages_like(source: SourceFile, row_group: int) -> Integers:
    """Return the first row of each page such that the pages line up with those of the row group's
    first column.
    """
    rows = source.footer.row_groups[row_group].num_rows
    index = source.page_locations(row_group, 0) if source.footer.leaves else None
    if index is not None and len(index) and not source.leaf(0).max_repetition:
        return np.unique(index.first_rows[index.first_rows < max(rows, 1)])
    return np.arange(0, max(rows, 1), ROWS_PER_PAGE)


def cut(values: pa.Array, first_rows: Integers) -> list[pa.Array]:
    """Return the values page by page."""
    ends = [*first_rows[1:].tolist(), len(values)]
    return [
        values.slice(first, end - first)
        for first, end in zip(first_rows.tolist(), ends, strict=True)
    ]


def style_like(source: SourceFile, column: int) -> tuple[PageStyle, int | None]:
    """Return how the first chunk of a column is written: its style, and its encoding if it has no
    dictionary.
    """
    for row_group in range(len(source.footer.row_groups)):
        chunk = source.chunk(row_group, column)
        header = next(_data_headers(source, row_group, column), None)
        if header is None or chunk.codec in (Codec.LZ4, Codec.LZO):
            continue
        has_dictionary = dictionary_bytes(source, row_group, column) > 0
        return PageStyle.of(chunk, header), None if has_dictionary else header.encoding
    return PageStyle(Codec.ZSTD, v2=False, checksums=True), None


def _data_headers(source: SourceFile, row_group: int, column: int) -> Iterator[PageHeader]:
    chunk, index = source.chunk(row_group, column), source.page_locations(row_group, column)
    file_part = source.file_part(row_group, column)
    if index is not None and len(index):
        yield read_page(source.source, int(index.offsets[0]), chunk.end, file_part).header
        return
    yield from (page.header for page in source.pages(row_group, column) if page.header.is_data)


def _bare(chunk: Chunk) -> Chunk:
    """The chunk's description without the offsets of its source file."""
    return replace(chunk, offset_index=None, column_index=None, bloom_offset=None)
