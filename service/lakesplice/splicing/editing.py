"""A column chunk with new values in some rows: its touched pages are encoded anew, the others stay.

    read touched pages -> decode once -> lay the values over -> extend the dictionary -> encode once

Each page keeps its rows, its version and the kind of its encoding, so what the footer says about
encodings stays true, and pages with a dictionary stay before those without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.planning.edits import ColumnEdit
from lakesplice.splicing.codec import (
    EncodedPages,
    Style,
    decode_dictionary,
    decode_pages,
    decoded,
    encode_pages,
    with_dictionary,
    writable,
)
from lakesplice.splicing.describing import described
from lakesplice.splicing.dictionaries import (
    entries_at_first,
    extended,
    with_entries_at_first,
)
from lakesplice.splicing.enums import PageKind
from lakesplice.splicing.images import ChunkImage, Copied, Piece, dictionary_bytes
from lakesplice.splicing.laying import bits, laid_over, refused, stored
from lakesplice.splicing.options import Options, Tally
from lakesplice.splicing.page_headers import PageHeader, read_page
from lakesplice.splicing.page_index import Int64s, OffsetIndex
from lakesplice.splicing.plan import dictionary_decayed, dictionary_ends, plan_chunk, runs
from lakesplice.splicing.reasons import Reason
from lakesplice.splicing.rewriting import rewritten_chunk
from lakesplice.splicing.source import SourceFile


class _EncodeWhole(Exception):
    """Found on the way: the chunk is to be encoded whole."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def check_editable(source: SourceFile, row_group: int, column: int) -> None:
    """Raise `UnsupportedError` with a `reason` where `edited_chunk` would; reads nothing."""
    reason = source.refusal(row_group, column)
    if reason not in (None, Reason.NO_PAGE_INDEX):
        raise refused(source, row_group, column, reason)
    if not writable(source.leaf(column), source.footer.created_by, source.place(row_group, column)):
        raise refused(source, row_group, column, Reason.OTHER_LAYOUT)


def edited_chunk(
    source: SourceFile, row_group: int, column: int, edit: ColumnEdit, options: Options
) -> ChunkImage:
    """Return a flat chunk with `edit` laid over; its rows count from the row group's first.

    Blocks, may be called by several threads. Raises `CorruptFileError` where pages can't be
    decoded; the caller has seen to `check_editable`.
    """
    index = source.offset_index(row_group, column)
    if index is None:
        return rewritten_chunk(source, row_group, column, edit, Reason.NO_PAGE_INDEX)
    dictionary = dictionary_bytes(source, row_group, column)
    plan = plan_chunk(index.first_rows, edit.rows, has_dictionary=dictionary > 0, options=options)
    if plan.whole is not None:
        return rewritten_chunk(source, row_group, column, edit, plan.whole)
    try:
        chunk = _Chunk(source, row_group, column, index, dictionary, plan.pages)
        return chunk.edited(edit, options)
    except _EncodeWhole as found:
        return rewritten_chunk(source, row_group, column, edit, found.reason)


@dataclass(frozen=True, eq=False)
class _Touched:
    """The touched pages: `first_rows` and `rows` in the row group, `starts` in what was decoded."""

    headers: list[PageHeader]
    old_uncompressed: int
    values: pa.Array
    first_rows: Int64s
    rows: Int64s
    starts: Int64s

    def laid_over(self, edit: ColumnEdit, values: pa.Array) -> pa.Array:
        page = np.searchsorted(self.first_rows, edit.rows, side="right") - 1
        at = edit.rows - self.first_rows[page] + self.starts[page]
        return laid_over(self.values, at, values)

    def edited_in(self, pages: Sequence[int], edit: ColumnEdit, values: pa.Array) -> pa.Array:
        """Those of the edit's values that come into some of the pages."""
        if len(pages) == len(self.rows):
            return values
        page = np.searchsorted(self.first_rows, edit.rows, side="right") - 1
        return values.filter(pa.array(np.isin(page, np.array(pages))))

    def page(self, values: pa.Array, number: int) -> pa.Array:
        return values.slice(int(self.starts[number]), int(self.rows[number]))


