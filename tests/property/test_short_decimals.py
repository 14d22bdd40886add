"""Decimals of at most eight bytes are read as the general way reads them, or left to it."""

from __future__ import annotations

import base64
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events.cells.binary import decode_base64
from lakesplice.formats.events.cells.decimals import decimals_from_bytes
from lakesplice.formats.events.cells.short_decimals import short_decimals
from lakesplice.model.types import ColumnType, Primitive

_TYPES = st.integers(1, 38).flatmap(
    lambda precision: st.builds(
        ColumnType, st.just(Primitive.DECIMAL), st.just(precision), st.integers(0, precision)
    )
)


def _encoded(number: int, width: int) -> str:
    return base64.b64encode(number.to_bytes(width, "big", signed=True)).decode()


@st.composite
def _texts(draw: st.DrawFn) -> str:
    width = draw(st.integers(1, 9))
    half = 1 << (8 * width - 1)
    text = _encoded(draw(st.integers(-half, half - 1)), width)
    if not draw(st.integers(0, 9)):
        at = draw(st.integers(0, len(text) - 1))
        text = text[:at] + draw(st.sampled_from("=AB/-\n é")) + text[at + 1 :]
    return text


@given(st.lists(st.none() | _texts(), max_size=8), _TYPES)
def test_short_decimals_are_those_of_the_general_way(
    texts: list[str | None], type_: ColumnType
) -> None:
    raw = pa.array(texts, pa.string())
    # A slice, whose texts don't begin where the buffer does.
    raw = pa.concat_arrays([pa.array(["AAA"]), raw])[1:]
    quick = short_decimals(raw, type_)
    if quick is None:
        return
    values, wrong = decimals_from_bytes(decode_base64(raw)[0], type_)
    assert quick[0].equals(values)
    assert quick[1].tolist() == wrong.tolist()


@given(st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), min_size=1), st.integers(0, 2))
def test_canonical_decimals_of_eight_bytes_are_read(numbers: list[int | None], more: int) -> None:
    texts = [
        None if n is None else _encoded(n, min(8, n.bit_length() // 8 + 1 + more)) for n in numbers
    ]
    found = short_decimals(pa.array(texts, pa.string()), ColumnType(Primitive.DECIMAL, 38, 2))
    if all(n is None for n in numbers):
        assert found is None
        return
    assert found is not None
    expected = [None if n is None else Decimal(n).scaleb(-2) for n in numbers]
    assert found[0].to_pylist() == expected
    assert not found[1].any()


@pytest.mark.parametrize("precision", [1, 7, 18])
def test_numbers_beyond_the_precision_are_wrong(precision: int) -> None:
    most = 10**precision - 1
    numbers = [most, most + 1, -most, -most - 1]
    raw = pa.array([_encoded(number, 8) for number in numbers])
    found = short_decimals(raw, ColumnType(Primitive.DECIMAL, precision, 0))
    assert found is not None
    assert found[0].to_pylist() == [Decimal(most), None, Decimal(-most), None]
    assert found[1].tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    "text",
    ["", "AB==", "AAB=", "A===", "====", "=AAA", "AA==AAAA", "AAA", "AAAAAAAAAAAA", "AA-_", "é=="],
)
def test_other_texts_are_left_to_the_general_way(text: str) -> None:
    raw = pa.array(["JxA=", text], pa.string())
    assert short_decimals(raw, ColumnType(Primitive.DECIMAL, 12, 2)) is None
