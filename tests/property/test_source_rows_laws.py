"""Rows that are read as one text equal the source database's rows, or the text is found to be
cut.
"""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given

from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.columns import DatabaseColumn, ReadColumn, read_column
from lakesplice.planning.source_rows.row_text import rows_of_text

_TYPES = {
    "n": ("int", "integer", st.integers(-(2**31), 2**31 - 1)),
    "t": ("text", "string", st.text(st.sampled_from('",\n\r\\ aN0é\x00😀'), max_size=6)),
    "b": ("blob", "binary", st.binary(max_size=4)),
    "u": ("text", "string", st.text(max_size=4)),
}
Row = tuple[object, ...]


def _columns(names: str) -> list[ReadColumn]:
    found = []
    for name in names:
        ddl, to, _ = _TYPES[name]
        column = read_column(DatabaseColumn(name, ddl, "utf8mb4"), ColumnType.parse(to), "")
        assert isinstance(column, ReadColumn)
        found.append(column)
    return found


def _cell(value: object) -> str:
    """As the expressions of `rows_sql` give it."""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, bytes):
        return f'"{value.hex().upper()}"'
    return "" if value is None else str(value)


def _text(rows: list[Row]) -> bytes:
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows).encode()


names = st.sampled_from(["n", "t", "nt", "tb", "ntbu"])
rows = names.flatmap(
    lambda some: st.tuples(
        st.just(some),
        st.lists(st.tuples(*(st.none() | _TYPES[name][2] for name in some)), max_size=6),
    )
)


@given(rows)
def test_rows_of_a_text_are_the_rows_with_null_apart_from_empty(
    given_: tuple[str, list[Row]],
) -> None:
    some, there = given_
    read = rows_of_text(_text(there), len(there), _columns(some))
    assert read is not None
    assert not any(column.flaws for column in read.values())
    found = list(zip(*(read[name].values.to_pylist() for name in some), strict=True))
    assert found == there
    assert all(read[name].values.type in (pa.int32(), pa.string(), pa.binary()) for name in some)


@given(rows, st.data())
def test_a_text_that_was_cut_anywhere_is_not_taken_for_its_rows(
    given_: tuple[str, list[Row]], data: st.DataObject
) -> None:
    some, there = given_
    whole = _text(there)
    if not whole:
        return
    end = data.draw(st.integers(0, len(whole) - 1))
    assert rows_of_text(whole[:end], len(there), _columns(some)) is None


@given(rows.filter(lambda given_: len(given_[1]) > 1), st.data())
def test_a_row_that_is_missing_is_noticed(
    given_: tuple[str, list[Row]], data: st.DataObject
) -> None:
    some, there = given_
    left = list(there)
    left.pop(data.draw(st.integers(0, len(there) - 1)))
    assert rows_of_text(_text(left), len(there), _columns(some)) is None
