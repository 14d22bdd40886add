"""Encodes values to pages, through Parquet files of one column that exist only in memory.

    one array a page  ->  pyarrow  ->  file  ->  its pages, index entries and statistics

pyarrow ends a page with each chunk of a column when a page may have zero bytes, so pages get
exactly the rows they are meant to have. Its dictionaries hold values in the order of their first
occurrence. So a first page that holds the entries of the wanted dictionary, and is left out
afterwards, produces exactly that dictionary. This keeps old pages that refer to it valid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.model.arrays import Integers
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.metadata.bounds import is_decimal
from lakesplice.splicing.metadata.encodings import of_version
from lakesplice.splicing.pages.page_decoding import decode_pages, one_column, read_type
from lakesplice.splicing.structures.enums import Codec, Encoding, PageKind, PhysicalType
from lakesplice.splicing.structures.footer import Chunk, Leaf, Statistics
from lakesplice.splicing.structures.page_headers import PageHeader, read_page
from lakesplice.splicing.structures.page_index import ColumnIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import Struct

_NO_LIMIT = 1 << 30
_CODECS = {
    Codec.UNCOMPRESSED: "none",
    Codec.SNAPPY: "snappy",
    Codec.GZIP: "gzip",
    Codec.BROTLI: "brotli",
    Codec.ZSTD: "zstd",
    Codec.LZ4_RAW: "lz4",
}
_WITH_DICTIONARY = frozenset((Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY))
_OLD_NAMES: dict[int, int] = {Encoding.RLE_DICTIONARY: Encoding.PLAIN_DICTIONARY}
DICTIONARY_BYTES_MAX = 1024 * 1024

# Results of `writable`, by the footer of a file of one such column.
_WRITABLE: dict[bytes, bool] = {}
_TYPES_MAX = 4096


def with_dictionary(encoding: int) -> bool:
    """Return whether data pages of the encoding refer to a dictionary."""
    return encoding in _WITH_DICTIONARY


def compression(codec: int) -> str:
    """Return pyarrow's name for a codec."""
    return _CODECS[Codec(codec)]


@dataclass(frozen=True, slots=True)
class PageStyle:
    """How the pages of a chunk are written, except their encoding."""

    codec: int
    v2: bool
    checksums: bool

    @classmethod
    def of(cls, chunk: Chunk, header: PageHeader) -> PageStyle:
        """Return the style of a chunk, given the header of one of its data pages."""
        return cls(chunk.codec, header.kind is PageKind.DATA_V2, header.crc is not None)


@dataclass(frozen=True, eq=False, slots=True)
class EncodedPages:
    """Data pages one after the other, and a dictionary page if any; `sizes` include page headers.

    `chunk` describes them as if they were a whole chunk; `uncompressed` counts the data pages'
    uncompressed bytes, headers included.
    """

    chunk: Chunk
    dictionary: pa.Buffer | None
    dictionary_entries: int
    dictionary_uncompressed: int
    pages: Any  # a buffer, or None where another object keeps them
    sizes: Integers
    uncompressed: int
    column_index: ColumnIndex | None
    statistics: Statistics

    def slices(self) -> list[pa.Buffer]:
        """Return each data page's bytes."""
        starts = np.cumsum(self.sizes) - self.sizes
        return [
            self.pages.slice(int(at), int(size))
            for at, size in zip(starts, self.sizes, strict=True)
        ]


def decoded(
    leaf: Leaf, chunk: Chunk, pages: EncodedPages, rows: int, file_part: FilePart
) -> pa.Array:
    """Return the values of pages that were encoded for `chunk`."""
    described = replace(chunk, encodings=pages.chunk.encodings)
    return decode_pages(
        leaf,
        described,
        pages.dictionary,
        [pages.pages],
        rows=rows,
        created_by=None,
        file_part=file_part,
    )


