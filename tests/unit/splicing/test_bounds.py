from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.splicing.metadata.bounds import (
    boundary_order,
    credible,
    extremes,
    numbers,
    order_key,
)
from lakesplice.splicing.structures.enums import BoundaryOrder
from lakesplice.splicing.structures.footer import Leaf
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import opened, parquet

ASCENDING, DESCENDING = BoundaryOrder.ASCENDING, BoundaryOrder.DESCENDING
NAN = float("nan")


def leaf(kind: pa.DataType, **options: Any) -> Leaf:
    file = parquet(pa.table({"x": pa.array([], kind)}), **options)
    return SourceFile(opened(file), "a.parquet").leaf(0)


NUMBERS = {
    pa.bool_(): "?",
    pa.int8(): "<i4",
    pa.int64(): "<i8",
    pa.uint8(): "<u4",
    pa.uint32(): "<u4",
    pa.uint64(): "<u8",
    pa.float16(): "<f2",
    pa.float32(): "<f4",
    pa.float64(): "<f8",
    pa.date32(): "<i4",
    pa.timestamp("us"): "<i8",
    pa.time32("ms"): "<i4",
}


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_a_number_is_of_the_width_and_sign_of_its_type(kind: pa.DataType) -> None:
    assert numbers(leaf(kind)) == np.dtype(NUMBERS[kind])


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.binary(7), pa.decimal128(30, 2)])
def test_bytes_are_no_number(kind: pa.DataType) -> None:
    assert numbers(leaf(kind)) is None


def test_a_decimal_is_a_number_where_it_is_stored_as_one() -> None:
    kind = pa.decimal128(9, 2)
    assert numbers(leaf(kind, store_decimal_as_integer=True)) == np.dtype("<i4")
    assert numbers(leaf(kind, store_decimal_as_integer=False)) is None


@given(st.integers(-(10**29), 10**29), st.integers(-(10**29), 10**29))
def test_decimals_in_bytes_are_ordered_as_numbers(one: int, other: int) -> None:
    key = order_key(leaf(pa.decimal128(30, 2)))
    assert key is not None
    a, b = (value.to_bytes(13, "big", signed=True) for value in (one, other))
    assert (key(a) < key(b)) == (one < other)


@given(st.binary(), st.binary())
def test_texts_are_ordered_byte_by_byte(one: bytes, other: bytes) -> None:
    key = order_key(leaf(pa.binary()))
    assert key is not None
    assert (key(one) < key(other)) == (one < other)


def test_old_times_have_no_order() -> None:
    column = leaf(pa.timestamp("ns"), use_deprecated_int96_timestamps=True)
    assert order_key(column) is None
    assert extremes(column, [b"1" * 12], [b"2" * 12]) is None


def unsigned(*values: int) -> list[bytes]:
    return [struct.pack("<I", value) for value in values]


def doubles(*values: float) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


def test_the_extremes_are_of_the_columns_own_order() -> None:
    top = (1 << 32) - 1
    lows, highs = unsigned(5, top - 1, 3), unsigned(6, top, 4)
    assert extremes(leaf(pa.uint32()), lows, highs) == (unsigned(3)[0], unsigned(top)[0])
    assert extremes(leaf(pa.int32()), lows, highs) == (unsigned(top - 1)[0], unsigned(6)[0])
    texts = [b"\xff", "ä".encode(), b"a"]
    assert extremes(leaf(pa.string()), texts, texts) == (b"a", b"\xff")


def test_there_are_no_extremes_of_nothing_or_of_what_is_no_number() -> None:
    column = leaf(pa.float64())
    assert extremes(column, [], []) is None
    assert extremes(column, doubles(1, NAN), doubles(2, 3)) is None
    assert extremes(column, doubles(1, 2), doubles(2, NAN)) is None


@pytest.mark.parametrize(
    ("lows", "highs", "order"),
    [
        ([1.0, 1.0, 5.0], [2.0, 4.0, 5.0], ASCENDING),
        ([5.0, 1.0, 1.0], [5.0, 4.0, 2.0], DESCENDING),
        ([1.0, 1.0], [2.0, 2.0], ASCENDING),
        ([1.0], [2.0], ASCENDING),
        ([1.0, 2.0], [9.0, 3.0], BoundaryOrder.UNORDERED),
        ([1.0, NAN], [2.0, NAN], BoundaryOrder.UNORDERED),
        ([], [], BoundaryOrder.UNORDERED),
    ],
)
def test_bounds_rise_or_fall_together_or_not_at_all(
    lows: list[float], highs: list[float], order: BoundaryOrder
) -> None:
    assert boundary_order(leaf(pa.float64()), doubles(*lows), doubles(*highs)) is order


def test_the_order_of_bounds_goes_by_the_sign() -> None:
    falling = unsigned(5, (1 << 32) - 1)
    assert boundary_order(leaf(pa.uint32()), falling, falling) is ASCENDING
    assert boundary_order(leaf(pa.int32()), falling, falling) is DESCENDING


def test_bytes_count_as_unordered() -> None:
    assert boundary_order(leaf(pa.string()), [b"a", b"b"], [b"a", b"b"]) is BoundaryOrder.UNORDERED


@pytest.mark.parametrize(
    ("kind", "low", "high", "holds"),
    [
        (pa.uint32(), unsigned(3), unsigned((1 << 32) - 1), True),
        (pa.int32(), unsigned(3), unsigned((1 << 32) - 1), False),
        (pa.int32(), [b"\x01"], [b"\x02"], False),
        (pa.binary(5), [b"ab"], [b"ac"], True),
        (pa.binary(5), [b"abcdef"], [b"b"], False),
        (pa.string(), [b""], [b"z"], True),
        (pa.string(), [b"z"], [b"a"], False),
        (pa.decimal128(30, 2), [b"\xff" * 13], [b"\x00" * 13], True),
        (pa.decimal128(30, 2), [b"\x00" * 12], [b"\x00" * 12], False),
    ],
)
def test_only_bounds_that_can_be_are_credible(
    kind: pa.DataType, low: list[bytes], high: list[bytes], holds: bool
) -> None:
    assert credible(leaf(kind), low, high) is holds
