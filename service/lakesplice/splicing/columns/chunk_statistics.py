"""The metadata about an edited chunk's values: the bounds of its pages and the chunk's
statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.splicing.metadata.bounds import boundary_order, credible, extremes
from lakesplice.splicing.metadata.writer_names import spliced_by_us, writers
from lakesplice.splicing.pages.recoding import RecodedPages
from lakesplice.splicing.structures.footer import Leaf, Statistics
from lakesplice.splicing.structures.page_index import ColumnIndex
from lakesplice.splicing.structures.source import SourceFile
from lakesplice.splicing.thrift.compact import EMPTY, Struct

# pyarrow writes the exact bounds of each page, or none. Other writers shorten long bounds in the
# column index, and Polars gives every page the bounds of its chunk.
_WHOLE_BOUNDS = "parquet-cpp-arrow"


@dataclass(frozen=True, eq=False, slots=True)
class ChunkBounds:
    """The new column index, if there can be one, and what the statistics are computed from."""

    leaf: Leaf
    column_index: ColumnIndex | None
    before: Statistics
    exact: bool

    @property
    def encoded(self) -> pa.Buffer | None:
        """The column index's bytes."""
        return None if self.column_index is None else pa.py_buffer(self.column_index.encode())

    def statistics(self, nulls_before: int, nulls_after: int) -> Struct:
        """Return the chunk's statistics, given the nulls of its touched pages before and after the
        edit.
        """
        count = self.before.null_count
        nulls = None if count is None else count - nulls_before + nulls_after
        if nulls is not None and nulls < 0:  # the count was wrong before
            nulls = None
        bounds = self._extremes()
        return Statistics(
            min_value=bounds[0] if bounds else None,
            max_value=bounds[1] if bounds else None,
            null_count=nulls,
            min_exact=self.exact if bounds else None,
            max_exact=self.exact if bounds else None,
        ).to_struct()

    def _extremes(self) -> tuple[bytes, bytes] | None:
        index = self.column_index
        return None if index is None else extremes(self.leaf, *_filled(index))


def described(
    source: SourceFile, row_group: int, column: int, done: Sequence[RecodedPages]
) -> ChunkBounds:
    """Describe a chunk of which some pages were re-encoded; the other pages keep their bounds."""
    leaf, chunk = source.leaf(column), source.chunk(row_group, column)
    file_part = source.file_part(row_group, column)
    before = Statistics.from_struct(chunk.statistics or EMPTY, file_part)
    index = source.column_index(row_group, column)
    if index is not None:
        # If a bound is impossible, the column index is dropped: readers then skip no page.
        index = _replaced(index, done) if credible(leaf, *_filled(index)) else None
    if index is not None:
        index = ordered(leaf, index)
    return ChunkBounds(leaf, index, before, bounds_are_whole(source))


def ordered(leaf: Leaf, index: ColumnIndex) -> ColumnIndex:
    """Return a column index that says whether its bounds ascend, descend or neither."""
    order = boundary_order(leaf, *_filled(index))
    return replace(index, boundary_order=int(order))


def bounds_are_whole(source: SourceFile) -> bool:
    """Return whether the bounds in the file's column indexes are exact values of their pages.

    The recorded names of earlier writers count only in files that we signed: other programs copy
    the record without keeping it true.
    """
    footer = source.footer
    if not spliced_by_us(footer):
        return (footer.created_by or "").startswith(_WHOLE_BOUNDS)
    return all(name.startswith(_WHOLE_BOUNDS.encode()) for name in writers(footer))


def _replaced(index: ColumnIndex, done: Sequence[RecodedPages]) -> ColumnIndex | None:
    null_pages, nulls = index.null_pages.copy(), index.null_counts
    nulls = None if nulls is None else nulls.copy()
    lows, highs = list(index.min_values), list(index.max_values)
    for one in done:
        new, at = one.part.column_index, one.pages
        if new is None:
            return None
        null_pages[at] = new.null_pages
        for page, low, high in zip(at.tolist(), new.min_values, new.max_values, strict=True):
            lows[page], highs[page] = low, high
        if nulls is not None and new.null_counts is not None:
            nulls[at] = new.null_counts
        else:
            nulls = None
    return ColumnIndex(null_pages, tuple(lows), tuple(highs), index.boundary_order, nulls)


def _filled(index: ColumnIndex) -> tuple[list[bytes], list[bytes]]:
    at = np.flatnonzero(~index.null_pages).tolist()
    return [index.min_values[page] for page in at], [index.max_values[page] for page in at]
