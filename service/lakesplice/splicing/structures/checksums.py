"""Pages that are copied are looked at before: a damaged one would be handed on for ever.

A page's checksum covers its bytes after compression, not its header (parquet.thrift, `PageHeader`),
so the header is held against what index and footer say: rows, encodings, and, in our own files, the
sum of the sizes. Pages without a checksum are copied on trust, as every reader reads them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import Int64s
from lakesplice.splicing.structures.place import Place
from lakesplice.splicing.structures.source import SourceFile

_OURS = b"lakesplice"  # a key of the metadata of files that we wrote
_BLOCK_BYTES = 4 * 1024 * 1024
# A header of a first-version data page with a checksum, as nearly everyone writes it: the bytes
# before and behind its numbers. Decoded for all pages at once it costs a tenth.
_BETWEEN = (b"\x15\x00\x15", b"\x15", b"\x15", b"\x1c\x15", b"\x15", b"\x15\x06\x15\x06\x00\x00")
_NUMBER = 0x15  # the header of an i32, a field further
_DAMAGED = "a page's bytes are not what its checksum says"
_NO_CHECKSUM = -1
_ANY_ROWS = -1
_DICTIONARY = -1  # the number of a chunk's page that is none of its data pages


@dataclass(frozen=True, eq=False, slots=True)
class _Headers:
    """What pages' headers say, an array each; their bytes start at `bodies`."""

    kinds: Int64s
    uncompressed: Int64s
    compressed: Int64s
    crcs: Int64s
    values: Int64s
    encodings: Int64s
    bodies: Int64s


