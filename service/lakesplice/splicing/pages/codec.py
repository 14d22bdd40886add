"""Pages to values and back, through Parquet files of one column that only ever exist in memory.

    decode   dictionary page + some data pages, as they lie in the source  ->  file  ->  pyarrow
    encode   one array a page  ->  pyarrow  ->  file  ->  its pages, index entries and statistics

pyarrow ends a page with each chunk of a column when a page may have zero bytes, so pages get
exactly the rows they are meant to have. Its dictionaries hold values in the order in which they
came, so a first page made of the dictionary that is wanted, and then left out, gives that one: what
keeps the old pages that refer to it valid.
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
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.enums import Codec, Encoding, PageKind, Physical, Repetition
from lakesplice.splicing.structures.footer import MAGIC, Chunk, Footer, Leaf, RowGroup, Statistics
from lakesplice.splicing.structures.page_headers import PageHeader, read_page
from lakesplice.splicing.structures.page_index import ColumnIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import Struct, Wire

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

# What was found out about types, each as the footer of a file of one column.
_WRITABLE: dict[bytes, bool] = {}
_TYPES_MAX = 4096


def with_dictionary(encoding: int) -> bool:
    """Return whether data pages of the encoding refer to a dictionary."""
    return encoding in _WITH_DICTIONARY


def compression(codec: int) -> str:
    """Return pyarrow's name of a codec."""
    return _CODECS[Codec(codec)]


@dataclass(frozen=True, slots=True)
class Style:
    """How the pages of a chunk are written beside their encoding."""

    codec: int
    v2: bool
    checksums: bool

    @classmethod
    def of(cls, chunk: Chunk, header: PageHeader) -> Style:
        """Return the style of a chunk by one of its data pages."""
        return cls(chunk.codec, header.kind is PageKind.DATA_V2, header.crc is not None)


