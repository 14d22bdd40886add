"""A Parquet file to splice from: its footer, and its indexes, which are read on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.structures.decoding import buffer_at, mapped, ranged
from lakesplice.splicing.structures.enums import Codec, Encoding, PageKind
from lakesplice.splicing.structures.footer import ByteRange, Chunk, Footer, Leaf, read_footer
from lakesplice.splicing.structures.old_writers import (
    compression_is_denied,
    pages_need_their_predecessor,
)
from lakesplice.splicing.structures.page_headers import Page, read_page, walk
from lakesplice.splicing.structures.page_index import (
    ColumnIndex,
    OffsetIndex,
    decode_offset_indexes,
)

_READABLE = frozenset(Encoding) - {Encoding.ALP}
_REFUSED_CODECS = {Codec.LZ4: Reason.LEGACY_LZ4, Codec.LZO: Reason.LZO}
# Enough for some hundred thousand pages with bounds of the usual length.
_INDEX_BYTES_MAX = 32 * 1024 * 1024

ChunkId: TypeAlias = tuple[int, int]  # row group and column


class SourceFile:
    """An open file and what was read from it; errors call it `name`.

    Opening reads the footer and raises the errors of `read_footer`. Every method that reads blocks,
    may be called by several threads, and raises `CorruptFileError` with file, place and reason, or
    `UnsupportedError` if an index is too large.
    """

    def __init__(self, source: pa.NativeFile, name: str) -> None:
        self.source, self.name = source, name
        self.size: int = source.size()
        self._mapped, self._ranged = mapped(source), ranged(source)
        self.footer: Footer = read_footer(source, name)
        self._offset_indexes: dict[ChunkId, OffsetIndex] = {}
        self._gapless: set[ChunkId] = set()
        self._column_indexes: dict[ChunkId, ColumnIndex | None] = {}
        self._old_deltas = pages_need_their_predecessor(self.footer.created_by)
        self._denied_compression = compression_is_denied(self.footer.created_by)

    def chunk(self, row_group: int, column: int) -> Chunk:
        """Return a chunk of the footer."""
        return self.footer.row_groups[row_group].chunks[column]

    def leaf(self, column: int) -> Leaf:
        """Return a column of the schema."""
        return self.footer.leaves[column]

    def row_ranges(self) -> Iterator[tuple[int, int, int]]:
        """Yield for each row group its number, its first row and the row after its last."""
        first = 0
        for row_group, group in enumerate(self.footer.row_groups):
            yield row_group, first, first + group.num_rows
            first += group.num_rows

    def file_part(self, row_group: int, column: int) -> FilePart:
        """Return a chunk's place, for errors."""
        name = self.leaf(column).name
        return FilePart(self.name, f"row group {row_group}, column {column} ({name})")

    def key_value(self, key: bytes) -> bytes | None:
        """Return an entry of the file's key-value metadata; the first one if the key repeats."""
        return next((v for k, v in self.footer.key_values or () if k == key), None)

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return exactly these bytes."""
        (data,) = self.read_all([(offset, length)])
        return data

    def read_all(self, ranges: Sequence[tuple[int, int]]) -> list[pa.Buffer]:
        """Return exactly the bytes of each range (offset and length); reads them together if that
        is faster.
        """
        if self._ranged is not None and ranges:
            offsets, lengths = zip(*ranges, strict=True)
            found = self._ranged.read_ranges(offsets, lengths)
        else:
            found = [self._read(offset, length) for offset, length in ranges]
        for data, (offset, length) in zip(found, ranges, strict=True):
            if data.size != length:
                file_part = FilePart(self.name, f"bytes {offset} to {offset + length}")
                raise file_part.corrupt("the file ends before them", size=self.size)
        return found

    def _read(self, offset: int, length: int) -> pa.Buffer:
        if self._mapped is not None:
            return self._mapped[offset : offset + length]
        file_part = FilePart(self.name, f"bytes {offset} to {offset + length}")
        return buffer_at(self.source, length, offset, file_part)

    def offset_index(self, row_group: int, column: int) -> OffsetIndex | None:
        """Return the chunk's offset index, checked against chunk and rows; None if there is
        none.
        """
        index, key = self.page_locations(row_group, column), (row_group, column)
        if index is not None and key not in self._gapless:
            chunk, rows = self.chunk(row_group, column), self.footer.row_groups[row_group].num_rows
            index.check(chunk.start, chunk.end, rows, self._index_place(row_group, column))
            self._gapless.add(key)
        return index

    def page_locations(self, row_group: int, column: int) -> OffsetIndex | None:
        """Return the offset index for copying: gaps between pages and pages without rows are
        allowed.
        """
        key = row_group, column
        self.read_offset_indexes([key])
        return self._offset_indexes.get(key)

    def read_offset_indexes(self, chunks: Sequence[ChunkId]) -> None:
        """Read the offset indexes of several chunks at once, for a fraction of the cost. Indexes
        that are already read are skipped.
        """
        spans = [
            (key, span)
            for key in chunks
            if key not in self._offset_indexes
            and (span := self.chunk(*key).offset_index) is not None
        ]
        if not spans:
            return
        file_parts = [self._index_place(*key) for key, _ in spans]
        data = [
            self._bytes(span, file_part)
            for (_, span), file_part in zip(spans, file_parts, strict=True)
        ]
        found = decode_offset_indexes(data, file_parts)
        for (key, _), index, file_part in zip(spans, found, file_parts, strict=True):
            chunk, rows = self.chunk(*key), self.footer.row_groups[key[0]].num_rows
            index.check_order(chunk.start, chunk.end, rows, file_part)
            self._offset_indexes[key] = index

    def column_index(self, row_group: int, column: int) -> ColumnIndex | None:
        """Return the chunk's column index, with as many pages as the offset index; None if there is
        none.
        """
        key = row_group, column
        if key not in self._column_indexes:
            self._column_indexes[key] = self._read_column_index(row_group, column)
        return self._column_indexes[key]

    def dictionary_page(self, row_group: int, column: int) -> Page | None:
        """Return the chunk's first page if it is a dictionary, otherwise None."""
        chunk = self.chunk(row_group, column)
        if not chunk.compressed_size:
            return None
        page = read_page(self.source, chunk.start, chunk.end, self.file_part(row_group, column))
        return page if page.header.kind is PageKind.DICTIONARY else None

    def pages(self, row_group: int, column: int) -> Iterator[Page]:
        """Yield all pages of a chunk, the dictionary first; uses no index."""
        yield from walk(
            self.source, self.chunk(row_group, column), self.file_part(row_group, column)
        )

    def refusal(self, row_group: int, column: int) -> Reason | None:
        """Return why the chunk can't be spliced page by page, judged by the footer; reads
        nothing.
        """
        chunk = self.chunk(row_group, column)
        if not self.leaf(column).flat:
            return Reason.NESTED
        if chunk.codec in _REFUSED_CODECS:
            return _REFUSED_CODECS[Codec(chunk.codec)]
        if chunk.codec not in frozenset(Codec):
            return Reason.UNKNOWN_CODEC
        if not _READABLE.issuperset(chunk.encodings):
            return Reason.UNKNOWN_ENCODING
        if self._old_deltas and Encoding.DELTA_BYTE_ARRAY in chunk.encodings:
            return Reason.OLD_DELTA_BYTE_ARRAY
        return Reason.NO_PAGE_INDEX if chunk.offset_index is None else None

    def needs_its_name(self, row_group: int, column: int) -> Reason | None:
        """Return why the chunk's pages can't be copied into a file with another writer's name.

        Readers work around some faults of writers by name. Reads at most one page's header.
        """
        chunk = self.chunk(row_group, column)
        if self._old_deltas and Encoding.DELTA_BYTE_ARRAY in chunk.encodings:
            return Reason.OLD_DELTA_BYTE_ARRAY
        if chunk.codec == Codec.UNCOMPRESSED or not self._denied_compression:
            return None
        pages = (page.header for page in self.pages(row_group, column) if page.header.is_data)
        first = next(pages, None)
        return Reason.OLD_DATA_PAGE_V2 if first and first.kind is PageKind.DATA_V2 else None

    def _index_place(self, row_group: int, column: int) -> FilePart:
        return self.file_part(row_group, column).within("the offset index")

    def _read_column_index(self, row_group: int, column: int) -> ColumnIndex | None:
        span = self.chunk(row_group, column).column_index
        pages = self.offset_index(row_group, column)
        if span is None or pages is None:
            return None
        file_part = self.file_part(row_group, column).within("the column index")
        index = ColumnIndex.decode(self._bytes(span, file_part), file_part)
        if len(index) != len(pages):
            raise file_part.corrupt("it has another number of pages than the offset index")
        return index

    def refuse_large_indexes(self, row_group: int, column: int) -> None:
        """Raise `UnsupportedError` if an index of the chunk is too large to be read; reads
        nothing.
        """
        chunk = self.chunk(row_group, column)
        for span in (chunk.offset_index, chunk.column_index):
            if span is not None and span.length > _INDEX_BYTES_MAX:
                raise self._index_too_large(span, self._index_place(row_group, column))

    def _index_too_large(self, span: ByteRange, file_part: FilePart) -> UnsupportedError:
        return file_part.too_large(
            "an index has more bytes than are read",
            length=span.length,
            reason=str(Reason.LARGE_INDEX),
        )

    def _bytes(self, span: ByteRange, file_part: FilePart) -> bytes:
        if span.length > _INDEX_BYTES_MAX:
            raise self._index_too_large(span, file_part)
        data: bytes = self.read(span.offset, span.length).to_pybytes()
        return data
