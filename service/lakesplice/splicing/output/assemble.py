"""Writes the new file from its start to its end: pages, bloom filters, page index, footer.

    PAR1 | row group 0: chunk images in order | ... | bloom filters | column indexes |
    offset indexes | footer

Runs of pages that were neighbours in the source, across columns too, are copied in one call. Every
offset and size in the footer is set here and nowhere else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.metadata.writer_names import with_our_name
from lakesplice.splicing.options import SpliceCounts
from lakesplice.splicing.output.copying import Sink
from lakesplice.splicing.output.images import (
    ChunkImage,
    CopiedChunk,
    CopiedRange,
    MakeImage,
    copied_images,
)
from lakesplice.splicing.structures.footer import (
    MAGIC,
    ByteRange,
    Chunk,
    Footer,
    RowGroup,
)
from lakesplice.splicing.structures.page_index import OffsetIndex, encode_offset_indexes
from lakesplice.splicing.structures.source import SourceFile

# Shorter copies cost more for the call than for the bytes.
_COPY_BYTES_MIN = 128 * 1024
_HELD_BYTES_MAX = 1024 * 1024
_COPIES_BYTES_MAX = 16 * 1024 * 1024
# New pages wait in memory until those before them are written.
_AHEAD_BYTES = 16 * 1024 * 1024
_AHEAD_MAX = 32
_ORDINAL_MAX = (1 << 15) - 1


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """A row group to write: one maker for each leaf, and `like` for everything else."""

    like: RowGroup
    chunks: Sequence[MakeImage]


@dataclass(frozen=True, slots=True)
class AssembledFile:
    """What was written: the footer and its bytes, the offset where the pages end, and the
    counts.
    """

    footer: Footer
    encoded: bytes
    pages_end: int
    counts: SpliceCounts


def assemble(like: Footer, groups: Iterable[GroupPlan], sink: Sink, threads: int) -> AssembledFile:
    """Write a file of the given row groups; schema and metadata are those of `like`.

    `threads` threads make chunks ahead of the writer: as many chunks as threads, and more if they
    are small. Blocks. Raises what the makers raise, and `StorageError` of the sink.
    """
    writer = _Writer(sink)
    writer.write(MAGIC)
    counts: list[SpliceCounts] = []
    placed: list[tuple[RowGroup, list[_WrittenChunk]]] = []
    plans = list(groups)
    makers = (make for group in plans for make in group.chunks)
    # If anything fails, no thread may still read the source when the caller closes it.
    with closing(_made(makers, threads)) as images:
        for plan in plans:
            chunks = []
            for _ in plan.chunks:
                image = next(images)
                counts.append(image.counts)
                chunks.append(_WrittenChunk(image, writer.pages(image)))
            placed.append((plan.like, chunks))
    pages_end = writer.at
    for _, chunks in placed:
        for chunk in chunks:
            chunk.write_bloom(writer)
    for _, chunks in placed:
        for chunk in chunks:
            chunk.write_column_index(writer)
    _write_offset_indexes([chunk for _, chunks in placed for chunk in chunks], writer)
    row_groups = [_row_group(group, chunks, at) for at, (group, chunks) in enumerate(placed)]
    footer = with_our_name(
        replace(
            like.known(),
            num_rows=sum(group.num_rows for group in row_groups),
            row_groups=tuple(row_groups),
            start=writer.at,
        )
    )
    encoded = footer.encode()
    writer.write(encoded)
    writer.flush()
    return AssembledFile(footer, encoded, pages_end, SpliceCounts.total(counts))


class _Writer:
    """Collects small writes, and joins copies of neighbouring bytes."""

    def __init__(self, sink: Sink) -> None:
        self._sink, self._held = sink, bytearray()
        self._copy: CopiedRange | None = None
        self.at = 0

    def pages(self, image: ChunkImage) -> int:
        """Write a chunk's pages and return where they start."""
        start = self.at
        for piece in image.pieces:
            if isinstance(piece, CopiedRange):
                self.copy(piece)
            else:
                self.write(piece)
        if self.at - start != image.chunk.compressed_size:
            raise CorruptFileError(
                "a chunk isn't as long as it was described; this is a bug in Lakesplice",
                column=".".join(image.chunk.path),
                described=image.chunk.compressed_size,
                written=self.at - start,
            )
        return start

    def write(self, data: bytes | pa.Buffer) -> None:
        self._flush_copy()
        self.at += len(data)
        self._held += memoryview(data)
        if len(self._held) >= _HELD_BYTES_MAX:
            self._flush_held()

    def copy(self, piece: CopiedRange) -> None:
        if not piece.length:
            return
        self.at += piece.length
        before = self._copy
        if (
            before is not None
            and before.source is piece.source
            and before.offset + before.length == piece.offset
        ):
            self._copy = replace(before, length=before.length + piece.length)
            return
        self._flush_copy()
        self._copy = piece

    def flush(self) -> None:
        self._flush_copy()
        self._flush_held()

    def _flush_copy(self) -> None:
        piece, self._copy = self._copy, None
        if piece is None:
            return
        if piece.length < _COPY_BYTES_MIN:
            self._held += memoryview(piece.source.read(piece.offset, piece.length))
            if len(self._held) >= _HELD_BYTES_MAX:
                self._flush_held()
            return
        self._flush_held()
        try:
            self._sink.copy(piece.source.source, piece.offset, piece.length)
        except CorruptFileError as error:
            if not isinstance(piece.source, SourceFile):
                raise
            # Sinks don't know what a file is called.
            raise CorruptFileError(
                error.message, **{**error.facts, "path": piece.source.name}
            ) from error

    def _flush_held(self) -> None:
        if self._held:
            self._sink.write(self._held)
            self._held = bytearray()


