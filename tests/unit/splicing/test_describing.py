"""The metadata of a spliced chunk, one rule at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.chunks import Chunk
from lakesplice.splicing.structures.enums import BoundaryOrder
from lakesplice.splicing.structures.footer import Statistics
from lakesplice.splicing.thrift.compact import EMPTY
from tests.support.in_memory import look, signed_by, spliced, with_chunk
from tests.support.parquet_parts import parquet
from tests.support.parquet_truth import untruths_of

ROWS, PER_PAGE = 300, 100
NAN = float("nan")


def written(values: Sequence[Any], kind: pa.DataType, **options: Any) -> bytes:
    return parquet(pa.table({"x": pa.array(values, kind)}), row_group_size=ROWS, **options)


def edited(data: bytes, rows: Sequence[int], values: Sequence[Any], kind: pa.DataType) -> bytes:
    made = spliced(data, x=(rows, pa.array(values, kind)))
    assert not untruths_of(made)
    return made


def statistics(data: bytes) -> Statistics:
    found = look(data).chunk(0, 0).statistics
    return Statistics.from_struct(found or EMPTY, FilePart("", ""))


def number(data: bytes | None) -> int:
    assert data is not None
    return int.from_bytes(data, "little", signed=True)


INTEGERS = written(range(ROWS), pa.int64())


def test_bounds_of_pages_and_chunk_follow_the_values() -> None:
    found = edited(INTEGERS, [0, 250], [1000, -1], pa.int64())
    index = look(found).column_index(0, 0)
    assert index is not None
    assert [number(low) for low in index.min_values] == [1, 100, -1]
    assert [number(high) for high in index.max_values] == [1000, 199, 299]
    said = statistics(found)
    assert (number(said.min_value), number(said.max_value)) == (-1, 1000)
    assert (said.min_exact, said.max_exact) == (True, True)


def test_a_bound_that_left_leaves_the_bounds() -> None:
    said = statistics(edited(INTEGERS, [0, 299], [5, 6], pa.int64()))
    assert (number(said.min_value), number(said.max_value)) == (1, 298)


@pytest.mark.parametrize(
    ("rows", "values", "order"),
    [
        ([0], [50], BoundaryOrder.ASCENDING),
        ([0], [1000], BoundaryOrder.UNORDERED),
        ([0, 99], [None, None], BoundaryOrder.ASCENDING),
    ],
)
def test_the_order_of_pages_is_found_again(
    rows: list[int], values: list[int | None], order: BoundaryOrder
) -> None:
    index = look(edited(INTEGERS, rows, values, pa.int64())).column_index(0, 0)
    assert index is not None
    assert index.boundary_order == order


def test_a_page_of_nulls_alone_is_one_and_stops_being_one() -> None:
    emptied = edited(INTEGERS, range(100, 200), [None] * 100, pa.int64())
    index = look(emptied).column_index(0, 0)
    assert index is not None
    assert index.null_pages.tolist() == [False, True, False]
    assert statistics(emptied).null_count == 100
    filled = edited(emptied, [150], [7], pa.int64())
    index = look(filled).column_index(0, 0)
    assert index is not None
    assert index.null_pages.tolist() == [False, False, False]
    assert statistics(filled).null_count == 99


def test_a_chunk_of_nulls_alone_has_no_bounds() -> None:
    said = statistics(edited(INTEGERS, range(ROWS), [None] * ROWS, pa.int64()))
    assert (said.min_value, said.max_value, said.null_count) == (None, None, ROWS)


def test_a_page_of_nan_alone_leaves_the_chunk_without_an_index() -> None:
    data = written([float(at) for at in range(ROWS)], pa.float64(), use_dictionary=False)
    one = edited(data, [150], [NAN], pa.float64())
    assert look(one).column_index(0, 0) is not None
    page = edited(one, range(100, 200), [NAN] * 100, pa.float64())
    assert look(page).column_index(0, 0) is None
    assert statistics(page).min_value is None
    # Once lost the bounds stay so until the chunk is encoded whole: the other pages' are unknown.
    again = edited(page, range(100, 200), [1.0] * 100, pa.float64())
    assert look(again).column_index(0, 0) is None


def test_zeros_are_bounds_of_either_sign() -> None:
    data = written([1.0] * ROWS, pa.float64())
    said = statistics(edited(data, [0, 150], [0.0, -0.0], pa.float64()))
    assert said.min_value == b"\0" * 7 + b"\x80"


def test_facts_that_were_never_counted_are_left_out() -> None:
    def changed(chunk: Chunk) -> Chunk:
        said = Statistics.from_struct(chunk.statistics or EMPTY, FilePart("", ""))
        counted = replace(said, distinct_count=ROWS, nan_count=0, null_count=None)
        return replace(chunk, statistics=counted.to_struct())

    said = statistics(edited(with_chunk(INTEGERS, 0, changed), [5], [7], pa.int64()))
    assert (said.distinct_count, said.nan_count, said.null_count) == (None, None, None)


@pytest.mark.parametrize(
    ("created_by", "exact"),
    [("parquet-cpp-arrow version 26.0.0", True), ("parquet-rs version 50.0.0", False)],
)
def test_bounds_of_texts_are_exact_only_where_no_writer_cuts_them(
    created_by: str, exact: bool
) -> None:
    texts = [f"{'x' * 70}{at:03}" for at in range(ROWS)]
    data = signed_by(written(texts, pa.string()), created_by)
    once = edited(data, [5], ["y"], pa.string())
    said = statistics(once)
    assert (said.max_value, said.max_exact, said.min_exact) == (b"y", exact, exact)
    # It is not forgotten by the next splice.
    assert statistics(edited(once, [6], ["z"], pa.string())).max_exact is exact


def test_bounds_that_may_be_wider_than_their_pages_are_not_called_exact() -> None:
    # Polars gives every page the bounds of its chunk.
    data = signed_by(INTEGERS, "Polars (python) version 2.1.0")
    said = statistics(edited(data, [5], [-7], pa.int64()))
    assert (number(said.min_value), said.min_exact, said.max_exact) == (-7, False, False)


def test_bounds_too_long_to_be_written_are_not() -> None:
    data = written([f"text {at:03}" for at in range(ROWS)], pa.string())
    found = edited(data, [150], ["y" * 10_000], pa.string())
    said = statistics(found)
    index = look(found).column_index(0, 0)
    assert (index is None) == (said.max_value is None)
