"""The plan of one edited column chunk: which pages are re-encoded, and whether all are.

Pure: rows and counts in, decisions out. The order of a chunk's pages is fixed: pages with a
dictionary come first, and a page without one is never followed by one with it, since Spark's
vectorized reader then returns wrong rows (docs/decisions/0017-page-splice.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lakesplice.model.arrays import Integers
from lakesplice.splicing.faults import Reason
from lakesplice.splicing.options import Options

# How far a dictionary may outgrow the one with which the chunk was first written. Unused entries
# can't be distinguished from used ones, and readers read all of them with every chunk.
DICTIONARY_GROWTH_MAX = 0.02  # of the chunk's bytes
DICTIONARY_BYTES_MAX = 2 * 1024 * 1024
_SMALL_DICTIONARY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """How an edited chunk is written: `pages` are re-encoded, or all pages if `whole` has a
    reason.
    """

    pages: Integers
    whole: Reason | None = None


def touched_pages(first_rows: Integers, rows: Integers) -> Integers:
    """Return the numbers of the pages that hold any of `rows`, ascending and without repetition.

    `rows` ascend. `first_rows` has the first row of each page, beginning with 0.
    """
    return np.flatnonzero(rows_in_pages(first_rows, rows))


def rows_in_pages(first_rows: Integers, rows: Integers) -> Integers:
    """Return how many of `rows` (ascending) each page holds. No row is before the first page; rows
    beyond the last page count for the last page.
    """
    ends = np.append(np.searchsorted(rows, first_rows[1:]), len(rows))
    return np.diff(ends, prepend=0)


def plan_chunk(
    first_rows: Integers, rows: Integers, dictionary_bytes: int, options: Options
) -> ChunkPlan:
    """Return the plan for edits at `rows` of a chunk that has an offset index.

    A chunk without a dictionary is never encoded whole, since that would save nothing.
    """
    pages = touched_pages(first_rows, rows)
    if dictionary_bytes and options.erase:
        return ChunkPlan(pages, Reason.ERASED_DICTIONARY)
    many = len(pages) > options.page_share_max * len(first_rows)
    if dictionary_bytes and many:
        return ChunkPlan(pages, Reason.MANY_PAGES)
    return ChunkPlan(pages)


def dictionary_decayed(
    entries: int, entries_at_first: int, dictionary_bytes: int, chunk_bytes: int
) -> bool:
    """Return whether to rebuild a dictionary of `entries` entries together with its chunk.

    `dictionary_bytes` is its size with all `entries`, `entries_at_first` what it had when the
    chunk was last encoded whole.
    """
    grown = dictionary_bytes * (entries - entries_at_first) // max(entries, 1)
    if dictionary_bytes > DICTIONARY_BYTES_MAX and grown > _SMALL_DICTIONARY_BYTES:
        return True
    return grown > max(_SMALL_DICTIONARY_BYTES, DICTIONARY_GROWTH_MAX * chunk_bytes)


def dictionary_ends(with_dictionary: Sequence[bool]) -> int | None:
    """Return how many pages at a chunk's start have a dictionary; None if that is not all of them.

    None means that a page with a dictionary follows one without: such a chunk is encoded whole.
    """
    flags = np.asarray(with_dictionary, dtype=np.bool_)
    count = int(flags.sum())
    return count if bool(flags[:count].all()) else None


def runs(pages: Integers) -> list[tuple[int, int]]:
    """Return ascending numbers as runs of neighbours, (first, last) each."""
    if not len(pages):
        return []
    breaks = np.flatnonzero(np.diff(pages) != 1)
    firsts, lasts = pages[np.append(0, breaks + 1)], pages[np.append(breaks, len(pages) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))