class _WrittenChunk:
    """A chunk whose pages are written; collects where its other parts are written."""

    def __init__(self, image: ChunkImage, start: int) -> None:
        self.start = start
        self._chunk, self._head = image.chunk.known(), image.dictionary_bytes
        # The pages themselves are not kept, since they may be large.
        self._bloom, self._column_index = image.bloom, image.column_index
        self._index: OffsetIndex | None = image.index
        self._at: dict[str, ByteRange] = {}

    def write_bloom(self, writer: _Writer) -> None:
        if self._bloom is not None:
            self._at["bloom"] = ByteRange(writer.at, self._bloom.length)
            writer.copy(self._bloom)

    def write_column_index(self, writer: _Writer) -> None:
        data = self._column_index
        if data is not None and self._index is not None:
            self._at["column index"] = ByteRange(writer.at, len(data))
            writer.write(data)

    @property
    def offset_index(self) -> OffsetIndex | None:
        """Where the chunk's pages lie; None if the file gets no offset index for it."""
        return None if self._index is None else self._index.shifted(self.start)

    def write_offset_index(self, data: bytes, writer: _Writer) -> None:
        self._at["offset index"] = ByteRange(writer.at, len(data))
        writer.write(data)

    def described(self) -> Chunk:
        """The chunk as the footer describes it."""
        bloom = self._at.get("bloom")
        return replace(
            self._chunk,
            data_page_offset=self.start + self._head,
            dictionary_page_offset=self.start if self._head else None,
            index_page_offset=None,
            bloom_offset=None if bloom is None else bloom.offset,
            bloom_length=None if bloom is None else bloom.length,
            offset_index=self._at.get("offset index"),
            column_index=self._at.get("column index"),
            file_offset=0,
        )


def _write_offset_indexes(chunks: Sequence[_WrittenChunk], writer: _Writer) -> None:
    found = [(chunk, index) for chunk in chunks if (index := chunk.offset_index) is not None]
    encoded = encode_offset_indexes([index for _, index in found])
    for (chunk, _), data in zip(found, encoded, strict=True):
        chunk.write_offset_index(data, writer)


def _row_group(like: RowGroup, placed: Sequence[_WrittenChunk], ordinal: int) -> RowGroup:
    chunks = tuple(chunk.described() for chunk in placed)
    return replace(
        like.known(),
        chunks=chunks,
        total_byte_size=sum(chunk.uncompressed_size for chunk in chunks),
        total_compressed_size=sum(chunk.compressed_size for chunk in chunks),
        file_offset=placed[0].start if placed else None,
        ordinal=ordinal if ordinal <= _ORDINAL_MAX else None,
    )


def _made(makers: Iterable[MakeImage], threads: int) -> Generator[ChunkImage]:
    """Yield the images in order and make some ahead; closing the generator waits for those."""
    tasks = _tasks(makers)
    if threads <= 1:
        for task in tasks:
            yield from task()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="splice") as pool:
        ahead: deque[tuple[_Task, Future[list[ChunkImage]]]] = deque()
        try:
            for task in tasks:
                ahead.append((task, pool.submit(task)))
                while len(ahead) > threads and _far(ahead):
                    yield from ahead.popleft()[1].result()
            while ahead:
                yield from ahead.popleft()[1].result()
        finally:
            for _, future in ahead:
                future.cancel()


def _far(ahead: Collection[tuple[_Task, object]]) -> bool:
    return len(ahead) > _AHEAD_MAX or sum(task.held_bytes for task, _ in ahead) > _AHEAD_BYTES


@dataclass(frozen=True, slots=True)
class _Task:
    """Makes the images of neighbouring chunks."""

    make: Callable[[], list[ChunkImage]]
    held_bytes: int = 0

    def __call__(self) -> list[ChunkImage]:
        return self.make()


def _tasks(makers: Iterable[MakeImage]) -> Iterator[_Task]:
    """Group neighbouring copied chunks into one task, some megabytes each."""
    copies: list[CopiedChunk] = []
    size = 0
    for make in makers:
        if copies and not (isinstance(make, CopiedChunk) and _joins(copies[0], size, make)):
            yield _Task(partial(copied_images, copies))
            copies, size = [], 0
        if isinstance(make, CopiedChunk):
            copies.append(make)
            size += make.bytes
        else:
            yield _Task(partial(_as_list, make), make.held_bytes)
    if copies:
        yield _Task(partial(copied_images, copies))


def _joins(first: CopiedChunk, size: int, another: CopiedChunk) -> bool:
    """Whether one more chunk joins the task that starts with `first` and has `size` bytes."""
    return another.source is first.source and size + another.bytes <= _COPIES_BYTES_MAX


def _as_list(make: MakeImage) -> list[ChunkImage]:
    return [make()]
