"""Edits a column chunk in some rows: re-encodes the touched pages and copies the others.

    extend the dictionary -> re-encode touched pages, span by span -> describe the chunk

What the footer says about encodings stays true, and pages with a dictionary stay before those
without.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.planning.rows.edits import ColumnEdit
from lakesplice.splicing.columns.chunk_statistics import described
from lakesplice.splicing.columns.rewriting import rewritten_chunk
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.metadata.encodings import with_new_pages_counted
from lakesplice.splicing.options import Options, SpliceCounts
from lakesplice.splicing.output.images import ChunkImage, CopiedRange, Piece, dictionary_bytes
from lakesplice.splicing.pages.dictionaries import (
    entries_at_first,
    extended,
    with_entries_at_first,
)
from lakesplice.splicing.pages.memory import MemoryLimits, part_of
from lakesplice.splicing.pages.new_values import refused, stored
from lakesplice.splicing.pages.page_decoding import decode_dictionary
from lakesplice.splicing.pages.page_encoding import EncodedPages, with_dictionary, writable
from lakesplice.splicing.pages.plan import (
    ChunkPlan,
    dictionary_decayed,
    dictionary_ends,
    plan_chunk,
)
from lakesplice.splicing.pages.recoding import Dictionary, RecodedPages, Recoder
from lakesplice.splicing.structures.checksums import check_chunks
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.page_headers import PageHeader, read_page
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile

_LEVELS = frozenset((Encoding.RLE, Encoding.BIT_PACKED))


class _EncodeWhole(Exception):
    """Raised while a chunk is edited if it turns out that the whole chunk must be encoded."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def check_editable(source: SourceFile, row_groups: Sequence[int], column: int) -> None:
    """Raise `UnsupportedError` with a `reason` if chunks of a column can't be edited; reads
    nothing.
    """
    for row_group in row_groups:
        reason = source.refusal(row_group, column)
        if reason not in (None, Reason.NO_PAGE_INDEX):
            raise refused(source, row_group, column, reason)
    file_part = source.file_part(row_groups[0], column)
    if not writable(source.leaf(column), source.footer.created_by, file_part):
        raise refused(source, row_groups[0], column, Reason.OTHER_LAYOUT)


class EditedChunks:
    """The edited flat chunks of one row group, by column.

    All chunks are planned together, which takes a fraction of the time of planning one after the
    other. The caller must have called `check_editable`.
    """

    def __init__(
        self,
        source: SourceFile,
        row_group: int,
        edits: Mapping[int, ColumnEdit],
        options: Options,
        memory: MemoryLimits,
    ) -> None:
        self._source, self._row_group, self._edits = source, row_group, edits
        self._options, self._memory = options, memory
        self._plans: Mapping[int, ChunkPlan] | None = None
        self._planning = threading.Lock()

    def image(self, column: int) -> ChunkImage:
        """Return a chunk with its edit applied; the edit's rows count from the row group's first
        row.

        Blocks; may be called by several threads. Raises `CorruptFileError` if pages can't be
        decoded.
        """
        chunk = self._source, self._row_group, column
        edit, plan = self._edits[column], self._planned()[column]
        reason = plan.whole
        if reason is None:
            try:
                return _Chunk(*chunk, plan.pages).edited(edit, self._options, self._memory)
            except _EncodeWhole as found:
                reason = found.reason
        return rewritten_chunk(*chunk, edit, reason, self._memory)

    def _planned(self) -> Mapping[int, ChunkPlan]:
        with self._planning:
            if self._plans is None:
                self._plans = self._plan()
            return self._plans

    def _plan(self) -> Mapping[int, ChunkPlan]:
        source, row_group = self._source, self._row_group
        source.read_offset_indexes([(row_group, column) for column in self._edits])
        plans = {column: self._plan_of(column, edit) for column, edit in self._edits.items()}
        if self._options.verify_copies:
            # Chunks that are encoded whole need no check here: decoding checks all their pages.
            kept = [(row_group, column) for column, plan in plans.items() if plan.whole is None]
            check_chunks(source, kept)
        return plans

    def _plan_of(self, column: int, edit: ColumnEdit) -> ChunkPlan:
        index = self._source.offset_index(self._row_group, column)
        if index is None:
            return ChunkPlan(np.zeros(0, np.int64), Reason.NO_PAGE_INDEX)
        head = dictionary_bytes(self._source, self._row_group, column)
        return plan_chunk(index.first_rows, edit.rows, head, self._options)


