"""Bitmaps of changed columns, of any length and with unknown ones among them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.rows.changed_columns import (
    bitmap_bytes,
    bitmap_rows,
    bitmaps,
    changes_column,
)


@given(st.lists(st.none() | st.binary(max_size=4)), st.integers(0, 4), st.data())
def test_shorter_bitmaps_lack_only_unset_bits(
    sets: list[bytes | None], width: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(sets)))
    rows, known = bitmap_rows(pa.array(sets, pa.binary()).slice(start), width)
    assert known.tolist() == [one is not None for one in sets[start:]]
    assert [bytes(row) for row in rows] == [
        (one or b"")[:width].ljust(width, b"\0") for one in sets[start:]
    ]
    back = bitmaps(rows, known)
    back.validate(full=True)
    assert back.to_pylist() == [
        None if one is None else one[:width].ljust(width, b"\0") for one in sets[start:]
    ]


def test_an_unknown_set_may_have_changed_every_column() -> None:
    rows, known = bitmap_rows(pa.array([b"\x01\x02", b"\x00", None], pa.binary()), 2)
    found = [changes_column(rows, known, column).tolist() for column in (0, 1, 9, 100)]
    assert found == [
        [True, False, True],
        [False, False, True],
        [True, False, True],
        [False, False, True],
    ]


def test_a_bitmap_is_as_long_as_the_largest_identity_needs() -> None:
    def schema(*ids: int) -> TableSchema:
        return TableSchema(
            tuple(Column(n, f"c{n}", "", ColumnType(Primitive.LONG), "") for n in ids)
        )

    assert [bitmap_bytes(schema(*ids)) for ids in ((), (0,), (7,), (0, 8), (3, 23))] == [
        0,
        1,
        1,
        2,
        3,
    ]
    assert bitmap_rows(pa.array([b"\x01"]), 0)[0].shape == (1, 0)
    assert np.asarray(bitmap_rows(pa.array([], pa.binary()), 3)[0]).shape == (0, 3)