@dataclass(frozen=True, eq=False, slots=True)
class EncodedPages:
    """Data pages one behind the other, `sizes` with their headers, and a dictionary page if any.

    `chunk` describes them as a chunk of their own; `uncompressed` counts the data pages' bytes,
    headers included.
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


def decode_pages(
    leaf: Leaf,
    chunk: Chunk,
    dictionary: pa.Buffer | None,
    pages: Sequence[pa.Buffer],
    rows: int,
    created_by: str | None,
    place: FilePart,
    *,
    as_dictionary: bool = False,
) -> pa.Array:
    """Return the values of data pages of a flat chunk, in the type pyarrow reads them as.

    `pages` hold `rows` rows together and may be several to a buffer. With `as_dictionary`, which
    text and bytes can have, they are left in their dictionary. Raises `CorruptFileError` where they
    can't be decoded, a wrong checksum included.
    """
    head = len(MAGIC) + (0 if dictionary is None else dictionary.size)
    size = head - len(MAGIC) + sum(page.size for page in pages)
    described = Chunk(
        physical=chunk.physical,
        path=("x",),
        codec=chunk.codec,
        encodings=chunk.encodings,
        num_values=rows,
        uncompressed_size=size,
        compressed_size=size,
        data_page_offset=head,
        dictionary_page_offset=None if dictionary is None else len(MAGIC),
    )
    footer = one_column(leaf.element, described, rows, created_by)
    parts = [MAGIC, *([] if dictionary is None else [dictionary]), *pages, footer.encode()]
    with decoding(place):
        table = pq.ParquetFile(
            pa.BufferReader(joined(parts)),
            read_dictionary=["x"] if as_dictionary else None,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        ).read(use_threads=False)
        values = table.column(0)
        found = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if len(found) != rows:
        raise place.corrupt("its pages hold another number of values", rows=rows, found=len(found))
    return found


def joined(parts: Sequence[bytes | pa.Buffer]) -> pa.Buffer:
    """Return parts in one buffer."""
    whole = pa.allocate_buffer(sum(len(part) for part in parts))
    sink = pa.FixedSizeBufferWriter(whole)
    for part in parts:
        sink.write(part)
    return whole


def decoded(leaf: Leaf, chunk: Chunk, pages: EncodedPages, rows: int, place: FilePart) -> pa.Array:
    """Return the values of pages that were encoded for `chunk`."""
    described = replace(chunk, encodings=pages.chunk.encodings)
    return decode_pages(
        leaf, described, pages.dictionary, [pages.pages], rows=rows, created_by=None, place=place
    )


def decode_dictionary(
    leaf: Leaf, chunk: Chunk, page: pa.Buffer, created_by: str | None, place: FilePart
) -> pa.Array:
    """Return the entries of a dictionary page in their order; raises `CorruptFileError`."""
    data = page.to_pybytes()
    header, start = PageHeader.decode(data, 0, place)
    if header.kind is not PageKind.DICTIONARY or start + header.compressed_size > len(data):
        raise place.corrupt("its first page isn't a dictionary")
    # A dictionary's bytes are those of a data page without nulls.
    as_data = PageHeader(
        kind=PageKind.DATA,
        uncompressed_size=header.uncompressed_size,
        compressed_size=header.compressed_size,
        crc=header.crc,
        num_values=header.num_values,
        encoding=Encoding.PLAIN,
        definition_encoding=Encoding.RLE,
        repetition_encoding=Encoding.RLE,
    )
    required = replace(leaf, element=leaf.element.replaced({3: (Wire.I32, Repetition.REQUIRED)}))
    plain = replace(chunk, encodings=(Encoding.PLAIN, Encoding.RLE))
    body = [pa.py_buffer(as_data.encode()), page.slice(start, header.compressed_size)]
    return decode_pages(
        required, plain, None, body, rows=header.num_values, created_by=created_by, place=place
    )


def encode_pages(
    leaf: Leaf,
    pages: Sequence[pa.Array],
    encoding: int | None,
    style: Style,
    place: FilePart,
    dictionary: pa.Array | None = None,
) -> EncodedPages | None:
    """Encode one data page for each array; None if pyarrow writes the type in another layout.

    `encoding` is that of all pages; None makes a dictionary, which is given up for PLAIN from the
    page on where it grows beyond DICTIONARY_BYTES_MAX. A `dictionary`, which must hold all values,
    is kept in its order with a dictionary's encoding; should it hold a value twice, the new one has
    fewer entries. Pages may be given as positions in it.
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
    written = SourceFile(pa.BufferReader(buffer.getvalue()), f"{place.path}, new pages")
    if len(written.footer.row_groups) != 1 or not _same_layout(leaf, written.leaf(0)):
        return None
    lifted = _lifted(written, len(first))
    lifted = replace(lifted, chunk=of_version(lifted.chunk, v2=style.v2))
    ends = np.cumsum([len(page) for page in (*first, *pages)])
    index = written.offset_index(0, 0)
    if index is None or not np.array_equal(index.first_rows[1:], ends[:-1]):
        raise place.corrupt("new pages have other rows than was meant; this is a defect")
    if encoding is not None:
        _check_all(lifted.chunk, place, with_dictionary=given)
    return lifted if encoding != Encoding.PLAIN_DICTIONARY else _renamed(lifted, place)


def writable(leaf: Leaf, created_by: str | None, place: FilePart) -> bool:
    """Return whether pyarrow writes what it reads of the column in the layout it was read from."""
    footer = one_column(leaf.element, None, 0, created_by).encode()
    # A file has many columns of few types.
    if footer not in _WRITABLE:
        kind = read_type(leaf, created_by, place)
        if len(_WRITABLE) >= _TYPES_MAX:
            _WRITABLE.clear()
        _WRITABLE[footer] = _writable(leaf, kind, place)
    return _WRITABLE[footer]


