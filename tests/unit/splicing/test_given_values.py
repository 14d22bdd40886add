"""The caller's rows and columns are cast to a file's types, or refused before a byte is written."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import LakespliceError, UnsupportedError, UsageError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.operations import NewColumn, add_columns, append_rows, replace_column
from lakesplice.splicing.output.copying import Sink, StreamSink

MICROS = pa.timestamp("us")


def written(table: pa.Table, **options: Any) -> pa.Buffer:
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, write_page_index=True, **options)
    return buffer.getvalue()


def made(data: pa.Buffer, operation: Callable[..., object], *given: Any) -> pa.Table:
    buffer = pa.BufferOutputStream()
    operation(pa.BufferReader(data), "source", *given, StreamSink(buffer))
    return pq.read_table(pa.BufferReader(buffer.getvalue()))


def refused(
    kind: type[LakespliceError], data: pa.Buffer, operation: Callable[..., object], *given: Any
) -> str:
    """The message, with not a byte written."""
    buffer = pa.BufferOutputStream()
    with pytest.raises(kind) as caught:
        operation(pa.BufferReader(data), "source", *given, StreamSink(buffer))
    assert buffer.tell() == 0
    return str(caught.value)


def at(row: int, name: str, values: pa.Array) -> Edits:
    rows = np.array([row])
    return Edits(rows, {name: ColumnEdit(rows, values)})


ONE = pa.table({"a": [1], "b": ["x"]})


def test_appended_times_of_another_unit_are_the_same_moments() -> None:
    source = written(pa.table({"t": pa.array([1], MICROS)}))
    more = pa.table({"t": pa.array([1000], pa.timestamp("ms"))})
    found = made(source, append_rows, [more]).column("t").to_pylist()
    assert found[1] == dt.datetime(1970, 1, 1, 0, 0, 1)  # noqa: DTZ001


@pytest.mark.parametrize("as_integer", [True, False])
def test_appended_decimals_of_another_scale_are_the_same_numbers(as_integer: bool) -> None:
    kind = pa.decimal128(10, 2)
    table = pa.table({"d": pa.array([Decimal("1.00")], kind)})
    source = written(table, store_decimal_as_integer=as_integer)
    more = pa.table({"d": pa.array([Decimal("1.500")], pa.decimal128(10, 3))})
    assert made(source, append_rows, [more]).column("d").to_pylist()[1] == Decimal("1.50")
    finer = pa.table({"d": pa.array([Decimal("1.505")], pa.decimal128(10, 3))})
    assert "don't fit" in refused(UsageError, source, append_rows, [finer])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (pa.table({"a": [2]}), "missing=['b']"),
        (pa.table({"a": [2], "b": ["y"], "c": [3]}), "unknown=['c']"),
        (pa.table({"a": ["text"], "b": ["y"]}), "don't fit"),
        (pa.table({"a": [1.5], "b": ["y"]}), "don't fit"),
    ],
)
def test_rows_that_do_not_fit_are_not_appended(more: pa.Table, message: str) -> None:
    assert message in refused(UsageError, written(ONE), append_rows, [ONE, more])


def test_a_null_is_not_appended_to_a_required_column() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    source = written(pa.table([[1]], schema=schema))
    more = pa.table({"a": pa.array([None], pa.int64())})
    assert "can't be null" in refused(UsageError, source, append_rows, [more])


def test_rows_are_appended_in_any_order_of_columns_and_empty_tables_add_nothing() -> None:
    more = pa.table({"b": ["y"], "a": [2]})
    found = made(written(ONE), append_rows, [ONE.slice(1), more, ONE.slice(1)])
    assert found.to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


def test_an_int96_column_gets_no_rows_and_says_so_before_any_is_written() -> None:
    source = written(pa.table({"t": pa.array([1], MICROS)}), use_deprecated_int96_timestamps=True)
    more = pa.table({"t": pa.array([1], MICROS)})
    assert "other_layout" in refused(UnsupportedError, source, append_rows, [more])


def test_a_new_columns_value_is_cast_to_its_type() -> None:
    column = NewColumn(pa.field("t", MICROS), pa.scalar(1000, pa.timestamp("ms")))
    found = made(written(ONE), add_columns, [column], Edits()).column("t").to_pylist()
    assert found == [dt.datetime(1970, 1, 1, 0, 0, 1)]  # noqa: DTZ001


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int8(), pa.string()), pa.uuid(), pa.float16()])
def test_a_new_column_of_a_rare_type_is_read_as_it_was_given(kind: pa.DataType) -> None:
    value: Any = {"halffloat": np.float16(1.5)}.get(str(kind), b"0123456789abcdef")
    values = pa.array([value.decode()]).dictionary_encode() if "dict" in str(kind) else None
    if values is None and isinstance(kind, pa.BaseExtensionType):
        values = pa.ExtensionArray.from_storage(kind, pa.array([value], kind.storage_type))
    if values is None:
        values = pa.array([value], kind)
    found = made(written(ONE), add_columns, [NewColumn(pa.field("n", kind), values[0])], Edits())
    assert found.column("n").to_pylist() == values.to_pylist()


@pytest.mark.parametrize(
    ("column", "edits", "message"),
    [
        (NewColumn(pa.field("a", pa.int64())), Edits(), "of that name"),
        (NewColumn(pa.field("n", pa.int64(), nullable=False)), Edits(), "needs a value"),
        (NewColumn(pa.field("n", pa.int8()), pa.scalar(300)), Edits(), "don't fit"),
        (NewColumn(pa.field("n", pa.int8()), None, "q"), Edits(), "no such flat column"),
        (NewColumn(pa.field("n", pa.int8())), at(0, "m", pa.array([1])), "no such column"),
        (NewColumn(pa.field("n", pa.int8())), at(0, "n", pa.array([300])), "don't fit"),
        (NewColumn(pa.field("n", pa.int8())), at(1, "n", pa.array([3])), "no such row"),
        (NewColumn(pa.field("n", pa.int8())), at(0, "a", pa.array(["x"])), "don't fit"),
    ],
)
def test_a_new_column_that_does_not_fit_is_refused(
    column: NewColumn, edits: Edits, message: str
) -> None:
    assert message in refused(UsageError, written(ONE), add_columns, [column], edits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda old: pa.array([9] * (len(old) + 1)), "another number of new values"),
        (lambda old: pa.array(["text"] * len(old)), "don't fit"),
        (lambda old: pa.nulls(len(old), pa.int64()), "can't be null"),
    ],
)
def test_a_columns_new_values_that_do_not_fit_are_refused(
    change: Callable[[pa.Array], pa.Array], message: str
) -> None:
    table = pa.table({"a": np.arange(100), "b": np.arange(100)})
    source = written(table, row_group_size=30)
    field = pa.field("b", pa.int64(), nullable=False)
    assert message in refused(UsageError, source, replace_column, field, change)


def test_a_columns_new_values_are_cast_to_its_new_type() -> None:
    source = written(pa.table({"a": [1000, 2000]}))
    found = made(
        source, replace_column, pa.field("a", MICROS), lambda old: old.cast(pa.timestamp("ms"))
    )
    assert found.column("a").cast(pa.int64()).to_pylist() == [1_000_000, 2_000_000]


def without_rows() -> pa.Buffer:
    """Row groups of two rows, of none, and of two again."""
    buffer = pa.BufferOutputStream()
    with pq.ParquetWriter(buffer, ONE.schema, write_page_index=True) as writer:
        for rows in (2, 0, 2):
            writer.write_table(pa.concat_tables([ONE, ONE]).slice(0, rows))
    return buffer.getvalue()


def without_groups() -> pa.Buffer:
    buffer = pa.BufferOutputStream()
    pq.ParquetWriter(buffer, ONE.schema, write_page_index=True).close()
    return buffer.getvalue()


def adding(opened: pa.NativeFile, name: str, sink: Sink) -> object:
    return add_columns(opened, name, [NewColumn(pa.field("c", pa.int8()))], Edits(), sink)


def replacing(opened: pa.NativeFile, name: str, sink: Sink) -> object:
    return replace_column(opened, name, pa.field("a", pa.int8()), lambda old: old, sink)


def appending(opened: pa.NativeFile, name: str, sink: Sink) -> object:
    return append_rows(opened, name, [ONE.slice(1)], sink)


@pytest.mark.parametrize("operation", [adding, replacing, appending])
@pytest.mark.parametrize(
    "source",
    [without_rows(), without_groups(), written(ONE.slice(1))],
    ids=["0 of 3", "0", "0 of 1"],
)
def test_row_groups_without_rows_stay_readable(
    source: pa.Buffer, operation: Callable[..., object], tmp_path: Any
) -> None:
    rows = pq.read_metadata(pa.BufferReader(source)).num_rows
    path = str(tmp_path / "target.parquet")
    with pa.OSFile(path, "wb") as sink:
        operation(pa.BufferReader(source), "source", StreamSink(sink))
    expected = pa.concat_tables([ONE] * rows).to_pylist() if rows else []
    columns = ["a", "b"]
    assert pq.read_table(path).select(columns).to_pylist() == expected
    assert duckdb.sql(f"select a, b from '{path}'").fetchall() == [(1, "x")] * rows
    assert pl.read_parquet(path).select(columns).to_dicts() == expected