def encode_pages(
    leaf: Leaf,
    pages: Sequence[pa.Array],
    encoding: int | None,
    style: PageStyle,
    file_part: FilePart,
    dictionary: pa.Array | None = None,
) -> EncodedPages | None:
    """Encode one data page for each array; None if pyarrow writes the type in another layout.

    All pages get `encoding`. None makes a dictionary; from the page on where it grows beyond
    DICTIONARY_BYTES_MAX, pages are PLAIN. If `dictionary` is given, it must contain all values, and
    the new dictionary keeps its order; if it has a value twice, the new one has fewer entries.
    Pages may be dictionary arrays over it.
    """
    given_positions = bool(pages) and pa.types.is_dictionary(pages[0].type)
    first = [] if dictionary is None or not len(dictionary) or given_positions else [dictionary]
    values = pa.chunked_array([*first, *pages])
    schema = pa.schema([pa.field("x", values.type, leaf.nullable)])
    buffer = pa.BufferOutputStream()
    given = encoding is not None and with_dictionary(encoding)
    writer = pq.ParquetWriter(buffer, schema, **_options(leaf, encoding, style, given))
    writer.write_table(pa.table([values], schema=schema), row_group_size=_NO_LIMIT)
    writer.close()
    written = SourceFile(pa.BufferReader(buffer.getvalue()), f"{file_part.path}, new pages")
    if len(written.footer.row_groups) != 1 or not _same_layout(leaf, written.leaf(0)):
        return None
    lifted = _lifted(written, len(first))
    lifted = replace(lifted, chunk=of_version(lifted.chunk, v2=style.v2))
    ends = np.cumsum([len(page) for page in (*first, *pages)])
    index = written.offset_index(0, 0)
    if index is None or not np.array_equal(index.first_rows[1:], ends[:-1]):
        raise file_part.corrupt(
            "new pages don't have the intended rows; this is a bug in Lakesplice"
        )
    if encoding is not None:
        _check_all(lifted.chunk, file_part, with_dictionary=given)
    return lifted if encoding != Encoding.PLAIN_DICTIONARY else _renamed(lifted, file_part)


def writable(leaf: Leaf, created_by: str | None, file_part: FilePart) -> bool:
    """Return whether pyarrow writes the column's values in the same layout from which it read
    them.
    """
    footer = one_column(leaf.element, None, 0, created_by).encode()
    # Files have many columns but few types, so results are kept.
    if footer not in _WRITABLE:
        kind = read_type(leaf, created_by, file_part)
        if len(_WRITABLE) >= _TYPES_MAX:
            _WRITABLE.clear()
        _WRITABLE[footer] = _writable(leaf, kind, file_part)
    return _WRITABLE[footer]


def _writable(leaf: Leaf, kind: pa.DataType, file_part: FilePart) -> bool:
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        return False
    schema = pa.schema([pa.field("x", kind, leaf.nullable)])
    buffer = pa.BufferOutputStream()
    style = PageStyle(Codec.UNCOMPRESSED, v2=False, checksums=False)
    options = _options(leaf, None, style, given=False)
    pq.ParquetWriter(buffer, schema, **options).close()
    written = SourceFile(pa.BufferReader(buffer.getvalue()), f"{file_part.path}, new pages")
    return _same_layout(leaf, written.leaf(0))


def decimals_as_integers(leaves: Iterable[Leaf]) -> bool:
    """Return whether to write short decimals as integers: yes unless one of the leaves stores a
    decimal in bytes of fixed length.
    """
    return not any(
        leaf.physical == PhysicalType.FIXED_LEN_BYTE_ARRAY and is_decimal(leaf) for leaf in leaves
    )


def _options(leaf: Leaf, encoding: int | None, style: PageStyle, given: bool) -> dict[str, Any]:
    options: dict[str, Any] = {
        "version": "2.6",
        "compression": compression(style.codec),
        "use_dictionary": encoding is None or given,
        "dictionary_pagesize_limit": _NO_LIMIT if given else DICTIONARY_BYTES_MAX,
        "store_decimal_as_integer": decimals_as_integers([leaf]),
        "store_schema": False,
        "write_page_index": True,
        "write_page_checksum": style.checksums,
        "data_page_version": "2.0" if style.v2 else "1.0",
        "max_rows_per_page": _NO_LIMIT,
        "write_batch_size": _NO_LIMIT,
        "data_page_size": 0,
    }
    if encoding is not None and not given:
        options["column_encoding"] = {"x": Encoding(encoding).name}
    return options


