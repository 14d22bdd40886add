"""`apply_edits` overwrites values of every type, in one chunk or several, with nulls or without."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.planning.rows.edits import ColumnEdit, Edits, apply_edits

_MOMENT = dt.datetime(2026, 11, 24, tzinfo=dt.UTC)
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, 127],
    pa.int16(): [-5, 7],
    pa.int32(): [2**31 - 1, 0],
    pa.int64(): [-(2**63), 1],
    pa.float32(): [-0.0, 1.5],
    pa.float64(): [-0.0, 1e300],
    pa.decimal128(38, 10): [Decimal("-1.5"), Decimal("9" * 28)],
    pa.date32(): [dt.date(1970, 1, 2), dt.date(9999, 12, 31)],
    pa.timestamp("us", "UTC"): [_MOMENT, _MOMENT],
    pa.string(): ["", "é"],
    pa.binary(): [b"\x00", b"longer than twelve bytes"],
}
KINDS = pytest.mark.parametrize("kind", VALUES, ids=str)


def columns(values: list[Any], kind: pa.DataType) -> Iterator[pa.ChunkedArray]:
    """The same values in one chunk, as a part of a longer one, and in two chunks."""
    whole = pa.array(values, kind)
    yield pa.chunked_array([whole])
    yield pa.chunked_array([pa.concat_arrays([whole.slice(0, 3), whole]).slice(3)])
    yield pa.chunked_array([whole.slice(0, 4), whole.slice(4)])


@KINDS
@pytest.mark.parametrize("null", [None, 0, 9], ids=["no null", "a null given", "a null kept"])
def test_edited_rows_have_the_new_values_and_others_their_own(
    kind: pa.DataType, null: int | None
) -> None:
    first, second = VALUES[kind]
    old = [first] * 11
    if null == 9:
        old[9] = old[2] = None
    new = [None if null == 0 else second, second, second]
    rows = np.array([0, 2, 10])
    expected = list(old)
    for row, value in zip(rows, new, strict=True):
        expected[row] = value
    given = pa.concat_arrays([pa.array([first], kind), pa.array(new, kind)]).slice(1)
    for column in columns(old, kind):
        table = pa.table({"x": column, "other": range(11)})
        found = apply_edits(table, Edits(rows, {"x": ColumnEdit(rows, given)}))
        found.validate(full=True)
        assert found.column("x").equals(pa.chunked_array([pa.array(expected, kind)]))
        assert found.column("other").equals(table.column("other"))
        assert table.column("x").to_pylist() == old, "the table that was given stays as it is"


def test_bits_are_kept() -> None:
    words = np.array([0x7FF8000000000123, 0x8000000000000000], np.uint64)
    edit = ColumnEdit(np.array([1, 3]), pa.array(words.view(np.float64)))
    table = pa.table({"x": pa.array([0.0] * 4)})
    found = apply_edits(table, Edits(edit.rows, {"x": edit}))
    assert found["x"].to_numpy().view(np.uint64).tolist() == [0, words[0], 0, words[1]]


@pytest.mark.parametrize(("old", "new"), [(True, False), (False, True), (False, False)])
def test_marks_are_replaced_unless_all_of_them_are_false(old: bool, new: bool) -> None:
    table = pa.table({"x": [old, old, False]})
    edit = ColumnEdit(np.array([1]), pa.array([new]))
    found = apply_edits(table, Edits(edit.rows, {"x": edit}))
    assert found["x"].to_pylist() == [old, new, False]


def test_marks_that_may_be_null_are_replaced_although_none_is_true() -> None:
    table = pa.table({"x": pa.array([None, False, False])})
    edit = ColumnEdit(np.array([0, 1]), pa.array([False, None]))
    found = apply_edits(table, Edits(edit.rows, {"x": edit}))
    assert found["x"].to_pylist() == [False, None, False]