class _Chunk:
    """One chunk being edited."""

    def __init__(
        self,
        source: SourceFile,
        row_group: int,
        column: int,
        index: OffsetIndex,
        dictionary: int,
        pages: Int64s,
    ) -> None:
        self._source, self._row_group, self._column = source, row_group, column
        self._index, self._pages, self._dictionary_bytes = index, pages, dictionary
        self._chunk, self._leaf = source.chunk(row_group, column), source.leaf(column)
        self._place = source.place(row_group, column)
        self._created_by = source.footer.created_by
        self._dictionary_page = source.read(self._chunk.start, dictionary) if dictionary else None

    def edited(self, edit: ColumnEdit, options: Options) -> ChunkImage:
        touched = self._read()
        self._check_order(touched)
        values = stored(edit.values, touched.values.type)
        new = touched.laid_over(edit, values)
        encoded: list[EncodedPages] = []
        chosen: list[list[int]] = []
        grown: EncodedPages | None = None
        kinds = [header.encoding for header in touched.headers]
        for kind in dict.fromkeys(kinds):
            mine = [at for at, other in enumerate(kinds) if other == kind]
            arrays = [touched.page(new, at) for at in mine]
            style = Style.of(self._chunk, touched.headers[mine[0]])
            old = dictionary = None
            if with_dictionary(kind):
                old = self._dictionary()
                dictionary = extended(old, touched.edited_in(mine, edit, values))
            pages = encode_pages(self._leaf, arrays, kind, style, self._place, dictionary)
            if pages is None:
                raise refused(self._source, self._row_group, self._column, Reason.OTHER_LAYOUT)
            if dictionary is not None and old is not None:
                self._check_dictionary(pages, dictionary)
                grown = pages if len(dictionary) > len(old) else grown
            if options.verify:
                self._verify(pages, [touched.page(new, at) for at in mine])
            encoded.append(pages)
            chosen.append(mine)
        return self._image(touched, new, encoded, chosen, grown)

    def _verify(self, pages: EncodedPages, meant: Sequence[pa.Array]) -> None:
        values = pa.concat_arrays(meant)
        written = decoded(self._leaf, self._chunk, pages, len(values), self._place)
        if not bits(written).equals(bits(values)):
            raise self._place.corrupt("new pages don't hold what was meant; this is a defect")

    def _read(self) -> _Touched:
        buffers, headers = [], []
        uncompressed = 0
        index, source = self._index, self._source
        for first, last in runs(self._pages):
            offset = int(index.offsets[first])
            data = source.read(offset, int(index.ends[last]) - offset)
            buffers.append(data)
            view = data.to_pybytes()
            for page in range(first, last + 1):
                at = int(index.offsets[page]) - offset
                header, end = PageHeader.decode(view, at, self._place)
                if not header.is_data:
                    raise self._place.corrupt("its offset index names no data page", page=page)
                headers.append(header)
                uncompressed += header.uncompressed_size + end - at
        rows = index.rows(source.footer.row_groups[self._row_group].num_rows)[self._pages]
        for header, count in zip(headers, rows, strict=True):
            if header.num_values != count:
                raise self._place.corrupt("a page has other rows than its index says")
        values = decode_pages(
            self._leaf,
            self._chunk,
            self._dictionary_page,
            buffers,
            int(rows.sum()),
            self._created_by,
            self._place,
        )
        first_rows = index.first_rows[self._pages]
        return _Touched(headers, uncompressed, values, first_rows, rows, np.cumsum(rows) - rows)

    def _check_order(self, touched: _Touched) -> None:
        """Pages stay in the law's order if they were."""
        if self._dictionary_page is None:
            return
        stats = self._chunk.encoding_stats
        if stats is not None and all(
            with_dictionary(count.encoding)
            for count in stats
            if count.kind in (PageKind.DATA, PageKind.DATA_V2)
        ):
            flags = [with_dictionary(header.encoding) for header in touched.headers]
        else:
            end, offsets = self._chunk.end, self._index.offsets.tolist()
            headers = (read_page(self._source.source, at, end, self._place) for at in offsets)
            flags = [with_dictionary(page.header.encoding) for page in headers]
        if dictionary_ends(flags) is None:
            raise _EncodeWhole(Reason.PAGES_OUT_OF_ORDER)

    def _dictionary(self) -> pa.Array:
        page = self._dictionary_page
        if page is None:
            raise self._place.corrupt("a page refers to a dictionary that isn't there")
        return decode_dictionary(self._leaf, self._chunk, page, self._created_by, self._place)

    def _check_dictionary(self, pages: EncodedPages, dictionary: pa.Array) -> None:
        if pages.dictionary_entries != len(dictionary):
            raise _EncodeWhole(Reason.DICTIONARY_REPEATS)
        if dictionary_decayed(
            len(dictionary),
            entries_at_first(self._chunk) or self._old_entries(),
            pages.dictionary_uncompressed,
            self._chunk.compressed_size,
        ):
            raise _EncodeWhole(Reason.DICTIONARY_DECAYED)

    def _old_entries(self) -> int:
        assert self._dictionary_page is not None
        header, _ = PageHeader.decode(self._dictionary_page.to_pybytes(), 0, self._place)
        return header.num_values

    def _image(
        self,
        touched: _Touched,
        new: pa.Array,
        encoded: Sequence[EncodedPages],
        chosen: Sequence[Sequence[int]],
        grown: EncodedPages | None,
    ) -> ChunkImage:
        pages: list[pa.Buffer] = [pa.py_buffer(b"")] * len(self._pages)
        for part, mine in zip(encoded, chosen, strict=True):
            for at, page in zip(mine, part.slices(), strict=True):
                pages[at] = page
        chunk = self._chunk
        uncompressed = sum(part.uncompressed for part in encoded) - touched.old_uncompressed
        head = self._dictionary_bytes
        pieces: list[Piece] = [Copied(self._source, chunk.start, head)] if head else []
        if grown is not None and grown.dictionary is not None:
            entries = entries_at_first(chunk) or self._old_entries()
            chunk = with_entries_at_first(chunk, entries)
            header, start = PageHeader.decode(
                self._dictionary_page.to_pybytes() if self._dictionary_page else b"", 0, self._place
            )
            uncompressed += grown.dictionary_uncompressed - header.uncompressed_size - start
            head = grown.dictionary.size
            pieces = [grown.dictionary]
        sizes = self._index.sizes.copy()
        sizes[self._pages] = [page.size for page in pages]
        index = OffsetIndex(head + np.cumsum(sizes) - sizes, sizes, self._index.first_rows)
        pieces += self._pieces(pages)
        bounds = described(
            self._source, self._row_group, self._column, self._pages, encoded, chosen
        )
        size = head + int(sizes.sum())
        new_bytes = sum(page.size for page in pages) + (head if grown is not None else 0)
        return ChunkImage(
            chunk=replace(
                chunk,
                compressed_size=size,
                uncompressed_size=chunk.uncompressed_size + uncompressed,
                statistics=bounds.statistics(touched.values.null_count, new.null_count),
                size_statistics=None,
            ),
            pieces=tuple(pieces),
            dictionary_bytes=head,
            index=index,
            column_index=bounds.encoded,
            bloom=None,
            tally=Tally(
                pages_copied=len(index) - len(pages),
                pages_encoded=len(pages),
                bytes_copied=size - new_bytes,
                bytes_encoded=new_bytes,
                bloom_filters_dropped=int(bool(chunk.bloom_offset)),
            ),
        )

    def _pieces(self, new: Sequence[pa.Buffer]) -> list[Piece]:
        """The data pages in their order: runs of untouched ones, and the new."""
        pieces: list[Piece] = []
        index = self._index

        def copy(first: int, last: int) -> None:
            # Page by page where the writer left gaps; they usually touch.
            for run_first, run_last in _touching(index, first, last):
                start = int(index.offsets[run_first])
                pieces.append(Copied(self._source, start, int(index.ends[run_last]) - start))

        done = 0
        for page, data in zip(self._pages.tolist(), new, strict=True):
            if page > done:
                copy(done, page - 1)
            pieces.append(data)
            done = page + 1
        if done < len(index):
            copy(done, len(index) - 1)
        return pieces


def _touching(index: OffsetIndex, first: int, last: int) -> list[tuple[int, int]]:
    gaps = np.flatnonzero(index.offsets[first + 1 : last + 1] != index.ends[first:last]) + first
    bounds = [first, *(gaps + 1).tolist(), last + 1]
    return [(bounds[at], bounds[at + 1] - 1) for at in range(len(bounds) - 1)]