class _Chunk:
    """One chunk being edited at some of its pages."""

    def __init__(self, source: SourceFile, row_group: int, column: int, pages: Integers) -> None:
        self._source, self._row_group, self._column = source, row_group, column
        index = source.offset_index(row_group, column)
        assert index is not None  # or it would be encoded whole
        self._index, self._pages = index, pages
        self._chunk, self._leaf = source.chunk(row_group, column), source.leaf(column)
        self._file_part = source.file_part(row_group, column)
        head = dictionary_bytes(source, row_group, column)
        self._dictionary_page = source.read(self._chunk.start, head) if head else None

    def edited(self, edit: ColumnEdit, options: Options, memory: MemoryLimits) -> ChunkImage:
        page = self._dictionary_page
        unpacked = 0 if page is None else _unpacked(*self._header(page))
        with memory.dictionary(unpacked):
            dictionary = self._dictionary(edit)
            return self._image(self._recoded(edit, dictionary, options, memory), dictionary)

    def _recoded(
        self,
        edit: ColumnEdit,
        dictionary: Dictionary | None,
        options: Options,
        memory: MemoryLimits,
    ) -> list[RecodedPages]:
        recoder = Recoder(
            self._source,
            self._row_group,
            self._column,
            self._index,
            self._dictionary_page,
            dictionary,
        )
        done, held = list[RecodedPages](), memory.held()
        for one in recoder.recode(self._pages, edit, memory, verify=options.verify):
            self._check_dictionary(one.part, dictionary)
            # All have the same dictionary.
            first = not any(other.part.dictionary is not None for other in done)
            part = replace(
                one.part,
                pages=held.put(one.part.pages),
                dictionary=one.part.dictionary if first else None,
            )
            done.append(replace(one, part=part))
        return done

    def _header(self, page: pa.Buffer) -> tuple[PageHeader, int]:
        return PageHeader.decode(page.to_pybytes(), 0, self._file_part)

    def _dictionary(self, edit: ColumnEdit) -> Dictionary | None:
        """The dictionary, extended by the values its pages will need; None if no page refers to
        it.
        """
        page = self._dictionary_page
        if page is None:
            return None
        flags = self._with_dictionary()
        count = dictionary_ends(flags)
        if count is None:
            raise _EncodeWhole(Reason.PAGES_OUT_OF_ORDER)
        if count == 0 or not len(self._pages) or self._pages[0] >= count:
            return None
        created_by = self._source.footer.created_by
        old = decode_dictionary(self._leaf, self._chunk, page, created_by, self._file_part)
        end = self._chunk.num_values if count == len(flags) else self._index.first_rows[count]
        stop = int(np.searchsorted(edit.rows, end))
        wanted = extended(old, stored(edit.values.slice(0, stop), old.type))
        dictionary = Dictionary(page, wanted, len(old))
        if dictionary.grown and len(old):
            # Estimated from the present size of an entry, before anything is encoded.
            size = _unpacked(*self._header(page)) * len(wanted) // len(old)
            self._check_growth(dictionary, size)
        return dictionary

    def _with_dictionary(self) -> list[bool]:
        """Which of the chunk's data pages refer to its dictionary."""
        stats = self._chunk.encoding_stats
        if stats is not None:
            kinds = {s.encoding for s in stats if s.kind in (PageKind.DATA, PageKind.DATA_V2)}
        else:
            kinds = set(self._chunk.encodings) - _LEVELS
        if kinds and all(with_dictionary(kind) for kind in kinds):
            return [True] * len(self._index)
        # Only the headers are read; the pages are not decoded.
        pages = (
            read_page(self._source.source, at, self._chunk.end, self._file_part)
            for at in self._index.offsets.tolist()
        )
        return [with_dictionary(page.header.encoding) for page in pages]

    def _check_dictionary(self, part: EncodedPages, dictionary: Dictionary | None) -> None:
        if dictionary is None or part.dictionary is None:
            return
        if part.dictionary_entries != len(dictionary.entries):
            raise _EncodeWhole(Reason.DICTIONARY_REPEATS)
        if dictionary.grown:
            self._check_growth(dictionary, part.dictionary_uncompressed)

    def _check_growth(self, dictionary: Dictionary, dictionary_bytes: int) -> None:
        at_first = entries_at_first(self._chunk) or dictionary.old
        entries, size = len(dictionary.entries), self._chunk.compressed_size
        if dictionary_decayed(entries, at_first, dictionary_bytes, size):
            raise _EncodeWhole(Reason.DICTIONARY_DECAYED)

    def _image(self, done: Sequence[RecodedPages], dictionary: Dictionary | None) -> ChunkImage:
        pages = _by_number(done)
        chunk, uncompressed = self._chunk, sum(part.uncompressed for part in done)
        page, pieces = self._dictionary_page, list[Piece]()
        head = 0 if page is None else page.size
        grown = self._grown(done, dictionary)
        if grown is not None and dictionary is not None:
            at_first = entries_at_first(chunk) or dictionary.old
            chunk = with_entries_at_first(chunk, at_first)
            before, after = self._header(dictionary.page), self._header(grown)
            uncompressed += _unpacked(*after) - _unpacked(*before)
            head = grown.size
            pieces.append(grown)
        elif head:
            pieces.append(CopiedRange(self._source, chunk.start, head))
        sizes = self._index.sizes.copy()
        for one in done:
            sizes[one.pages] = one.part.sizes
        index = OffsetIndex(head + np.cumsum(sizes) - sizes, sizes, self._index.first_rows)
        bounds = described(self._source, self._row_group, self._column, done)
        encoding = None if page is None else self._header(page)[0].encoding
        chunk = with_new_pages_counted(
            chunk, [one.part.chunk for one in done], len(index), encoding
        )
        size = head + int(sizes.sum())
        new_bytes = int(sizes[self._pages].sum()) + (head if grown else 0)
        return ChunkImage(
            chunk=replace(
                chunk.valueless(),
                compressed_size=size,
                uncompressed_size=chunk.uncompressed_size + uncompressed,
                statistics=bounds.statistics(
                    sum(part.nulls_before for part in done), sum(part.nulls_after for part in done)
                ),
            ),
            pieces=(*pieces, *self._pieces(pages)),
            dictionary_bytes=head,
            index=index,
            column_index=bounds.encoded,
            bloom=None,
            counts=SpliceCounts(
                pages_copied=len(index) - len(pages),
                pages_encoded=len(pages),
                bytes_copied=size - new_bytes,
                bytes_encoded=new_bytes,
                bloom_filters_dropped=int(bool(chunk.bloom_offset)),
            ),
        )

    def _grown(
        self, done: Sequence[RecodedPages], dictionary: Dictionary | None
    ) -> pa.Buffer | None:
        """The page of the extended dictionary, under the old name of its encoding; None if it
        didn't grow.

        Also None if no page refers to the dictionary although the footer says that all do.
        """
        found = (one.part.dictionary for one in done if one.part.dictionary is not None)
        page = next(found, None)
        if dictionary is None or not dictionary.grown or page is None:
            return None
        header, start = self._header(page)
        named = replace(header, encoding=self._header(dictionary.page)[0].encoding)
        return pa.py_buffer(named.encode() + page.slice(start).to_pybytes())

    def _pieces(self, new: dict[int, Piece]) -> list[Piece]:
        """The data pages in their order: runs of untouched pages, and the new pages."""
        pieces: list[Piece] = []
        done = 0
        for number, data in new.items():
            pieces += self._copies(done, number)
            pieces.append(data)
            done = number + 1
        return pieces + self._copies(done, len(self._index))

    def _copies(self, first: int, end: int) -> list[Piece]:
        """Copies of the pages [first, end); one piece unless the writer left gaps between them."""
        if first == end:
            return []
        index = self._index
        gaps = np.flatnonzero(index.offsets[first + 1 : end] != index.ends[first : end - 1]) + first
        firsts, lasts = [first, *(gaps + 1).tolist()], [*gaps.tolist(), end - 1]
        return [
            CopiedRange(self._source, int(index.offsets[a]), int(index.ends[b] - index.offsets[a]))
            for a, b in zip(firsts, lasts, strict=True)
        ]


def _unpacked(header: PageHeader, size: int) -> int:
    return size + header.uncompressed_size


def _by_number(done: Sequence[RecodedPages]) -> dict[int, Piece]:
    found: dict[int, Piece] = {}
    for one in done:
        sizes = one.part.sizes
        starts = np.cumsum(sizes) - sizes
        for number, at, size in zip(
            one.pages.tolist(), starts.tolist(), sizes.tolist(), strict=True
        ):
            found[number] = part_of(one.part.pages, at, size)
    return found
