"""Checks pages before they are copied: otherwise a damaged page would be copied from file to file.

A page's checksum covers its bytes after compression, not its header (parquet.thrift, `PageHeader`),
so the header is compared with the index and the footer: rows, encodings and, in our own files, the
sum of the sizes. Pages without a checksum are copied unchecked, as every reader reads them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from zlib_ng import zlib_ng

from lakesplice.errors import CorruptFileError
from lakesplice.model.arrays import Integers, Mask
from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.structures.many_headers import (
    NO_CHECKSUM,
    HeaderArrays,
    decode_headers,
    may_have_checksum,
)
from lakesplice.splicing.structures.source import ChunkId, SourceFile

_OURS = b"lakesplice"  # a key of the metadata of files that we wrote
_BLOCK_BYTES = 16 * 1024 * 1024
_DAMAGED = "a page's bytes don't match its checksum"
_ANY_ROWS = -1
_DICTIONARY = -1  # the page number of a dictionary page


@dataclass(frozen=True, eq=False, slots=True)
class _Pages:
    """Pages of several chunks in order, as parallel arrays: the chunk's place in the list, the
    page's number in the chunk, offset, bytes, and rows (or _ANY_ROWS).
    """

    chunks: Integers
    numbers: Integers
    offsets: Integers
    sizes: Integers
    rows: Integers

    @classmethod
    def of(cls, source: SourceFile, chunks: Sequence[ChunkId]) -> Self:
        """Return the pages of those chunks that have an offset index."""
        parts: list[Sequence[Integers]] = []
        for chunk, (row_group, column) in enumerate(chunks):
            index = source.page_locations(row_group, column)
            if index is None or not len(index):
                continue
            start, count = source.chunk(row_group, column).start, len(index)
            head = int(index.offsets[0]) - start
            if head:
                found = (chunk, _DICTIONARY, start, head, _ANY_ROWS)
                parts.append([np.array([value]) for value in found])
            # In a nested column the numbers of values and rows differ.
            flat = source.leaf(column).flat
            rows = index.rows(source.footer.row_groups[row_group].num_rows)
            each = np.full(count, _ANY_ROWS) if not flat else rows
            parts.append(
                (np.full(count, chunk), np.arange(count), index.offsets, index.sizes, each)
            )
        if not parts:
            return cls(*[np.zeros(0, np.int64)] * 5)
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def some(self, which: slice | Mask) -> Self:
        """Return the chosen pages."""
        return type(self)(
            self.chunks[which],
            self.numbers[which],
            self.offsets[which],
            self.sizes[which],
            self.rows[which],
        )

    def blocks(self) -> Iterator[Self]:
        """Yield blocks of neighbouring pages, each of about _BLOCK_BYTES and at least one page."""
        if not len(self.sizes):
            return
        gap = self.offsets[1:] != self.offsets[:-1] + self.sizes[:-1]
        full = np.diff(np.cumsum(self.sizes) // _BLOCK_BYTES) > 0
        cuts = (np.flatnonzero(gap | full) + 1).tolist()
        for start, end in zip([0, *cuts], [*cuts, len(self.sizes)], strict=True):
            yield self.some(slice(start, end))


def is_ours(source: SourceFile) -> bool:
    """Return whether Lakesplice wrote the file; each page has a checksum then."""
    return source.key_value(_OURS) is not None


def check_chunks(source: SourceFile, chunks: Sequence[ChunkId]) -> None:
    """Raise `CorruptFileError` if a page contradicts its checksum, the index or the footer.

    Blocks; reads the chunks, a few megabytes of neighbouring pages at a time. In our own files each
    page must have a checksum. In other files the header of a page without a checksum is checked
    only if a neighbour has one.
    """
    source.read_offset_indexes(chunks)
    for chunk in chunks:
        if source.page_locations(*chunk) is None:
            _check_one_by_one(source, *chunk)
    file_parts = [source.file_part(*chunk) for chunk in chunks]
    ours = is_ours(source)
    sums = _ChunkSums(len(chunks))
    for pages in _Pages.of(source, chunks).blocks():
        base = int(pages.offsets[0])
        data = source.read(base, int(pages.offsets[-1] + pages.sizes[-1]) - base)
        if not ours:
            pages = _with_neighbours(pages, may_have_checksum(data, pages.offsets - base))
        headers = _check_block(data, pages, base, file_parts, ours=ours)
        if ours:
            sums.add(pages, base, headers)
    for at, chunk in enumerate(chunks):
        if ours and source.page_locations(*chunk) is not None:
            sums.check(at, source.chunk(*chunk), file_parts[at])


class _ChunkSums:
    """Sums over the pages of each chunk."""

    def __init__(self, chunks: int) -> None:
        self._uncompressed = np.zeros(chunks, np.int64)
        self._encodings = [Counter[tuple[int, int]]() for _ in range(chunks)]

    def add(self, pages: _Pages, base: int, headers: HeaderArrays) -> None:
        sizes = headers.uncompressed + headers.bodies - (pages.offsets - base)
        np.add.at(self._uncompressed, pages.chunks, sizes)
        for chunk in np.unique(pages.chunks).tolist():
            mine = pages.chunks == chunk
            kinds, encodings = headers.kinds[mine].tolist(), headers.encodings[mine].tolist()
            self._encodings[chunk].update(zip(kinds, encodings, strict=True))

    def check(self, at: int, chunk: Chunk, file_part: FilePart) -> None:
        if self._uncompressed[at] != chunk.uncompressed_size:
            raise file_part.corrupt("its pages have another size than the footer says")
        stats = chunk.encoding_stats
        if stats is None:
            return
        if self._encodings[at] != Counter({(s.kind, s.encoding): s.count for s in stats}):
            raise file_part.corrupt("its pages have other encodings than the footer says")


def _check_one_by_one(source: SourceFile, row_group: int, column: int) -> None:
    file_part = source.file_part(row_group, column)
    for number, page in enumerate(source.pages(row_group, column)):
        crc = page.header.crc
        if crc is None:
            continue
        body = source.read(page.body_offset, page.header.compressed_size)
        if zlib_ng.crc32(memoryview(body)) != crc:
            raise file_part.corrupt(_DAMAGED, page=number)


def _with_neighbours(pages: _Pages, chosen: Mask) -> _Pages:
    """All pages of those chunks of which at least one page is chosen."""
    return pages.some(np.isin(pages.chunks, pages.chunks[chosen]))


def _check_block(
    data: pa.Buffer, pages: _Pages, base: int, file_parts: Sequence[FilePart], *, ours: bool
) -> HeaderArrays:
    """Check pages of one block of bytes, and return their headers."""
    starts = pages.offsets - base
    ends = starts + pages.sizes
    headers = decode_headers(data, starts, ends, lambda at: _file_part(pages, at, file_parts))
    # There is nothing between the header, the bytes and the next page.
    wrong = headers.bodies + headers.compressed != ends
    wrong |= (pages.rows != _ANY_ROWS) & (headers.values != pages.rows)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _corrupt(pages, at, file_parts, "a page's header differs from what its index says")
    if ours and (headers.crcs == NO_CHECKSUM).any():
        at = int(np.argmax(headers.crcs == NO_CHECKSUM))
        raise _corrupt(
            pages,
            at,
            file_parts,
            "a page has no checksum, although all pages were written with one",
        )
    view = memoryview(data)
    bodies, crcs = headers.bodies.tolist(), headers.crcs.tolist()
    for at, (start, end, crc) in enumerate(zip(bodies, ends.tolist(), crcs, strict=True)):
        if crc != NO_CHECKSUM and zlib_ng.crc32(view[start:end]) != crc:
            raise _corrupt(pages, at, file_parts, _DAMAGED)
    return headers


def _corrupt(
    pages: _Pages, at: int, file_parts: Sequence[FilePart], reason: str
) -> CorruptFileError:
    file_part, number = _file_part(pages, at, file_parts), int(pages.numbers[at])
    return (
        file_part.corrupt(reason)
        if number == _DICTIONARY
        else file_part.corrupt(reason, page=number)
    )


def _file_part(pages: _Pages, at: int, file_parts: Sequence[FilePart]) -> FilePart:
    file_part = file_parts[int(pages.chunks[at])]
    return (
        file_part.within("the dictionary page") if pages.numbers[at] == _DICTIONARY else file_part
    )
