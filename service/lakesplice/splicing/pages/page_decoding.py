"""Decodes pages to values, through Parquet files of one column that exist only in memory.

dictionary page + some data pages, as they are in the source  ->  file  ->  pyarrow
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.decoding import decoding
from lakesplice.splicing.structures.enums import Encoding, PageKind, Repetition
from lakesplice.splicing.structures.footer import MAGIC, Chunk, Footer, Leaf, RowGroup
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.thrift.compact import Struct, WireType


def decode_pages(
    leaf: Leaf,
    chunk: Chunk,
    dictionary: pa.Buffer | None,
    pages: Sequence[pa.Buffer],
    rows: int,
    created_by: str | None,
    file_part: FilePart,
    *,
    as_dictionary: bool = False,
) -> pa.Array:
    """Return the values of data pages of a flat chunk, in the type as which pyarrow reads them.

    `pages` hold `rows` rows together; a buffer may hold several pages. With `as_dictionary` (text
    and bytes only) the result is a dictionary array. Raises `CorruptFileError` if they can't be
    decoded or a checksum is wrong.
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
    with decoding(file_part):
        table = pq.ParquetFile(
            pa.BufferReader(joined(parts)),
            read_dictionary=["x"] if as_dictionary else None,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
        ).read(use_threads=False)
        values = table.column(0)
        found = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    if len(found) != rows:
        raise file_part.corrupt(
            "its pages hold another number of values", rows=rows, found=len(found)
        )
    return found


def joined(parts: Sequence[bytes | pa.Buffer]) -> pa.Buffer:
    """Return the parts joined into one buffer."""
    whole = pa.allocate_buffer(sum(len(part) for part in parts))
    sink = pa.FixedSizeBufferWriter(whole)
    for part in parts:
        sink.write(part)
    return whole


def decode_dictionary(
    leaf: Leaf, chunk: Chunk, page: pa.Buffer, created_by: str | None, file_part: FilePart
) -> pa.Array:
    """Return the entries of a dictionary page in their order; raises `CorruptFileError`."""
    data = page.to_pybytes()
    header, start = PageHeader.decode(data, 0, file_part)
    if header.kind is not PageKind.DICTIONARY:
        raise file_part.corrupt("its first page isn't a dictionary")
    if start + header.compressed_size > len(data):
        raise file_part.corrupt("its dictionary is cut short")
    # A dictionary page is encoded like a data page without nulls.
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
    required = replace(
        leaf, element=leaf.element.replaced({3: (WireType.I32, Repetition.REQUIRED)})
    )
    plain = replace(chunk, encodings=(Encoding.PLAIN, Encoding.RLE))
    body = [pa.py_buffer(as_data.encode()), page.slice(start, header.compressed_size)]
    return decode_pages(
        required,
        plain,
        None,
        body,
        rows=header.num_values,
        created_by=created_by,
        file_part=file_part,
    )


def read_type(leaf: Leaf, created_by: str | None, file_part: FilePart) -> pa.DataType:
    """Return the type that the column's pages are decoded to; raises `CorruptFileError`."""
    footer = one_column(leaf.element, None, 0, created_by)
    with decoding(file_part.within("the type")):
        found = pq.read_schema(pa.BufferReader(MAGIC + footer.encode()))
    return found.field(0).type


def one_column(element: Struct, chunk: Chunk | None, rows: int, created_by: str | None) -> Footer:
    """Return the footer of a file with one column, called x, and at most one chunk."""
    root = Struct({4: (WireType.BINARY, b"schema"), 5: (WireType.I32, 1)})
    return Footer(
        version=2,
        schema=(root, element.replaced({4: (WireType.BINARY, b"x")})),
        num_rows=rows,
        row_groups=(RowGroup(chunks=(chunk,), num_rows=rows, total_byte_size=1),) if chunk else (),
        created_by=created_by,
    )
