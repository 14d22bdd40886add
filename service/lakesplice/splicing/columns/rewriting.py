"""Encodes a whole flat column chunk: its pages keep their rows, and its dictionary is rebuilt.

The chunk is decoded and encoded in spans, one after the other. The dictionary grows only at its
end, from span to span, so spans that are already encoded stay valid. Once it exceeds a size it no
longer grows, and the pages after that have no dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.planning.rows.edits import ColumnEdit
from lakesplice.splicing.columns.chunk_statistics import ChunkBounds, ordered
from lakesplice.splicing.faults import FilePart, Reason
from lakesplice.splicing.options import SpliceCounts
from lakesplice.splicing.output.images import ChunkImage, Piece, dictionary_bytes
from lakesplice.splicing.pages.dictionaries import extended, with_entries_at_first
from lakesplice.splicing.pages.memory import MemoryLimits
from lakesplice.splicing.pages.new_values import bits, laid_over, refused, stored
from lakesplice.splicing.pages.page_encoding import EncodedPages, PageStyle, decoded, encode_pages
from lakesplice.splicing.pages.plan import DICTIONARY_BYTES_MAX
from lakesplice.splicing.pages.streaming import ChunkValues, value_bytes
from lakesplice.splicing.structures.enums import Encoding, PageKind
from lakesplice.splicing.structures.footer import Chunk, EncodingCount, Leaf, Statistics
from lakesplice.splicing.structures.page_headers import PageHeader, read_page
from lakesplice.splicing.structures.page_index import ColumnIndex, OffsetIndex
from lakesplice.splicing.structures.source import SourceFile


def rewritten_chunk(
    source: SourceFile,
    row_group: int,
    column: int,
    edit: ColumnEdit,
    reason: Reason,
    memory: MemoryLimits,
) -> ChunkImage:
    """Return a flat chunk with `edit` applied, all of it re-encoded because of `reason`.

    Blocks. Raises `CorruptFileError` where it can't be decoded, `UnsupportedError` where it can't
    be written again in the chunk's layout.
    """
    chunk, leaf = source.chunk(row_group, column), source.leaf(column)
    file_part = source.file_part(row_group, column)
    first_rows, header = _pages(source, row_group, column)
    width = value_bytes(source, row_group, column)
    span_bytes = memory.span_bytes(chunk.num_values * width)
    values = ChunkValues(source, row_group, column, span_bytes)
    rows_max = max(span_bytes // width, 1)
    first_rows = _cut(first_rows, chunk.num_values, rows_max)
    parts = _spans(first_rows, chunk.num_values, rows_max)
    encoder = _encoder(source, row_group, column, header, alone=len(parts) == 1)
    held, done = memory.held(), list[_EncodedSpan]()
    for rows in parts:
        start, end = int(rows[0]), int(rows[-1])
        with memory.decoded((end - start) * values.width):
            new = _edited(values.next(end - start), edit.within(start, end))
            pages = encoder.encoded(
                [new.slice(int(a) - start, int(b - a)) for a, b in pairwise(rows)]
            )
            if pages is None:
                raise refused(source, row_group, column, Reason.OTHER_LAYOUT)
            if encoder.orders_values or pa.types.is_floating(new.type):
                _verify(new, decoded(leaf, chunk, pages, len(new), file_part), file_part)
        piece = held.put(pages.pages)
        done.append(_EncodedSpan(replace(pages, pages=None), piece, new.null_count))
    image = encoded_chunk(chunk, _joined(leaf, done), [one.piece for one in done], first_rows)
    counts = replace(
        image.counts,
        wholes={leaf.name: reason},
        bloom_filters_dropped=int(bool(chunk.bloom_offset)),
    )
    return replace(image, counts=counts)


def _encoder(
    source: SourceFile, row_group: int, column: int, header: PageHeader, *, alone: bool
) -> _Encoder:
    chunk = source.chunk(row_group, column)
    return _Encoder(
        source.leaf(column),
        None if dictionary_bytes(source, row_group, column) else header.encoding,
        PageStyle.of(chunk, header),
        source.file_part(row_group, column),
        alone=alone,
        unlike=_dictionary_saves_little(source, row_group, column),
        size=chunk.compressed_size,
    )


def _edited(before: pa.Array, edit: ColumnEdit) -> pa.Array:
    return laid_over(before, edit.rows, stored(edit.values, before.type))


def encoded_chunk(
    chunk: Chunk, pages: EncodedPages, pieces: Sequence[Piece], first_rows: Integers
) -> ChunkImage:
    """Return the image of a chunk that has only new pages, whose bytes are in `pieces`. Everything
    else that `chunk` says is kept.
    """
    dictionary = pages.dictionary
    head = 0 if dictionary is None else dictionary.size
    offsets = head + np.cumsum(pages.sizes) - pages.sizes
    size = head + int(pages.sizes.sum())
    new, index = pages.chunk, pages.column_index
    return ChunkImage(
        chunk=replace(
            with_entries_at_first(chunk, None).valueless(),
            encodings=new.encodings,
            encoding_stats=new.encoding_stats,
            num_values=new.num_values,
            compressed_size=size,
            uncompressed_size=pages.dictionary_uncompressed + pages.uncompressed,
            statistics=pages.statistics.to_struct(),
        ),
        pieces=tuple(pieces) if dictionary is None else (dictionary, *pieces),
        dictionary_bytes=head,
        index=OffsetIndex(offsets, pages.sizes, first_rows),
        column_index=None if index is None else pa.py_buffer(index.encode()),
        bloom=None,
        counts=SpliceCounts(pages_encoded=len(pages.sizes), bytes_encoded=size),
    )


def _verify(meant: pa.Array, found: pa.Array, file_part: FilePart) -> None:
    if not bits(found).equals(bits(meant)):
        raise file_part.corrupt(
            "new pages don't contain the intended values; this is a bug in Lakesplice"
        )


@dataclass(frozen=True, eq=False, slots=True)
class _EncodedSpan:
    """A span's pages without their bytes, and the piece that holds the bytes."""

    pages: EncodedPages
    piece: Piece
    nulls: int