def _writable(leaf: Leaf, kind: pa.DataType, place: FilePart) -> bool:
    if pa.types.is_null(kind) or pa.types.is_nested(kind):
        return False
    schema = pa.schema([pa.field("x", kind, leaf.nullable)])
    buffer = pa.BufferOutputStream()
    style = Style(Codec.UNCOMPRESSED, v2=False, checksums=False)
    options = _options(leaf, None, style, given=False)
    pq.ParquetWriter(buffer, schema, **options).close()
    written = SourceFile(pa.BufferReader(buffer.getvalue()), f"{place.path}, new pages")
    return _same_layout(leaf, written.leaf(0))


def read_type(leaf: Leaf, created_by: str | None, place: FilePart) -> pa.DataType:
    """Return the type that the column's pages are decoded to; raises `CorruptFileError`."""
    footer = one_column(leaf.element, None, 0, created_by)
    with decoding(place.within("the type")):
        found = pq.read_schema(pa.BufferReader(MAGIC + footer.encode()))
    return found.field(0).type


def decimals_as_integers(leaves: Iterable[Leaf]) -> bool:
    """Return whether decimals that are short enough are to be written as integers: unless one of
    the leaves has a decimal in bytes of fixed length.
    """
    return not any(
        leaf.physical == Physical.FIXED_LEN_BYTE_ARRAY and is_decimal(leaf) for leaf in leaves
    )


def _options(leaf: Leaf, encoding: int | None, style: Style, given: bool) -> dict[str, Any]:
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
    """The pages without the first `skipped`."""
    chunk, index = written.chunk(0, 0), written.offset_index(0, 0)
    assert index is not None
    place = written.place(0, 0)
    page = written.dictionary_page(0, 0)
    head = int(index.offsets[0]) - chunk.start
    first = int(index.offsets[skipped])
    uncompressed = 0 if page is None else page.header_size + page.header.uncompressed_size
    data_bytes = chunk.uncompressed_size - uncompressed
    skipped_values = 0
    for at in range(skipped):
        left_out = read_page(written.source, int(index.offsets[at]), chunk.end, place)
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
        statistics=Statistics.from_struct(chunk.statistics or Struct(), place),
    )


def _fewer_pages(chunk: Chunk, pages: int, values: int) -> Chunk:
    """The chunk without some data pages; all its data pages are of one encoding then."""
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
    """The column index of the pages from `first` on, without counts that few readers know."""
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


def _renamed(pages: EncodedPages, place: FilePart) -> EncodedPages:
    """The same pages under the name that the format's first version had for their encoding."""
    out, sizes, grown = bytearray(), [], 0
    for page in pages.slices():
        data = page.to_pybytes()
        header, start = PageHeader.decode(data, 0, place)
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


def _check_all(chunk: Chunk, place: FilePart, *, with_dictionary: bool) -> None:
    """The law of a chunk's order rests on every new page having the encoding it was meant to."""
    counts = [s for s in chunk.encoding_stats or () if s.kind != PageKind.DICTIONARY]
    if not counts or any((s.encoding in _WITH_DICTIONARY) != with_dictionary for s in counts):
        raise place.corrupt(
            "new pages have another encoding than they were meant to; this is a defect",
            encodings=[s.encoding for s in counts],
        )


def _same_layout(source: Leaf, written: Leaf) -> bool:
    return (source.physical, source.type_length, source.nullable) == (
        written.physical,
        written.type_length,
        written.nullable,
    )


def one_column(element: Struct, chunk: Chunk | None, rows: int, created_by: str | None) -> Footer:
    """Return the footer of a file of one column, of one chunk at most; it is called x."""
    root = Struct({4: (Wire.BINARY, b"schema"), 5: (Wire.I32, 1)})
    return Footer(
        version=2,
        schema=(root, element.replaced({4: (Wire.BINARY, b"x")})),
        num_rows=rows,
        row_groups=(RowGroup(chunks=(chunk,), num_rows=rows, total_byte_size=1),) if chunk else (),
        created_by=created_by,
    )
