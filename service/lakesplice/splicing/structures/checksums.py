"""Pages that are copied are looked at before: a damaged one would be handed on for ever.

A page's checksum covers its bytes after compression, not its header (parquet.thrift, `PageHeader`),
so the header is held against what index and footer say: rows, encodings, and, in our own files, the
sum of the sizes. Pages without a checksum are copied on trust, as every reader reads them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.structures.footer import Chunk
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import Int64s, OffsetIndex
from lakesplice.splicing.structures.place import Place
from lakesplice.splicing.structures.source import SourceFile

_OURS = b"lakesplice"  # a key of the metadata of files that we wrote
_BLOCK_BYTES = 4 * 1024 * 1024
# A header of a first-version data page with a checksum, as nearly everyone writes it: the bytes
# before and behind its numbers. Decoded for all pages at once it costs a tenth.
_BETWEEN = (b"\x15\x00\x15", b"\x15", b"\x15", b"\x1c\x15", b"\x15", b"\x15\x06\x15\x06\x00\x00")
_NUMBER = 0x15  # the header of an i32, a field further
_NO_CHECKSUM = -1


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


def check_chunk(
    source: SourceFile, row_group: int, column: int, index: OffsetIndex | None, num_rows: int | None
) -> None:
    """Raise `CorruptFileError` if a page isn't what its checksum, the index or the footer say.

    `num_rows` is None for a nested column, whose pages hold other numbers of values than of rows.
    Blocks; reads the chunk, a few megabytes at a time. In our own files each page has a checksum;
    of others' pages without one the header is looked at if a neighbour has one.
    """
    if index is None:
        _check_one_by_one(source, row_group, column)
        return
    chunk, place = source.chunk(row_group, column), source.place(row_group, column)
    seen = _Seen(ours=source.key_value(_OURS) is not None)
    head = int(index.offsets[0]) - chunk.start if len(index) else 0
    if head:
        data = source.read(chunk.start, head)
        zero = np.zeros(1, np.int64)
        _check_block(data, zero, zero + head, None, seen, place.within("the dictionary page"))
    rows = None if num_rows is None else index.rows(num_rows)
    for start, end in _blocks(index.sizes):
        base = int(index.offsets[start])
        data = source.read(base, int(index.ends[end - 1]) - base)
        offsets, sizes = index.offsets[start:end] - base, index.sizes[start:end]
        _check_block(data, offsets, sizes, None if rows is None else rows[start:end], seen, place)
    if seen.ours:
        _check_sums(chunk, seen, place)


def _check_one_by_one(source: SourceFile, row_group: int, column: int) -> None:
    place = source.place(row_group, column)
    for number, page in enumerate(source.pages(row_group, column)):
        crc = page.header.crc
        if crc is None:
            continue
        body = source.read(page.body_offset, page.header.compressed_size)
        if zlib.crc32(memoryview(body)) != crc:
            raise _damaged(place, number)


@dataclass(slots=True)
class _Seen:
    """What was found in a chunk's pages so far; each has a checksum in files of `ours`."""

    ours: bool
    uncompressed: int = 0
    encodings: Counter[tuple[int, int]] = field(default_factory=Counter)


def _check_block(
    data: pa.Buffer,
    offsets: Int64s,
    sizes: Int64s,
    rows: Int64s | None,
    seen: _Seen,
    place: Place,
) -> None:
    if not seen.ours and not _any_checksum(data, offsets):
        return
    pages = _usual(data, offsets)
    if pages is None:
        pages = _unusual(data, offsets, sizes, place)
    if seen.ours and (pages.crcs == _NO_CHECKSUM).any():
        raise place.corrupt("a page has no checksum, though all were given one")
    _check_pages(data, pages, offsets + sizes, rows, place)
    seen.uncompressed += int((pages.uncompressed + pages.bodies - offsets).sum())
    seen.encodings.update(zip(pages.kinds.tolist(), pages.encodings.tolist(), strict=True))


def _check_sums(chunk: Chunk, seen: _Seen, place: Place) -> None:
    if seen.uncompressed != chunk.uncompressed_size:
        raise place.corrupt("its pages have another size than the footer says")
    stats = chunk.encoding_stats
    if stats is not None and seen.encodings != Counter(
        {(s.kind, s.encoding): s.count for s in stats}
    ):
        raise place.corrupt("its pages have other encodings than the footer says")


def _blocks(sizes: Int64s) -> list[tuple[int, int]]:
    """Ranges of neighbours of about _BLOCK_BYTES, one at least in each."""
    if not len(sizes):
        return []
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_BYTES)) + 1
    bounds = [0, *cuts.tolist(), len(sizes)]
    return [(bounds[at], bounds[at + 1]) for at in range(len(bounds) - 1)]


def _check_pages(
    data: pa.Buffer, pages: _Headers, ends: Int64s, rows: Int64s | None, place: Place
) -> None:
    # Nothing lies between the header, the bytes and the next page.
    wrong = pages.bodies + pages.compressed != ends
    if rows is not None:
        wrong |= pages.values != rows
    if wrong.any():
        number = int(np.argmax(wrong))
        raise place.corrupt("a page's header isn't what its index says", page=number)
    view = memoryview(data)
    bodies, crcs = pages.bodies.tolist(), pages.crcs.tolist()
    for number, (start, end, crc) in enumerate(zip(bodies, ends.tolist(), crcs, strict=True)):
        if crc != _NO_CHECKSUM and zlib.crc32(view[start:end]) != crc:
            raise _damaged(place, number)


def _damaged(place: Place, page: int) -> CorruptFileError:
    return place.corrupt("a page's bytes are not what its checksum says", page=page)


def _any_checksum(data: pa.Buffer, offsets: Int64s) -> bool:
    """Whether a page may have a checksum: in a header it follows three numbers."""
    whole = np.frombuffer(data, np.uint8)
    at, usual = offsets, np.ones(len(offsets), np.bool_)
    for _ in range(3):  # the kind and both sizes
        usual &= whole.take(at, mode="clip") == _NUMBER
        at = _numbers(whole, at + 1)[1]
    return bool((~usual | (whole.take(at, mode="clip") == _NUMBER)).any())


def _usual(data: pa.Buffer, offsets: Int64s) -> _Headers | None:
    """The headers of pages if all are written as usual, with a checksum."""
    whole = np.frombuffer(data, np.uint8)
    at, numbers = offsets, []
    for between in _BETWEEN:
        for expected in between:
            if (whole.take(at, mode="clip") != expected).any():
                return None
            at = at + 1
        if between is not _BETWEEN[-1]:
            number, at = _numbers(whole, at)
            numbers.append(number)
    uncompressed, compressed, crcs, values, encodings = numbers
    kinds = np.zeros(len(offsets), np.int64)
    crcs = crcs & 0xFFFFFFFF
    return _Headers(kinds, uncompressed, compressed, crcs, values, encodings, at)


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


def _unusual(data: pa.Buffer, offsets: Int64s, sizes: Int64s, place: Place) -> _Headers:
    """The headers of any pages."""
    found = []
    for at, size in zip(offsets.tolist(), sizes.tolist(), strict=True):
        header, body = PageHeader.decode(data.slice(at, size).to_pybytes(), 0, place)
        found.append(
            (
                int(header.kind),
                header.uncompressed_size,
                header.compressed_size,
                _NO_CHECKSUM if header.crc is None else header.crc,
                header.num_values,
                header.encoding,
                at + body,
            )
        )
    return _Headers(*np.array(found, np.int64).T)
