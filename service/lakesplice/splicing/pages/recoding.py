"""Decodes some pages of a chunk, sets new values in them, and encodes them, once each.

Each page keeps its rows, its version and the kind of its encoding. Text in a dictionary is not
decoded: its positions in the dictionary are replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.planning.rows.edits import ColumnEdit
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.pages.dictionaries import positions
from lakesplice.splicing.pages.memory import MemoryLimits
from lakesplice.splicing.pages.new_values import bits, laid_over, refused, stored
from lakesplice.splicing.pages.page_decoding import decode_pages
from lakesplice.splicing.pages.page_encoding import (
    EncodedPages,
    PageStyle,
    encode_pages,
    with_dictionary,
)
from lakesplice.splicing.pages.page_runs import PageRun, read_spans
from lakesplice.splicing.pages.plan import rows_in_pages
from lakesplice.splicing.pages.streaming import value_bytes
from lakesplice.splicing.structures.page_index import OffsetIndex
from lakesplice.splicing.structures.source import SourceFile


@dataclass(frozen=True, eq=False, slots=True)
class RecodedPages:
    """Re-encoded pages of one encoding: `part` has the pages with the numbers `pages` in the chunk.

    `uncompressed` is the number of bytes by which they grew; nulls are counted before and after.
    """

    part: EncodedPages
    pages: Integers
    uncompressed: int
    nulls_before: int
    nulls_after: int


@dataclass(frozen=True, eq=False, slots=True)
class Dictionary:
    """A chunk's dictionary: the page as it is in the source, and the wanted entries, of which the
    first `old` are in that page.
    """

    page: pa.Buffer
    entries: pa.Array
    old: int

    @property
    def grown(self) -> bool:
        """Whether entries are wanted that the page doesn't have."""
        return len(self.entries) > self.old


class Recoder:
    """Re-encodes pages of one flat chunk."""

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
        self._file_part = source.file_part(row_group, column)
        self._rows = index.rows(source.footer.row_groups[row_group].num_rows)

    def recode(
        self, pages: Integers, edit: ColumnEdit, memory: MemoryLimits, *, verify: bool
    ) -> Iterator[RecodedPages]:
        """Yield `pages` with their edits applied, a span at a time; raises `CorruptFileError`."""
        chunk = self._source, self._row_group, self._column
        span_bytes = memory.span_bytes(int(self._rows.sum()) * value_bytes(*chunk))
        for span in read_spans(*chunk, self._index, pages, span_bytes):
            with memory.decoded(span.decoded_bytes):
                recoded = self._recoded(span, edit, verify=verify)
            yield recoded

    def _recoded(self, span: PageRun, edit: ColumnEdit, *, verify: bool) -> RecodedPages:
        first_rows, rows = self._index.first_rows[span.numbers], self._rows[span.numbers]
        starts = np.cumsum(rows) - rows
        count = int(rows.sum())
        values = self._decoded(self._page, span.buffers, count, span.as_dictionary)
        kind = values.type.value_type if span.as_dictionary else values.type
        at, given = _placed(edit, first_rows, rows, starts, kind)
        new = self._with_positions(values, at, given) if span.as_dictionary else None
        if new is None:
            if span.as_dictionary:
                # If the dictionary has an entry twice, pyarrow's positions don't fit the dictionary
                # it returns.
                values = self._decoded(self._page, span.buffers, count, False)
            new = laid_over(values, at, given)
        arrays = [new.slice(int(a), int(n)) for a, n in zip(starts, rows, strict=True)]
        part = self._encoded(arrays, span)
        if verify and with_dictionary(span.header.encoding):
            self._verify(part, new)
        return RecodedPages(
            part,
            span.numbers,
            part.uncompressed - span.uncompressed,
            values.null_count,
            new.null_count,
        )

    def _with_positions(self, values: pa.Array, at: Integers, given: pa.Array) -> pa.Array | None:
        """The values with `given` set at `at`, as a dictionary array over the wanted dictionary.
        None if the wanted dictionary doesn't extend theirs, which has an entry twice then.
        """
        wanted = self._dictionary
        if wanted is None or not len(wanted.entries) or len(values.dictionary) != wanted.old:
            return None
        if not values.dictionary.equals(wanted.entries.slice(0, wanted.old)):
            return None
        indices = laid_over(values.indices, at, positions(wanted.entries, given))
        return pa.DictionaryArray.from_arrays(indices, wanted.entries)

    def _decoded(
        self,
        dictionary: pa.Buffer | None,
        pages: Sequence[pa.Buffer],
        rows: int,
        as_dictionary: bool,
    ) -> pa.Array:
        return decode_pages(
            leaf=self._leaf,
            chunk=self._chunk,
            dictionary=dictionary,
            pages=pages,
            rows=rows,
            created_by=self._source.footer.created_by,
            file_part=self._file_part,
            as_dictionary=as_dictionary,
        )

    def _encoded(self, arrays: Sequence[pa.Array], span: PageRun) -> EncodedPages:
        kind, entries = span.header.encoding, None
        if with_dictionary(kind):
            if self._dictionary is None:
                raise self._file_part.corrupt("a page refers to a dictionary that isn't there")
            entries = self._dictionary.entries
        style = PageStyle.of(self._chunk, span.header)
        part = encode_pages(self._leaf, arrays, kind, style, self._file_part, entries)
        if part is None:
            raise refused(self._source, self._row_group, self._column, Reason.OTHER_LAYOUT)
        return part

    def _verify(self, part: EncodedPages, meant: pa.Array) -> None:
        """Decode new pages with the dictionary that the file will have, and compare the values."""
        dictionary = self._dictionary
        if dictionary is None or part.dictionary_entries != len(dictionary.entries):
            return  # the caller will not use them
        page = part.dictionary if dictionary.grown else dictionary.page
        as_dictionary = pa.types.is_dictionary(meant.type)
        found = self._decoded(page, [part.pages], len(meant), as_dictionary)
        if as_dictionary:
            same = found.dictionary.equals(meant.dictionary) and found.indices.equals(meant.indices)
        else:
            same = bits(found).equals(bits(meant))
        if not same:
            raise self._file_part.corrupt(
                "new pages don't contain the intended values; this is a bug in Lakesplice"
            )


def _placed(
    edit: ColumnEdit, first_rows: Integers, rows: Integers, starts: Integers, kind: pa.DataType
) -> tuple[Integers, pa.Array]:
    """The edits that are in some pages: their positions among the decoded values, and the new
    values.
    """
    start = int(np.searchsorted(edit.rows, first_rows[0]))
    stop = int(np.searchsorted(edit.rows, first_rows[-1] + rows[-1]))
    mine = edit.rows[start:stop]
    at = mine + np.repeat(starts - first_rows, rows_in_pages(first_rows, mine))
    return at, stored(edit.values.slice(start, stop - start), kind)
