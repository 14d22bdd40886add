from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.splicing.pages.dictionaries import entries_at_first, extended, with_entries_at_first
from lakesplice.splicing.pages.page_decoding import decode_dictionary
from lakesplice.splicing.structures.source import SourceFile
from tests.support.parquet_parts import PLACE, opened, parquet, some_table

CHUNK = SourceFile(opened(parquet(some_table(100), use_dictionary=True)), "a.parquet").chunk(0, 1)


@given(
    st.lists(st.integers(-20, 20), unique=True),
    st.lists(st.none() | st.integers(-30, 30)),
)
def test_old_entries_keep_their_places_and_new_ones_follow_once(
    old: list[int], values: list[int | None]
) -> None:
    found = extended(pa.array(old, pa.int64()), pa.array(values, pa.int64())).to_pylist()
    assert found[: len(old)] == old
    assert len(set(found)) == len(found)
    assert set(found) == {*old, *values} - {None}


def bits(values: Any) -> list[bytes]:
    return [struct.pack("<d", value) for value in values.to_pylist()]


def test_reals_are_compared_by_their_bits() -> None:
    quiet, loud = (
        struct.unpack("<d", first + b"\0" * 5 + b"\xf8\x7f")[0] for first in (b"\0", b"\1")
    )
    found = extended(pa.array([0.0, quiet]), pa.array([-0.0, quiet, loud, 0.0, -0.0, None]))
    assert bits(found) == bits(pa.array([0.0, quiet, -0.0, loud]))


@pytest.mark.parametrize(
    ("kind", "old", "values"),
    [
        (pa.string(), ["a"], ["b", None, "a"]),
        (pa.large_binary(), [b"a"], [b"b", None, b"a"]),
        (pa.binary(2), [b"aa"], [b"bb", None, b"aa"]),
        (pa.decimal128(20, 2), [Decimal("1.00")], [Decimal("2.00"), None, Decimal("1.00")]),
        (pa.uint8(), [1], [2, None, 1]),
        (pa.float16(), [1.0], [2.0, None, 1.0]),
        (pa.float32(), [1.0], [2.0, None, 1.0]),
        (pa.timestamp("us", "UTC"), [1], [2, None, 1]),
        (pa.date32(), [1], [2, None, 1]),
    ],
    ids=str,
)
def test_dictionaries_are_of_any_type(kind: pa.DataType, old: list[Any], values: list[Any]) -> None:
    found = extended(pa.array(old, kind), pa.array(values, kind))
    assert found.equals(pa.array([old[0], values[0]], kind))


def test_a_dictionary_without_additions_stays_the_same_object() -> None:
    old = pa.array(["a", "b"])
    assert extended(old, pa.array(["b", None])) is old
    assert extended(old, pa.array([], pa.string())) is old
    assert extended(old, pa.array([None], pa.string())) is old


def test_a_dictionary_is_read_whole_or_said_to_be_cut_short() -> None:
    source = SourceFile(opened(parquet(pa.table({"n": [5, 6, 5]}), use_dictionary=True)), "a")
    leaf, chunk, page = source.leaf(0), source.chunk(0, 0), source.dictionary_page(0, 0)
    assert page is not None

    def entries(end: int) -> pa.Array:
        return decode_dictionary(leaf, chunk, source.read(page.offset, end), None, PLACE)

    whole = page.end - page.offset
    assert entries(whole).to_pylist() == [5, 6]
    with pytest.raises(CorruptFileError, match="cut short"):
        entries(whole - 1)


def test_an_empty_dictionary_can_be_extended() -> None:
    assert extended(pa.array([], pa.string()), pa.array(["a"])).to_pylist() == ["a"]


def test_the_first_number_of_entries_is_remembered_beside_what_others_noted() -> None:
    assert entries_at_first(CHUNK) is None
    once = with_entries_at_first(CHUNK, 7)
    assert entries_at_first(once) == 7
    assert entries_at_first(with_entries_at_first(once, 8)) == 8
    forgotten = with_entries_at_first(once, None)
    assert entries_at_first(forgotten) is None
    assert forgotten.to_struct() == CHUNK.to_struct()
