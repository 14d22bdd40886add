"""Images of the new file's column chunks: bytes to copy, bytes to write, and their description.

Every operation (an edit, a merge, a new column) makes such images; `assemble.py` writes them one
after the other. Offsets in an image count from the chunk's first byte.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.metadata.writer_faults import without_ignored_bounds
from lakesplice.splicing.options import SpliceCounts
from lakesplice.splicing.output.copying import Readable
from lakesplice.splicing.structures.checksums import check_chunks
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.decoding import decode_struct

_BLOOM_HEADER_BYTES = 256


@dataclass(frozen=True, eq=False, slots=True)
class CopiedRange:
    """Bytes [offset, offset + length) of a file, to be copied."""

    source: Readable
    offset: int
    length: int


# A `CopiedRange` or a buffer; pyarrow has no type annotations.
Piece: TypeAlias = Any


@dataclass(frozen=True, eq=False, slots=True)
class ChunkImage:
    """A chunk to write: its pages in `pieces`, with a dictionary page of `dictionary_bytes` first,
    if any.

    `chunk` is what the footer will say, except offsets. `column_index` is already encoded.
    """

    chunk: Chunk
    pieces: tuple[Piece, ...]
    dictionary_bytes: int
    index: OffsetIndex | None
    column_index: pa.Buffer | None
    bloom: CopiedRange | None
    counts: SpliceCounts


class MakeImage(Protocol):
    """Makes a chunk's image when it is called. The call blocks; any thread may make it."""

    @property
    def held_bytes(self) -> int:
        """About how many bytes of memory the image takes until it is written."""
        ...

    def __call__(self) -> ChunkImage:
        """Return the image."""
        ...


@dataclass(frozen=True, slots=True)
class MakeImageFunction:
    """`MakeImage` by calling `make`."""

    make: Callable[[], ChunkImage]
    held_bytes: int

    def __call__(self) -> ChunkImage:
        """Return the image."""
        return self.make()


@dataclass(frozen=True, slots=True)
class CopiedChunk:
    """Makes the image of an unchanged chunk; `verify` says whether to verify its pages' checksums.

    A call blocks, reads the chunk's indexes and, to verify, its pages. It raises
    `CorruptFileError`.
    """

    source: SourceFile
    row_group: int
    column: int
    verify: bool = True

    @property
    def bytes(self) -> int:
        """The size of its pages."""
        return self.source.chunk(self.row_group, self.column).compressed_size

    @property
    def held_bytes(self) -> int:
        """0: the pages are not held in memory."""
        return 0

    def __call__(self) -> ChunkImage:
        """Return the image."""
        (image,) = copied_images([self])
        return image


def copied_images(chunks: Sequence[CopiedChunk]) -> list[ChunkImage]:
    """Make the images of several chunks of one file together. The result is that of calling each
    one, in a fraction of the time.
    """
    verified = [(chunk.row_group, chunk.column) for chunk in chunks if chunk.verify]
    if verified:
        check_chunks(chunks[0].source, verified)
    return [_copied(chunk.source, chunk.row_group, chunk.column) for chunk in chunks]


def _copied(source: SourceFile, row_group: int, column: int) -> ChunkImage:
    chunk = source.chunk(row_group, column)
    index = source.page_locations(row_group, column)
    span, bloom = chunk.column_index, _bloom(source, chunk)
    return ChunkImage(
        chunk=without_ignored_bounds(
            chunk,
            source.leaf(column),
            source.footer.created_by,
            source.file_part(row_group, column),
        ),
        pieces=(CopiedRange(source, chunk.start, chunk.compressed_size),),
        dictionary_bytes=dictionary_bytes(source, row_group, column),
        index=None if index is None else index.shifted(-chunk.start),
        column_index=None if span is None else source.read(span.offset, span.length),
        bloom=bloom,
        counts=SpliceCounts(
            pages_copied=0 if index is None else len(index),
            bytes_copied=chunk.compressed_size,
            bloom_filters_dropped=int(bool(chunk.bloom_offset) and bloom is None),
        ),
    )


def dictionary_bytes(source: SourceFile, row_group: int, column: int) -> int:
    """Return the size of a chunk's dictionary page; 0 without one.

    The page itself is read, since old writers set its offset where there is no dictionary, or omit
    it where there is one.
    """
    chunk, index = source.chunk(row_group, column), source.page_locations(row_group, column)
    before = int(index.offsets[0]) - chunk.start if index is not None and len(index) else None
    if before == 0 or (before and chunk.dictionary_page_offset):
        return before
    page = source.dictionary_page(row_group, column)
    return 0 if page is None else before or page.end - chunk.start


def _bloom(source: SourceFile, chunk: Chunk) -> CopiedRange | None:
    if not chunk.bloom_offset:
        return None
    if chunk.bloom_length:
        return CopiedRange(source, chunk.bloom_offset, chunk.bloom_length)
    # Older writers didn't record its length; its header has it.
    window = min(_BLOOM_HEADER_BYTES, source.footer.start - chunk.bloom_offset)
    file_part = source.file_part(0, 0).within("a bloom filter")
    try:
        data = source.read(chunk.bloom_offset, window).to_pybytes()
        header, end = decode_struct(data, file_part=file_part)
    except CorruptFileError:
        return None
    size = header.get(1)
    if not isinstance(size, int) or size <= 0:
        return None
    if chunk.bloom_offset + end + size > source.footer.start:
        return None
    return CopiedRange(source, chunk.bloom_offset, end + size)
