"""Which upserts are merged at once: those asked for, and those whose changes lie close together."""

from __future__ import annotations

import numpy as np
import pytest

from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.model.arrays import RowAddresses
from lakesplice.planning.by_hand.merge_choice import CHANGES_MIN, MergeReason, merge_reason

PAGES = CHANGES_MIN // ROWS_PER_PAGE


@pytest.mark.parametrize("count", [1, 100 * CHANGES_MIN])
def test_an_explicit_choice_is_obeyed(count: int) -> None:
    group, row = np.zeros(count, np.int64), np.arange(count)
    assert merge_reason(True, RowAddresses(group, row)) is MergeReason.ASKED
    assert merge_reason(False, RowAddresses(group, row)) is None


@pytest.mark.parametrize(
    ("share", "dense"), [(1.0, True), (0.3, True), (0.2, False), (0.01, False)]
)
def test_changes_spread_over_all_rows_are_merged_if_they_are_a_quarter_of_them(
    share: float, dense: bool
) -> None:
    random = np.random.default_rng(1)
    rows = np.flatnonzero(random.random(int(2 * CHANGES_MIN / share)) < share)
    group = rows // (50 * ROWS_PER_PAGE)
    found = merge_reason(None, RowAddresses(group, rows % (50 * ROWS_PER_PAGE)))
    assert found is (MergeReason.DENSE if dense else None)


def test_the_newest_rows_are_merged_however_large_the_table_is() -> None:
    row = np.arange(CHANGES_MIN) + 10**9
    assert (
        merge_reason(None, RowAddresses(np.zeros(CHANGES_MIN, np.int64), row)) is MergeReason.DENSE
    )


def test_few_changes_wait() -> None:
    row = np.arange(CHANGES_MIN - 1)
    assert merge_reason(None, RowAddresses(np.zeros(len(row), np.int64), row)) is None


def test_pages_of_different_groups_are_different_pages() -> None:
    group = np.arange(CHANGES_MIN)
    assert merge_reason(None, RowAddresses(group, np.zeros(CHANGES_MIN, np.int64))) is None
