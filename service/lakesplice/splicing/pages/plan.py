"""The plan of one edited column chunk: which pages are re-encoded, and whether all are.

Pure: rows and counts in, decisions out. The order of a chunk's pages is law: pages with a
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

# A dictionary may outgrow the one the chunk was first written with by so much: entries that are
# no longer used can't be distinguished from those that are, and all are read with every chunk.
DICTIONARY_GROWTH_MAX = 0.02  # of the chunk's bytes
DICTIONARY_BYTES_MAX = 2 * 1024 * 1024
_SMALL_DICTIONARY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """What becomes of an edited chunk: `pages` are re-encoded, or all of them for `whole`."""

    pages: Integers
    whole: Reason | None = None


def touched_pages(first_rows: Integers, rows: Integers) -> Integers:
    """Return the pages that hold any of `rows` (ascending), ascending without repetition.

    `first_rows` are the pages' first rows, of which the first is 0.
    """
    return np.flatnonzero(rows_in_pages(first_rows, rows))


def rows_in_pages(first_rows: Integers, rows: Integers) -> Integers:
    """Return how many of `rows` (ascending) each page holds; none lies before the first page, and
    those beyond its last row count for the last.
    """
    ends = np.append(np.searchsorted(rows, first_rows[1:]), len(rows))
    return np.diff(ends, prepend=0)


def plan_chunk(
    first_rows: Integers, rows: Integers, dictionary_bytes: int, options: Options
) -> ChunkPlan:
    """Return the plan for edits at `rows` of a chunk whose pages are known.

    Without a dictionary there is nothing to gain from encoding a chunk whole.
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
    """Return whether a dictionary of so many entries is to be rebuilt with its chunk.

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