class _Encoder:
    """Encodes spans of a chunk; without an `encoding` they get a dictionary as long as it is small.

    If the chunk is a single span (`alone`), pyarrow makes the dictionary, and the pages get none if
    they are smaller without it. If hardly any value of the old chunk repeated (`unlike`), the
    encoding without a dictionary is tried first, and kept if it isn't larger than the old chunk
    (`size` in bytes).
    """

    def __init__(
        self,
        leaf: Leaf,
        encoding: int | None,
        style: PageStyle,
        file_part: FilePart,
        *,
        alone: bool,
        unlike: bool,
        size: int,
    ) -> None:
        self._leaf, self._encoding, self._style, self._file_part = leaf, encoding, style, file_part
        self._alone, self._unlike, self._size = alone, unlike, size
        self._entries: pa.Array | None = None
        self._given_up = False

    @property
    def orders_values(self) -> bool:
        """Whether the values get a dictionary that we make. Otherwise pyarrow makes it, as in a
        plain rewrite.
        """
        return self._encoding is None and not self._alone

    def encoded(self, arrays: Sequence[pa.Array]) -> EncodedPages | None:
        if self._encoding is not None:
            return self._pages(arrays, self._encoding)
        if self._alone:
            return self._smaller(arrays)
        if not self._given_up:
            pages = self._with_dictionary(arrays)
            if pages is not None:
                return pages
            self._given_up = True
        return self._pages(arrays, Encoding.PLAIN)

    def _smaller(self, arrays: Sequence[pa.Array]) -> EncodedPages | None:
        """Pages with a dictionary, or without one if hardly any value repeats and they are smaller
        so.
        """
        plain = self._pages(arrays, Encoding.PLAIN) if self._unlike else None
        if plain is not None and plain.pages.size <= self._size:
            return plain
        pages = self._pages(arrays, None)
        if pages is None or pages.dictionary is None:
            return pages
        if _values_repeat(
            pages.dictionary_entries, sum(len(each) - each.null_count for each in arrays)
        ):
            return pages
        plain = plain or self._pages(arrays, Encoding.PLAIN)
        if plain is None or plain.pages.size >= pages.pages.size + pages.dictionary.size:
            return pages
        return plain

    def _with_dictionary(self, arrays: Sequence[pa.Array]) -> EncodedPages | None:
        values = pa.concat_arrays(arrays)
        old = values.slice(0, 0) if self._entries is None else self._entries
        try:
            entries = extended(old, values)
        except pa.ArrowNotImplementedError:
            return None
        if entries.nbytes > DICTIONARY_BYTES_MAX:
            return None
        pages = self._pages(arrays, Encoding.RLE_DICTIONARY, entries)
        # If pyarrow counts two entries as one value, its positions differ from ours: use no
        # dictionary.
        if pages is None or pages.dictionary_entries != len(entries):
            return None
        self._entries = entries
        return pages

    def _pages(
        self, arrays: Sequence[pa.Array], encoding: int | None, entries: pa.Array | None = None
    ) -> EncodedPages | None:
        return encode_pages(self._leaf, arrays, encoding, self._style, self._file_part, entries)


