"""A chunk's touched pages, read in spans of bounded bytes: as they lie, and once decoded.

How much a page decodes to is known from its header, but for text: in a dictionary, where it isn't
decoded (`as_dictionary`), and where only the difference to the value before is stored, where bounds
of the page are a hint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.metadata.bounds import is_decimal
from lakesplice.splicing.options import SPAN_BYTES
from lakesplice.splicing.pages.codec import with_dictionary
from lakesplice.splicing.pages.plan import runs
from lakesplice.splicing.structures.enums import Encoding, Physical
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import Int64s, OffsetIndex
from lakesplice.splicing.structures.source import SourceFile

# Few headers are longer.
_HEADER_BYTES = 256
_READ_BYTES = 4 * 1024 * 1024
# What the position of a value takes, in a dictionary or where edits are laid over.
_ROW_BYTES = 8
_WIDTHS = {
    Physical.BOOLEAN: 1,
    Physical.INT32: 4,
    Physical.INT64: 8,
    Physical.INT96: 12,
    Physical.FLOAT: 4,
    Physical.DOUBLE: 8,
}
_DECIMAL_BYTES = 16


@dataclass(frozen=True, eq=False, slots=True)
class Span:
    """Pages of one encoding and version, all with checksums or none, and what they decode to in
    bytes; `numbers` are the chunk's, `header` is that of the first.

    `uncompressed` counts their bytes in the chunk when uncompressed, headers included.
    """

    numbers: Int64s
    header: PageHeader
    buffers: Sequence[pa.Buffer]
    uncompressed: int
    decoded_bytes: int
    as_dictionary: bool


def fixed_width(leaf: Leaf) -> int | None:
    """Return what a value takes when decoded; None if that varies."""
    if leaf.physical == Physical.BYTE_ARRAY:
        return None
    known = _WIDTHS.get(Physical(leaf.physical)) if leaf.physical in _WIDTHS else None
    width = known or leaf.type_length or 1
    return max(width, _DECIMAL_BYTES) if is_decimal(leaf) else width


def read_spans(
    source: SourceFile,
    row_group: int,
    column: int,
    index: OffsetIndex,
    pages: Int64s,
    span_bytes: int = SPAN_BYTES,
) -> Iterator[Span]:
    """Yield `pages` (ascending) of a flat chunk; raises `CorruptFileError`. Blocks."""
    for few in _read_at_a_time(pages, index):
        yield from _Reader(source, row_group, column, index).spans(few, span_bytes)


def _read_at_a_time(pages: Int64s, index: OffsetIndex) -> Iterator[Int64s]:
    if len(pages):
        read = np.cumsum(index.sizes[pages]) // _READ_BYTES
        yield from np.split(pages, np.flatnonzero(np.diff(read) > 0) + 1)


class _Reader:
    def __init__(self, source: SourceFile, row_group: int, column: int, index: OffsetIndex) -> None:
        self._source, self._row_group, self._column = source, row_group, column
        self._index, self._leaf = index, source.leaf(column)
        self._place = source.place(row_group, column)
        self._rows = index.rows(source.footer.row_groups[row_group].num_rows)
        self._width = fixed_width(self._leaf)

    def spans(self, pages: Int64s, span_bytes: int) -> Iterator[Span]:
        headers, buffers, uncompressed = self._read(pages)
        decoded = [
            self._decoded_bytes(header, page)
            for header, page in zip(headers, pages.tolist(), strict=True)
        ]
        kinds = np.array([(h.encoding, h.kind, h.crc is None) for h in headers], np.int64)
        full = np.cumsum(decoded) // span_bytes
        cuts = np.flatnonzero((np.diff(kinds, axis=0) != 0).any(axis=1) | (np.diff(full) > 0)) + 1
        bounds = [0, *cuts.tolist(), len(pages)]
        for start, end in pairwise(bounds):
            yield Span(
                pages[start:end],
                headers[start],
                buffers[start:end],
                sum(uncompressed[start:end]),
                sum(decoded[start:end]),
                self._as_dictionary(headers[start]),
            )

    def _read(self, pages: Int64s) -> tuple[list[PageHeader], list[pa.Buffer], list[int]]:
        """The pages' headers, their bytes, and their sizes when uncompressed."""
        headers, buffers, uncompressed = [], [], []
        index = self._index
        for first, last in runs(pages):
            offset = int(index.offsets[first])
            run = self._source.read(offset, int(index.ends[last]) - offset)
            for page in range(first, last + 1):
                at = int(index.offsets[page]) - offset
                body = run.slice(at, int(index.sizes[page]))
                header, size = self._header(body)
                if not header.is_data or header.num_values != self._rows[page]:
                    raise self._place.corrupt("a page isn't what its index says", page=page)
                headers.append(header)
                buffers.append(body)
                uncompressed.append(header.uncompressed_size + size)
        return headers, buffers, uncompressed

    def _header(self, page: pa.Buffer) -> tuple[PageHeader, int]:
        try:
            return PageHeader.decode(
                page.slice(0, min(page.size, _HEADER_BYTES)).to_pybytes(), 0, self._place
            )
        except CorruptFileError:  # it has long statistics
            return PageHeader.decode(page.to_pybytes(), 0, self._place)

    def _as_dictionary(self, header: PageHeader) -> bool:
        return self._leaf.physical == Physical.BYTE_ARRAY and with_dictionary(header.encoding)

    def _decoded_bytes(self, header: PageHeader, page: int) -> int:
        rows = int(self._rows[page])
        if self._width is not None:
            return rows * self._width
        if with_dictionary(header.encoding):
            return rows * _ROW_BYTES
        size = header.uncompressed_size
        if header.encoding == Encoding.DELTA_BYTE_ARRAY:
            bounds = self._source.column_index(self._row_group, self._column)
            if bounds is not None:
                size = max(size, rows * len(bounds.min_values[page]))
        return size + rows * _ROW_BYTES
