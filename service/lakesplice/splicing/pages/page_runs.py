"""Reads a chunk's touched pages in spans of bounded bytes, both encoded and decoded.

The header shows the decoded size of a page, with two exceptions, both for text: pages with a
dictionary, which are not decoded (`as_dictionary`), and pages that store only the difference to the
previous value, for which the page's bounds give an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.splicing.metadata.bounds import is_decimal
from lakesplice.splicing.options import SPAN_BYTES
from lakesplice.splicing.pages.page_encoding import with_dictionary
from lakesplice.splicing.pages.plan import runs
from lakesplice.splicing.structures.enums import Encoding, PageKind, PhysicalType
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.structures.many_headers import (
    NO_CHECKSUM,
    HeaderArrays,
    decode_headers,
    joined_headers,
)
from lakesplice.splicing.structures.page_headers import PageHeader
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile

_READ_BYTES = 4 * 1024 * 1024
# The bytes of a value's position, in a dictionary or while edits are applied.
_ROW_BYTES = 8
_WIDTHS = {
    PhysicalType.BOOLEAN: 1,
    PhysicalType.INT32: 4,
    PhysicalType.INT64: 8,
    PhysicalType.INT96: 12,
    PhysicalType.FLOAT: 4,
    PhysicalType.DOUBLE: 8,
}
_DECIMAL_BYTES = 16
_IS_DATA = (PageKind.DATA, PageKind.DATA_V2)


@dataclass(frozen=True, eq=False, slots=True)
class PageRun:
    """Pages of one encoding and version, either all with checksums or none.

    `numbers` are the pages' numbers in the chunk, and `header` is the first page's. `decoded_bytes`
    is the size of their values; `uncompressed` is the size of the uncompressed pages, headers
    included.
    """

    numbers: Integers
    header: PageHeader
    buffers: Sequence[pa.Buffer]
    uncompressed: int
    decoded_bytes: int
    as_dictionary: bool


def fixed_width(leaf: Leaf) -> int | None:
    """Return the bytes of a decoded value; None if they vary."""
    if leaf.physical == PhysicalType.BYTE_ARRAY:
        return None
    known = _WIDTHS.get(PhysicalType(leaf.physical)) if leaf.physical in _WIDTHS else None
    width = known or leaf.type_length or 1
    return max(width, _DECIMAL_BYTES) if is_decimal(leaf) else width


def read_spans(
    source: SourceFile,
    row_group: int,
    column: int,
    index: OffsetIndex,
    pages: Integers,
    span_bytes: int = SPAN_BYTES,
) -> Iterator[PageRun]:
    """Yield `pages` (ascending) of a flat chunk in spans. Blocks; raises `CorruptFileError`."""
    for few in _read_at_a_time(pages, index):
        yield from _Reader(source, row_group, column, index).spans(few, span_bytes)


def _read_at_a_time(pages: Integers, index: OffsetIndex) -> Iterator[Integers]:
    if len(pages):
        read = np.cumsum(index.sizes[pages]) // _READ_BYTES
        yield from np.split(pages, np.flatnonzero(np.diff(read) > 0) + 1)


@dataclass(frozen=True, eq=False, slots=True)
class _Run:
    """Neighbouring pages from number `first` on, at [start, end) of `data`; in their headers the
    uncompressed sizes include the headers.
    """

    first: int
    data: pa.Buffer
    starts: Integers
    ends: Integers
    headers: HeaderArrays

    def bytes(self, pages: Integers) -> pa.Buffer | None:
        """Return the bytes of `pages`, which must be consecutive pages of this run."""
        start, end = (
            np.searchsorted(pages, at) for at in (self.first, self.first + len(self.starts))
        )
        if start == end:
            return None
        at = int(self.starts[pages[start] - self.first])
        return self.data.slice(at, int(self.ends[pages[end - 1] - self.first]) - at)


class _Reader:
    def __init__(self, source: SourceFile, row_group: int, column: int, index: OffsetIndex) -> None:
        self._source, self._row_group, self._column = source, row_group, column
        self._index, self._leaf = index, source.leaf(column)
        self._file_part = source.file_part(row_group, column)
        self._rows = index.rows(source.footer.row_groups[row_group].num_rows)
        self._width = fixed_width(self._leaf)

    def spans(self, pages: Integers, span_bytes: int) -> Iterator[PageRun]:
        read = self._read([*runs(pages)])
        headers = joined_headers([run.headers for run in read])
        decoded = self._decoded_bytes(headers, pages)
        kinds = np.stack((headers.encodings, headers.kinds, headers.crcs == NO_CHECKSUM))
        full = np.cumsum(decoded) // span_bytes
        cuts = np.flatnonzero((np.diff(kinds) != 0).any(axis=0) | (np.diff(full) > 0)) + 1
        bounds = [0, *cuts.tolist(), len(pages)]
        for start, end in pairwise(bounds):
            numbers = pages[start:end]
            buffers = [found for run in read if (found := run.bytes(numbers)) is not None]
            header, _ = PageHeader.decode(memoryview(buffers[0]).cast("B"), 0, self._file_part)
            yield PageRun(
                numbers,
                header,
                buffers,
                int(headers.uncompressed[start:end].sum()),
                int(decoded[start:end].sum()),
                self._as_dictionary(header.encoding),
            )

    def _read(self, wanted: Sequence[tuple[int, int]]) -> list[_Run]:
        ends = self._index.ends
        starts = [int(self._index.offsets[first]) for first, _ in wanted]
        ranges = [(at, int(ends[last]) - at) for at, (_, last) in zip(starts, wanted, strict=True)]
        found = self._source.read_all(ranges)
        return [self._run(*run, data) for run, data in zip(wanted, found, strict=True)]

    def _run(self, first: int, last: int, data: pa.Buffer) -> _Run:
        index, base = self._index, int(self._index.offsets[first])
        starts, ends = index.offsets[first : last + 1] - base, index.ends[first : last + 1] - base
        headers = decode_headers(data, starts, ends, lambda _: self._file_part)
        wrong = (headers.values != self._rows[first : last + 1]) | ~np.isin(headers.kinds, _IS_DATA)
        if wrong.any():
            page = first + int(np.argmax(wrong))
            raise self._file_part.corrupt("a page differs from what its index says", page=page)
        whole = replace(headers, uncompressed=headers.uncompressed + headers.bodies - starts)
        return _Run(first, data, starts, ends, whole)

    def _as_dictionary(self, encoding: int) -> bool:
        return self._leaf.physical == PhysicalType.BYTE_ARRAY and with_dictionary(encoding)

    def _decoded_bytes(self, headers: HeaderArrays, pages: Integers) -> Integers:
        rows = self._rows[pages]
        if self._width is not None:
            return rows * self._width
        sizes = headers.uncompressed.copy()
        differences = np.flatnonzero(headers.encodings == Encoding.DELTA_BYTE_ARRAY)
        bounds = (
            self._source.column_index(self._row_group, self._column) if len(differences) else None
        )
        if bounds is not None:
            for at in differences.tolist():
                shortest = len(bounds.min_values[pages[at]])
                sizes[at] = max(sizes[at], rows[at] * shortest)
        sizes[[with_dictionary(kind) for kind in headers.encodings.tolist()]] = 0
        return sizes + rows * _ROW_BYTES