def _lifted(written: SourceFile, skipped: int) -> EncodedPages:
    """The written pages without the first `skipped` ones."""
    chunk, index = written.chunk(0, 0), written.offset_index(0, 0)
    assert index is not None
    file_part = written.file_part(0, 0)
    page = written.dictionary_page(0, 0)
    head = int(index.offsets[0]) - chunk.start
    first = int(index.offsets[skipped])
    uncompressed = 0 if page is None else page.header_size + page.header.uncompressed_size
    data_bytes = chunk.uncompressed_size - uncompressed
    skipped_values = 0
    for at in range(skipped):
        left_out = read_page(written.source, int(index.offsets[at]), chunk.end, file_part)
        skipped_values += left_out.header.num_values
        data_bytes -= left_out.header_size + left_out.header.uncompressed_size
    return EncodedPages(
        chunk=_fewer_pages(chunk, skipped, skipped_values),
        dictionary=None if page is None else written.read(chunk.start, head),
        dictionary_entries=0 if page is None else page.header.num_values,
        dictionary_uncompressed=uncompressed,
        pages=written.read(first, chunk.end - first),
        sizes=index.sizes[skipped:],
        uncompressed=data_bytes,
        column_index=_from_page(written.column_index(0, 0), skipped),
        statistics=Statistics.from_struct(chunk.statistics or Struct(), file_part),
    )


def _fewer_pages(chunk: Chunk, pages: int, values: int) -> Chunk:
    """The chunk without some data pages; all its data pages then have one encoding."""
    if not pages:
        return chunk
    counts = (
        replace(one, count=one.count - pages * (one.kind != PageKind.DICTIONARY))
        for one in chunk.encoding_stats or ()
    )
    return replace(
        chunk, num_values=chunk.num_values - values, encoding_stats=tuple(counts) or None
    )


def _from_page(index: ColumnIndex | None, first: int) -> ColumnIndex | None:
    """The column index of the pages from `first` on, without counts that few readers use."""
    if index is None:
        return None
    nulls = index.null_counts
    return ColumnIndex(
        index.null_pages[first:],
        index.min_values[first:],
        index.max_values[first:],
        index.boundary_order,
        None if nulls is None else nulls[first:],
    )


def _renamed(pages: EncodedPages, file_part: FilePart) -> EncodedPages:
    """The same pages with PLAIN_DICTIONARY, the first version's name for their encoding."""
    out, sizes, grown = bytearray(), [], 0
    for page in pages.slices():
        data = page.to_pybytes()
        header, start = PageHeader.decode(data, 0, file_part)
        renamed = replace(header, encoding=Encoding.PLAIN_DICTIONARY).encode()
        sizes.append(len(renamed) + len(data) - start)
        grown += len(renamed) - start
        out += renamed + data[start:]
    counts = pages.chunk.encoding_stats or ()
    named = (replace(s, encoding=_OLD_NAMES.get(s.encoding, s.encoding)) for s in counts)
    return replace(
        pages,
        chunk=replace(pages.chunk, encoding_stats=tuple(named) or None),
        pages=pa.py_buffer(bytes(out)),
        sizes=np.array(sizes, np.int64),
        uncompressed=pages.uncompressed + grown,
    )


def _check_all(chunk: Chunk, file_part: FilePart, *, with_dictionary: bool) -> None:
    """Check that every new page has the intended encoding; the order of a chunk's pages depends on
    it.
    """
    counts = [s for s in chunk.encoding_stats or () if s.kind != PageKind.DICTIONARY]
    if not counts or any((s.encoding in _WITH_DICTIONARY) != with_dictionary for s in counts):
        raise file_part.corrupt(
            "new pages don't have the intended encoding; this is a bug in Lakesplice",
            encodings=[s.encoding for s in counts],
        )


def _same_layout(source: Leaf, written: Leaf) -> bool:
    return (source.physical, source.type_length, source.nullable) == (
        written.physical,
        written.type_length,
        written.nullable,
    )
