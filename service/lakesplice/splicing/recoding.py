"""Some pages of a chunk, decoded once, new values laid over, and encoded once.

Each page keeps its rows, its version and the kind of its encoding. A chunk's touched pages are
taken in spans, so that no more than a span is decoded at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.planning.edits import ColumnEdit
from lakesplice.splicing.codec import (
    EncodedPages,
    Style,
    decode_pages,
    encode_pages,
    with_dictionary,
)
from lakesplice.splicing.laying import bits, laid_over, refused, stored
from lakesplice.splicing.page_headers import PageHeader
from lakesplice.splicing.page_index import Int64s, OffsetIndex
from lakesplice.splicing.plan import runs
from lakesplice.splicing.reasons import Reason
from lakesplice.splicing.source import SourceFile

_SPAN_ROWS = 1 << 20
_SPAN_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, eq=False, slots=True)
class Recoded:
    """Pages encoded anew: `parts[i]` are those numbered `pages[i]` in the chunk.

    `uncompressed` is by how much they grew; `dictionary` is their dictionary's page, if they
    needed one of their own; nulls are counted before and after.
    """

    parts: Sequence[EncodedPages]
    pages: Sequence[Int64s]
    uncompressed: int
    nulls_before: int
    nulls_after: int


@dataclass(frozen=True, eq=False, slots=True)
class Dictionary:
    """A chunk's dictionary: the page as it lies in the source, and the entries wanted, of which the
    first `old` are the page's.
    """

    page: pa.Buffer
    entries: pa.Array
    old: int

    @property
    def grown(self) -> bool:
        """Whether more is wanted than the page holds."""
        return len(self.entries) > self.old


def spans(pages: Int64s, index: OffsetIndex, num_rows: int) -> Iterator[Int64s]:
    """Yield pages (ascending) in parts of bounded rows and bytes, a page at least."""
    if not len(pages):
        return
    rows = np.cumsum(index.rows(num_rows)[pages]) // _SPAN_ROWS
    size = np.cumsum(index.sizes[pages]) // _SPAN_BYTES
    cuts = np.flatnonzero((np.diff(rows) > 0) | (np.diff(size) > 0)) + 1
    yield from np.split(pages, cuts)


class Recoder:
    """Encodes pages of one flat chunk anew."""

    def __init__(
        self,
        source: SourceFile,
        row_group: int,
        column: int,
        index: OffsetIndex,
        page: pa.Buffer | None,
        dictionary: Dictionary | None,
    ) -> None:
        self._source, self._row_group, self._column = source, row_group, column
        self._index, self._page, self._dictionary = index, page, dictionary
        self._chunk, self._leaf = source.chunk(row_group, column), source.leaf(column)
        self._place = source.place(row_group, column)
        self._rows = index.rows(source.footer.row_groups[row_group].num_rows)

    def recode(self, pages: Int64s, edit: ColumnEdit, *, verify: bool) -> Recoded:
        """Return `pages` with those edits that are for them; raises `CorruptFileError`."""
        first_rows, rows = self._index.first_rows[pages], self._rows[pages]
        starts = np.cumsum(rows) - rows
        headers, buffers, uncompressed = self._read(pages)
        values = self._decoded(self._page, buffers, int(rows.sum()))
        new = laid_over(values, *_placed(edit, first_rows, rows, starts, values.type))
        kinds = [header.encoding for header in headers]
        parts, numbers = [], []
        for kind in dict.fromkeys(kinds):
            mine = [at for at, other in enumerate(kinds) if other == kind]
            arrays = [new.slice(int(starts[at]), int(rows[at])) for at in mine]
            part = self._encoded(arrays, kind, Style.of(self._chunk, headers[mine[0]]))
            if verify:
                self._verify(part, kind, arrays)
            parts.append(part)
            numbers.append(pages[mine])
            uncompressed -= part.uncompressed
        return Recoded(parts, numbers, -uncompressed, values.null_count, new.null_count)

    def _read(self, pages: Int64s) -> tuple[list[PageHeader], list[pa.Buffer], int]:
        """The pages' headers, their bytes in runs, and their size when uncompressed."""
        headers, buffers, uncompressed = [], [], 0
        index = self._index
        for first, last in runs(pages):
            offset = int(index.offsets[first])
            buffer = self._source.read(offset, int(index.ends[last]) - offset)
            buffers.append(buffer)
            data = buffer.to_pybytes()
            for page in range(first, last + 1):
                at = int(index.offsets[page]) - offset
                header, end = PageHeader.decode(data, at, self._place)
                if not header.is_data or header.num_values != self._rows[page]:
                    raise self._place.corrupt("a page isn't what its index says", page=page)
                headers.append(header)
                uncompressed += header.uncompressed_size + end - at
        return headers, buffers, uncompressed

    def _decoded(
        self, dictionary: pa.Buffer | None, pages: Sequence[pa.Buffer], rows: int
    ) -> pa.Array:
        created_by = self._source.footer.created_by
        return decode_pages(
            self._leaf, self._chunk, dictionary, pages, rows, created_by, self._place
        )

    def _encoded(self, arrays: Sequence[pa.Array], kind: int, style: Style) -> EncodedPages:
        entries = None
        if with_dictionary(kind):
            if self._dictionary is None:
                raise self._place.corrupt("a page refers to a dictionary that isn't there")
            entries = self._dictionary.entries
        part = encode_pages(self._leaf, arrays, kind, style, self._place, entries)
        if part is None:
            raise refused(self._source, self._row_group, self._column, Reason.OTHER_LAYOUT)
        return part

    def _verify(self, part: EncodedPages, kind: int, meant: Sequence[pa.Array]) -> None:
        """Decode with the dictionary that will stand before them."""
        page, dictionary = None, self._dictionary
        if with_dictionary(kind) and dictionary is not None:
            page = part.dictionary if dictionary.grown else dictionary.page
            if part.dictionary_entries != len(dictionary.entries):
                return  # the caller will not use them
        values = pa.concat_arrays(meant)
        if not bits(self._decoded(page, [part.pages], len(values))).equals(bits(values)):
            raise self._place.corrupt("new pages don't hold what was meant; this is a defect")


def _placed(
    edit: ColumnEdit, first_rows: Int64s, rows: Int64s, starts: Int64s, kind: pa.DataType
) -> tuple[Int64s, pa.Array]:
    """Those edits that are for some pages: where in what was decoded, and the values."""
    start = int(np.searchsorted(edit.rows, first_rows[0]))
    stop = int(np.searchsorted(edit.rows, first_rows[-1] + rows[-1]))
    mine = edit.rows[start:stop]
    page = np.searchsorted(first_rows, mine, side="right") - 1
    values = stored(edit.values.slice(start, stop - start), kind)
    return mine - first_rows[page] + starts[page], values