def _dictionary_saves_little(source: SourceFile, row_group: int, column: int) -> bool:
    """Whether a chunk's dictionary saves little, since most of its values occur only once."""
    chunk = source.chunk(row_group, column)
    page = source.dictionary_page(row_group, column)
    if page is None or chunk.statistics is None:
        return False
    nulls = Statistics.from_struct(chunk.statistics, source.file_part(row_group, column)).null_count
    return not _values_repeat(page.header.num_values, chunk.num_values - (nulls or 0))


def _values_repeat(entries: int, values: int) -> bool:
    """Whether each dictionary entry is used more than twice on average."""
    return 2 * entries < values


def _joined(leaf: Leaf, done: Sequence[_EncodedSpan]) -> EncodedPages:
    """The pages of all spans as those of one chunk, with the last dictionary."""
    parts = [one.pages for one in done]
    if len(parts) == 1:
        return parts[0]
    last = next((part for part in reversed(parts) if part.dictionary is not None), parts[0])
    encodings = dict.fromkeys(kind for part in parts for kind in part.chunk.encodings)
    index = _joined_index(leaf, [part.column_index for part in parts])
    nulls = sum(one.nulls for one in done)
    description = ChunkBounds(leaf, index, Statistics(null_count=nulls), exact=True)
    return replace(
        last,
        chunk=replace(
            last.chunk,
            encodings=tuple(encodings),
            encoding_stats=_joined_counts(parts),
            num_values=sum(part.chunk.num_values for part in parts),
        ),
        sizes=np.concatenate([part.sizes for part in parts]),
        uncompressed=sum(part.uncompressed for part in parts),
        column_index=index,
        statistics=Statistics.from_struct(description.statistics(0, 0), FilePart("", "")),
    )


def _joined_counts(parts: Sequence[EncodedPages]) -> tuple[EncodingCount, ...]:
    counts: Counter[tuple[int, int]] = Counter()
    for part in parts:
        counts.update({(c.kind, c.encoding): c.count for c in part.chunk.encoding_stats or ()})
    kinds = {key: 1 if key[0] == PageKind.DICTIONARY else n for key, n in counts.items()}
    return tuple(EncodingCount(kind, encoding, n) for (kind, encoding), n in kinds.items())


def _joined_index(leaf: Leaf, indexes: Sequence[ColumnIndex | None]) -> ColumnIndex | None:
    found = [index for index in indexes if index is not None]
    if len(found) < len(indexes):
        return None
    nulls = [index.null_counts for index in found if index.null_counts is not None]
    return ordered(
        leaf,
        ColumnIndex(
            np.concatenate([index.null_pages for index in found]),
            tuple(low for index in found for low in index.min_values),
            tuple(high for index in found for high in index.max_values),
            0,
            np.concatenate(nulls) if len(nulls) == len(found) else None,
        ),
    )


def _spans(first_rows: Integers, num_rows: int, rows_max: int) -> list[Integers]:
    """Group the chunk's pages into spans: for each span the first row of each page, and the row
    behind its last page.
    """
    ends = np.append(first_rows[1:], num_rows)
    cuts = np.flatnonzero(np.diff(ends // rows_max)) + 1
    bounds = [0, *cuts.tolist(), len(ends)]
    rows = np.append(first_rows, num_rows)
    return [rows[a : b + 1] for a, b in pairwise(bounds)]


def _cut(first_rows: Integers, num_rows: int, rows_max: int) -> Integers:
    """The first rows of pages, where pages with more rows than a span may have are cut."""
    ends = np.append(first_rows[1:], num_rows)
    if (ends - first_rows <= rows_max).all():
        return first_rows
    return np.concatenate(
        [np.arange(start, end, rows_max) for start, end in zip(first_rows, ends, strict=True)]
    )


def _pages(source: SourceFile, row_group: int, column: int) -> tuple[Integers, PageHeader]:
    """The first rows of a chunk's pages, and the header of the first data page."""
    chunk, file_part = source.chunk(row_group, column), source.file_part(row_group, column)
    index = source.offset_index(row_group, column)
    if index is not None:
        page = read_page(source.source, int(index.offsets[0]), chunk.end, file_part)
        return index.first_rows, page.header
    headers = [page.header for page in source.pages(row_group, column) if page.header.is_data]
    rows = np.array([header.num_values for header in headers if header.num_values], np.int64)
    if not headers or int(rows.sum()) != chunk.num_values:
        raise file_part.corrupt("its pages hold another number of values", values=chunk.num_values)
    return np.cumsum(rows) - rows, headers[0]
