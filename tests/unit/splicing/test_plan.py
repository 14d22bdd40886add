from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.splicing.pages.plan import (
    DICTIONARY_BYTES_MAX,
    dictionary_decayed,
    dictionary_ends,
    runs,
    touched_pages,
)

KB, MB = 1 << 10, 1 << 20


@pytest.mark.parametrize("size", range(7))
def test_the_dictionary_ends_where_the_first_page_lacks_it(size: int) -> None:
    for flags in product([True, False], repeat=size):
        first_plain = flags.index(False) if False in flags else size
        out_of_order = any(flags[first_plain:])
        assert dictionary_ends(flags) == (None if out_of_order else first_plain)


@given(st.sets(st.integers(1, 500)), st.sets(st.integers(0, 600)))
def test_touched_are_the_pages_that_have_an_edited_row(firsts: set[int], edited: set[int]) -> None:
    first_rows = np.array(sorted({0, *firsts}))
    rows = np.array(sorted(edited), np.int64)
    ends = [*first_rows[1:].tolist(), 10**6]
    meant = [
        page
        for page, (first, end) in enumerate(zip(first_rows.tolist(), ends, strict=True))
        if any(first <= row < end for row in edited)
    ]
    assert touched_pages(first_rows, rows).tolist() == meant


@given(st.sets(st.integers(0, 60)))
def test_runs_are_neighbours_and_no_more(pages: set[int]) -> None:
    found = runs(np.array(sorted(pages), np.int64))
    assert [page for first, last in found for page in range(first, last + 1)] == sorted(pages)
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(found))


@pytest.mark.parametrize(
    ("entries", "at_first", "dictionary_bytes", "chunk_bytes", "decayed"),
    [
        # Nothing was added.
        (1000, 1000, MB, 2 * MB, False),
        (1000, 1000, 50 * MB, 60 * MB, False),
        # A page's worth of bytes is never too much.
        (20, 10, 8 * KB, 10 * KB, False),
        (40, 10, 8 * KB, 10 * KB, True),
        # Beyond it, two hundredths of the chunk.
        (1100, 1000, 110 * KB, 1 * MB, False),
        (1300, 1000, 130 * KB, 1 * MB, True),
        # A large dictionary is not to grow at all.
        (1010, 1000, DICTIONARY_BYTES_MAX + KB, 30 * MB, True),
        (0, 0, 0, 0, False),
    ],
)
def test_a_dictionary_decays_by_what_was_added_to_it(
    entries: int, at_first: int, dictionary_bytes: int, chunk_bytes: int, decayed: bool
) -> None:
    assert dictionary_decayed(entries, at_first, dictionary_bytes, chunk_bytes) is decayed
