"""Hash ranges cover every hash once, and shares spread evenly over the shuffle's targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import UsageError
from lakesplice.model.names import TableName
from lakesplice.planning.intake.key_ranges import (
    CHANGES_PER_RANGE,
    assign_targets,
    range_of,
    ranges_for,
)

HASHES = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50)


def tables(*changes: int) -> dict[TableName, int]:
    return {TableName("shop", f"t{n:03}"): count for n, count in enumerate(changes)}


def test_a_small_table_stays_whole_and_a_large_one_gets_at_most_the_cores() -> None:
    assert [ranges_for(n, 8) for n in (0, 1, CHANGES_PER_RANGE, CHANGES_PER_RANGE + 1)] == [
        1,
        1,
        1,
        2,
    ]
    assert ranges_for(100 * CHANGES_PER_RANGE, 8) == 8
    assert ranges_for(100 * CHANGES_PER_RANGE, 0) == 1


@given(HASHES, st.one_of(st.integers(1, 100), st.integers(1, 2**31)))
def test_a_range_owns_its_part_of_the_hashes(hashes: list[int], ranges: int) -> None:
    edges = [-(-number * 2**64 // ranges) for number in (0, ranges // 2, ranges - 1)]
    asked = [*hashes, 0, 2**64 - 1, *edges, *(edge - 1 for edge in edges if edge)]
    owners = range_of(np.array(asked, np.uint64), ranges).tolist()
    assert owners == [high * ranges >> 64 for high in asked]


@pytest.mark.parametrize("ranges", [0, -1, 2**31 + 1])
def test_a_number_of_ranges_out_of_bounds_is_refused(ranges: int) -> None:
    with pytest.raises(UsageError, match="ranges"):
        range_of(np.zeros(1, np.uint64), ranges)


@given(st.lists(st.integers(0, 10 * CHANGES_PER_RANGE), max_size=40), st.integers(1, 16))
def test_every_range_of_every_table_is_placed_once_and_no_target_is_overloaded(
    changes: list[int], targets: int
) -> None:
    expected = tables(*changes)
    placed = assign_targets(expected, cores=4, targets=targets)
    for table, count in expected.items():
        ranges = ranges_for(count, 4)
        assert sorted(s.range for s in placed if s.table == table) == list(range(ranges))
        assert {s.ranges for s in placed if s.table == table} == {ranges}
    loads = np.zeros(targets)
    for share, target in placed.items():
        loads[target] += expected[share.table] / share.ranges
    largest = max((expected[share.table] / share.ranges for share in placed), default=0)
    assert loads.max() <= loads.sum() / targets + largest + 1e-6


def test_four_hundred_small_tables_spread_evenly_also_without_expectation() -> None:
    for changes in (0, 250):
        placed = assign_targets(tables(*[changes] * 400), cores=8, targets=8)
        assert np.bincount(list(placed.values())).tolist() == [50] * 8


def test_the_same_expectations_give_the_same_plan() -> None:
    changes = tables(5, 900_000, 0, 70, 70, 300_000)
    backwards = dict(reversed(changes.items()))
    assert assign_targets(changes, 4, 3) == assign_targets(backwards, 4, 3)


def test_no_target_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="target"):
        assign_targets(tables(1), cores=1, targets=0)