@dataclass(frozen=True, eq=False, slots=True)
class _Pages:
    """Pages of several chunks in their order, an array each: which of the chunks, which of its
    pages, where, of how many bytes and, unless _ANY_ROWS, of how many rows.
    """

    chunks: Int64s
    numbers: Int64s
    offsets: Int64s
    sizes: Int64s
    rows: Int64s

    @classmethod
    def of(cls, source: SourceFile, row_group: int, columns: Sequence[int]) -> Self:
        """The pages of those chunks that have an offset index."""
        parts: list[Sequence[Int64s]] = []
        for chunk, column in enumerate(columns):
            index = source.page_locations(row_group, column)
            if index is None or not len(index):
                continue
            start, count = source.chunk(row_group, column).start, len(index)
            head = int(index.offsets[0]) - start
            if head:
                found = (chunk, _DICTIONARY, start, head, _ANY_ROWS)
                parts.append([np.array([value]) for value in found])
            # A nested column's pages hold other numbers of values than of rows.
            flat = source.leaf(column).flat
            rows = index.rows(source.footer.row_groups[row_group].num_rows)
            each = np.full(count, _ANY_ROWS) if not flat else rows
            parts.append(
                (np.full(count, chunk), np.arange(count), index.offsets, index.sizes, each)
            )
        if not parts:
            return cls(*[np.zeros(0, np.int64)] * 5)
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def some(self, which: slice | NDArray[np.bool_]) -> Self:
        """Return some of them."""
        return type(self)(
            self.chunks[which],
            self.numbers[which],
            self.offsets[which],
            self.sizes[which],
            self.rows[which],
        )

    def blocks(self) -> Iterator[Self]:
        """Yield neighbours of about _BLOCK_BYTES, a page at least."""
        if not len(self.sizes):
            return
        gap = self.offsets[1:] != self.offsets[:-1] + self.sizes[:-1]
        full = np.diff(np.cumsum(self.sizes) // _BLOCK_BYTES) > 0
        cuts = (np.flatnonzero(gap | full) + 1).tolist()
        for start, end in zip([0, *cuts], [*cuts, len(self.sizes)], strict=True):
            yield self.some(slice(start, end))


def check_chunks(source: SourceFile, row_group: int, columns: Sequence[int]) -> None:
    """Raise `CorruptFileError` if a page isn't what its checksum, the index or the footer say.

    Blocks; reads the chunks, a few megabytes of neighbours at a time. In our own files each page
    has a checksum; of others' pages without one the header is looked at if a neighbour has one.
    """
    for column in columns:
        if source.page_locations(row_group, column) is None:
            _check_one_by_one(source, row_group, column)
    places = [source.place(row_group, column) for column in columns]
    ours = source.key_value(_OURS) is not None
    sums = _Sums(len(columns))
    for pages in _Pages.of(source, row_group, columns).blocks():
        base = int(pages.offsets[0])
        data = source.read(base, int(pages.offsets[-1] + pages.sizes[-1]) - base)
        if not ours:
            pages = _with_neighbours(pages, _may_have_checksum(data, pages.offsets - base))
        sums.add(pages, base, _check_block(data, pages, base, places, ours=ours))
    for at, column in enumerate(columns):
        if ours and source.page_locations(row_group, column) is not None:
            sums.check(at, source.chunk(row_group, column), places[at])


class _Sums:
    """What pages have together, by their chunk."""

    def __init__(self, chunks: int) -> None:
        self._uncompressed = np.zeros(chunks, np.int64)
        self._encodings = [Counter[tuple[int, int]]() for _ in range(chunks)]

    def add(self, pages: _Pages, base: int, headers: _Headers) -> None:
        sizes = headers.uncompressed + headers.bodies - (pages.offsets - base)
        np.add.at(self._uncompressed, pages.chunks, sizes)
        for chunk in np.unique(pages.chunks).tolist():
            mine = pages.chunks == chunk
            kinds, encodings = headers.kinds[mine].tolist(), headers.encodings[mine].tolist()
            self._encodings[chunk].update(zip(kinds, encodings, strict=True))

    def check(self, at: int, chunk: Chunk, place: Place) -> None:
        if self._uncompressed[at] != chunk.uncompressed_size:
            raise place.corrupt("its pages have another size than the footer says")
        stats = chunk.encoding_stats
        if stats is None:
            return
        if self._encodings[at] != Counter({(s.kind, s.encoding): s.count for s in stats}):
            raise place.corrupt("its pages have other encodings than the footer says")


def _check_one_by_one(source: SourceFile, row_group: int, column: int) -> None:
    place = source.place(row_group, column)
    for number, page in enumerate(source.pages(row_group, column)):
        crc = page.header.crc
        if crc is None:
            continue
        body = source.read(page.body_offset, page.header.compressed_size)
        if zlib.crc32(memoryview(body)) != crc:
            raise place.corrupt(_DAMAGED, page=number)


def _with_neighbours(pages: _Pages, chosen: NDArray[np.bool_]) -> _Pages:
    """All pages of the chunks of which one is chosen."""
    return pages.some(np.isin(pages.chunks, pages.chunks[chosen]))


def _check_block(
    data: pa.Buffer, pages: _Pages, base: int, places: Sequence[Place], *, ours: bool
) -> _Headers:
    """Check pages of one block of bytes, and return their headers."""
    starts = pages.offsets - base
    headers = _decoded(data, pages, starts, places)
    # Nothing lies between the header, the bytes and the next page.
    ends = starts + pages.sizes
    wrong = headers.bodies + headers.compressed != ends
    wrong |= (pages.rows != _ANY_ROWS) & (headers.values != pages.rows)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _corrupt(pages, at, places, "a page's header isn't what its index says")
    if ours and (headers.crcs == _NO_CHECKSUM).any():
        at = int(np.argmax(headers.crcs == _NO_CHECKSUM))
        raise _corrupt(pages, at, places, "a page has no checksum, though all were given one")
    view = memoryview(data)
    bodies, crcs = headers.bodies.tolist(), headers.crcs.tolist()
    for at, (start, end, crc) in enumerate(zip(bodies, ends.tolist(), crcs, strict=True)):
        if crc != _NO_CHECKSUM and zlib.crc32(view[start:end]) != crc:
            raise _corrupt(pages, at, places, _DAMAGED)
    return headers


def _corrupt(pages: _Pages, at: int, places: Sequence[Place], reason: str) -> CorruptFileError:
    place, number = places[int(pages.chunks[at])], int(pages.numbers[at])
    if number == _DICTIONARY:
        return place.within("the dictionary page").corrupt(reason)
    return place.corrupt(reason, page=number)


def _may_have_checksum(data: pa.Buffer, offsets: Int64s) -> NDArray[np.bool_]:
    """Which pages may have a checksum: in a header it follows three numbers."""
    whole = np.frombuffer(data, np.uint8)
    at, usual = offsets, np.ones(len(offsets), np.bool_)
    for _ in range(3):  # the kind and both sizes
        usual &= whole.take(at, mode="clip") == _NUMBER
        at = _numbers(whole, at + 1)[1]
    may: NDArray[np.bool_] = ~usual | (whole.take(at, mode="clip") == _NUMBER)
    return may


def _decoded(data: pa.Buffer, pages: _Pages, starts: Int64s, places: Sequence[Place]) -> _Headers:
    """The headers of pages that start at `starts` of `data`."""
    headers, usual = _usual(data, starts)
    view = memoryview(data).cast("B")
    for at in np.flatnonzero(~usual).tolist():
        start, place = int(starts[at]), places[int(pages.chunks[at])]
        if pages.numbers[at] == _DICTIONARY:
            place = place.within("the dictionary page")
        header, body = PageHeader.decode(view[start : start + int(pages.sizes[at])], 0, place)
        headers.kinds[at] = header.kind
        headers.uncompressed[at] = header.uncompressed_size
        headers.compressed[at] = header.compressed_size
        headers.crcs[at] = _NO_CHECKSUM if header.crc is None else header.crc
        headers.values[at] = header.num_values
        headers.encodings[at] = header.encoding
        headers.bodies[at] = start + body
    return headers


def _usual(data: pa.Buffer, offsets: Int64s) -> tuple[_Headers, NDArray[np.bool_]]:
    """The headers of pages, and which are right: of those written as usual, with a checksum."""
    whole, usual = np.frombuffer(data, np.uint8), np.ones(len(offsets), np.bool_)
    at, numbers = offsets, []
    for between in _BETWEEN:
        for expected in between:
            usual &= whole.take(at, mode="clip") == expected
            at = at + 1
        if between is not _BETWEEN[-1]:
            number, at = _numbers(whole, at)
            numbers.append(number)
    uncompressed, compressed, crcs, values, encodings = numbers
    kinds = np.zeros(len(offsets), np.int64)
    crcs = crcs & 0xFFFFFFFF
    return _Headers(kinds, uncompressed, compressed, crcs, values, encodings, at), usual


def _numbers(data: NDArray[np.uint8], at: Int64s) -> tuple[Int64s, Int64s]:
    """The i32 at each place, and the places behind them; what runs off the end won't fit later."""
    value = np.zeros(len(at), np.int64)
    open_, shift = np.ones(len(at), np.bool_), 0
    while open_.any() and shift < 35:
        byte = data.take(at, mode="clip").astype(np.int64)
        value |= np.where(open_, (byte & 127) << shift, 0)
        at = at + open_
        open_ = open_ & (byte > 127)
        shift += 7
    return value >> 1 ^ -(value & 1), at
