"""The Hilbert curve: every point has a place, neighbours on it are neighbours in space, and values
of every type have an order.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.planning.upkeep.curve import curve_order, hilbert_places


@pytest.mark.parametrize(("axes", "bits"), [(2, 1), (2, 4), (3, 3), (4, 2), (5, 2)])
def test_the_curve_meets_every_point_once_and_steps_from_neighbour_to_neighbour(
    axes: int, bits: int
) -> None:
    points = np.stack(np.meshgrid(*[np.arange(1 << bits)] * axes), -1).reshape(-1, axes)
    places = hilbert_places([points[:, axis].astype(np.uint64) for axis in range(axes)], bits)
    assert sorted(places.tolist()) == list(range(len(points)))
    steps = np.abs(np.diff(points[np.argsort(places)], axis=0)).sum(axis=1)
    assert (steps == 1).all()


@pytest.mark.parametrize(
    "values",
    [
        [None, -5, 0, 7],
        [None, "", "a", "ab", "b"],
        [None, b"", b"a\xff", b"b"],
        [None, False, True],
        [None, -1.5, 0.0, 2.0, float("nan")],
        [None, Decimal("-1.20"), Decimal("3.40")],
        [None, date(1969, 1, 1), date(2024, 2, 29)],
    ],
)
def test_one_column_of_any_type_is_sorted_with_nulls_first(values: list[object]) -> None:
    shuffled = [values[at] for at in np.random.default_rng(1).permutation(len(values))]
    order = curve_order([pa.chunked_array([pa.array(shuffled)])])
    assert str([shuffled[at] for at in order]) == str(values)


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.text(max_size=2)), max_size=30))
def test_every_row_has_one_place_and_equal_rows_stay_together(
    rows: list[tuple[int, str | None]],
) -> None:
    first = pa.chunked_array([[row[0] for row in rows]], pa.int64())
    second = pa.chunked_array([[row[1] for row in rows]], pa.string())
    order = curve_order([first, second]).tolist()
    assert sorted(order) == list(range(len(rows)))
    met = [rows[at] for at in order]
    runs = [row for at, row in enumerate(met) if not at or met[at - 1] != row]
    assert len(rows) >= 1 << 14 or len(runs) == len({*runs})


def test_a_range_of_either_column_is_in_few_of_many_parts() -> None:
    random = np.random.default_rng(2)
    columns = [random.integers(0, 1 << 40, 1 << 14), random.exponential(size=1 << 14)]
    order = curve_order([pa.chunked_array([column]) for column in columns])
    for column in columns:
        low, high = np.quantile(column, [0.5, 0.51])
        parts = np.split(column[order], 64)
        met = sum(bool(((part >= low) & (part <= high)).any()) for part in parts)
        assert met <= 16
