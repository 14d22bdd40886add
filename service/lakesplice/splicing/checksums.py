"""Pages that are copied are looked at before: a damaged one would be handed on for ever.

A page's checksum covers its bytes after compression, not its header (parquet.thrift, `PageHeader`),
so the header is held against what index and footer say: rows, encodings, and, in our own files, the
sum of the sizes. Pages without a checksum are copied on trust, as every reader reads them.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass

import numpy as np

from lakesplice.splicing.enums import PageKind
from lakesplice.splicing.footer import Chunk
from lakesplice.splicing.page_headers import PageHeader
from lakesplice.splicing.page_index import Int64s, OffsetIndex
from lakesplice.splicing.place import Place
from lakesplice.splicing.source import SourceFile

_OURS = b"lakesplice"  # a key of the metadata of files that we wrote
_BLOCK_BYTES = 4 * 1024 * 1024
# The header of a first-version data page with a checksum, as nearly everyone writes it: kind, both
# sizes, checksum; rows, encoding, levels in RLE. Decoding it whole costs ten times as much.
_I32 = rb"\x15([\x80-\xff]*[\x00-\x7f])"
_HEADER = re.compile(
    rb"\x15\x00" + _I32 * 3 + rb"(?:\x1c|\x2c)" + _I32 * 2 + rb"\x15\x06\x15\x06\x00\x00", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a header says; `body` is where the page's bytes start."""

    kind: int
    uncompressed: int
    compressed: int
    crc: int | None
    values: int
    encoding: int
    body: int


def check_chunk(
    source: SourceFile, row_group: int, column: int, index: OffsetIndex, num_rows: int
) -> None:
    """Raise `CorruptFileError` if a page of a flat chunk isn't what its checksum, the index or the
    footer say.

    Blocks; reads the chunk, a few megabytes at a time. A chunk whose first page has no checksum is
    not looked at further.
    """
    chunk, place = source.chunk(row_group, column), source.place(row_group, column)
    encodings: Counter[tuple[int, int]] = Counter()
    uncompressed = 0
    head = int(index.offsets[0]) - chunk.start if len(index) else 0
    if head:
        data = source.read(chunk.start, head).to_pybytes()
        facts = _checked(data, 0, head, place.within("the dictionary page"))
        if facts.crc is None:
            return
        uncompressed += facts.uncompressed + facts.body
        encodings[facts.kind, facts.encoding] += 1
    rows = index.rows(num_rows)
    for start, end in _blocks(index.sizes):
        base = int(index.offsets[start])
        data = source.read(base, int(index.ends[end - 1]) - base).to_pybytes()
        for page in range(start, end):
            at, size = int(index.offsets[page]) - base, int(index.sizes[page])
            facts = _checked(data, at, size, place.within(f"page {page}"))
            if facts.crc is None:
                return
            if facts.values != rows[page]:
                raise place.corrupt("a page has other rows than its index says", page=page)
            uncompressed += facts.uncompressed + facts.body - at
            encodings[facts.kind, facts.encoding] += 1
    if source.key_value(_OURS) is not None:
        _check_sums(chunk, uncompressed, encodings, place)


def _check_sums(
    chunk: Chunk, uncompressed: int, encodings: Counter[tuple[int, int]], place: Place
) -> None:
    if uncompressed != chunk.uncompressed_size:
        raise place.corrupt("its pages have another size than the footer says")
    stats = chunk.encoding_stats
    if stats is not None and encodings != Counter({(s.kind, s.encoding): s.count for s in stats}):
        raise place.corrupt("its pages have other encodings than the footer says")


def _blocks(sizes: Int64s) -> list[tuple[int, int]]:
    """Ranges of neighbours of about _BLOCK_BYTES, one at least in each."""
    if not len(sizes):
        return []
    cuts = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_BYTES)) + 1
    bounds = [0, *cuts.tolist(), len(sizes)]
    return [(bounds[at], bounds[at + 1]) for at in range(len(bounds) - 1)]


def _checked(data: bytes, at: int, size: int, place: Place) -> _Facts:
    facts = _facts(data, at, at + size, place)
    if facts.crc is None:
        return facts
    # Nothing lies between the header, the bytes and the next page.
    if facts.body + facts.compressed != at + size:
        raise place.corrupt("a page has another size than its index says")
    if zlib.crc32(memoryview(data)[facts.body : at + size]) != facts.crc:
        raise place.corrupt("a page's bytes are not what its checksum says")
    return facts


def _facts(data: bytes, at: int, end: int, place: Place) -> _Facts:
    found = _HEADER.match(data, at, end)
    if found is not None:
        numbers = [_zigzag(found[group]) for group in range(1, 6)]
        crc = numbers[2] & 0xFFFFFFFF
        return _Facts(0, numbers[0], numbers[1], crc, numbers[3], numbers[4], found.end())
    header, body = PageHeader.decode(data[at:end], 0, place)
    return _Facts(
        kind=int(header.kind),
        uncompressed=header.uncompressed_size,
        compressed=header.compressed_size,
        crc=header.crc,
        values=-1 if header.kind is PageKind.INDEX else header.num_values,
        encoding=header.encoding,
        body=at + body,
    )


def _zigzag(varint: bytes) -> int:
    value = 0
    for byte in reversed(varint):
        value = value << 7 | byte & 127
    return value >> 1 ^ -(value & 1)
