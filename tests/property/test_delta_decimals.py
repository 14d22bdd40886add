"""Every reader reads the decimals of deltas as they were written, also in older deltas in Avro."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import avro.datafile
import avro.io
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.formats.deltas import decode_delta, encode_delta
from lakesplice.formats.deltas.avro_decimals import decimal_bytes, from_bytes
from lakesplice.model.change import delta_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.testing.older_deltas import decimal_words, encode_avro_delta
from tests.support.drawing import examples

PRECISION_MAX = 38
# Where the number of bytes changes, and the sign bit with it.
EDGES = [s * ((1 << bits) + d) for bits in range(127) for d in (-1, 0, 1) for s in (1, -1)]


def _schema(type_: ColumnType) -> TableSchema:
    key = Column(1, "id", "id", ColumnType(Primitive.LONG), "int64")
    return TableSchema().with_columns((key, Column(2, "price", "price", type_, "decimal")), ("id",))


def _changes(schema: TableSchema, values: list[Decimal | None]) -> pa.Table:
    rows = [
        {
            "_group": 1, "_row": at, "_op": 1, "_position_file": 1, "_position_offset": at,
            "id": at, "price": value,
        }
        for at, value in enumerate(values)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=delta_schema(schema))


def _decimal(unscaled: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


@st.composite
def _columns(draw: st.DrawFn) -> tuple[ColumnType, list[Decimal | None]]:
    precision = draw(st.integers(1, PRECISION_MAX))
    scale = draw(st.integers(0, precision))
    most = 10**precision - 1
    edges = [value for value in EDGES if abs(value) <= most]
    unscaled = draw(
        st.lists(st.none() | st.integers(-most, most) | st.sampled_from(edges), min_size=1)
    )
    values = [None if value is None else _decimal(value, scale) for value in unscaled]
    return ColumnType(Primitive.DECIMAL, precision, scale), values


@given(_columns())
@settings(max_examples=examples(200))
def test_every_decimal_is_read_back_by_us_and_by_others(
    column: tuple[ColumnType, list[Decimal | None]],
) -> None:
    type_, values = column
    schema = _schema(type_)
    data = encode_delta(_changes(schema, values), schema)
    assert pl.read_parquet(io.BytesIO(data))["price"].to_list() == values
    older = encode_avro_delta(_changes(schema, values), schema)
    for each in (data, older):
        ours = decode_delta(each, schema, schema.version, path="a delta")
        assert ours.column("price").type == type_.arrow
        assert ours.column("price").to_pylist() == values
    with avro.datafile.DataFileReader(io.BytesIO(older), avro.io.DatumReader()) as reader:
        assert [record["price"] for record in list[Any](reader)] == values


def test_all_values_of_a_column_have_its_width() -> None:
    type_ = pa.decimal128(10, 4)
    assert decimal_bytes(type_) == 5
    values = [Decimal("4.2300"), Decimal("-2.3236"), Decimal("0.0000"), None]
    written = decimal_words(pa.chunked_array([pa.array(values, type_)]))
    assert [value and value.hex() for value in written.to_pylist()] == [
        "000000a53c", "ffffffa53c", "0000000000", None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("precision", "width"), [(1, 1), (2, 1), (3, 2), (18, 8), (19, 9), (38, 16)]
)
def test_the_width_is_the_least_that_holds_the_precision(precision: int, width: int) -> None:
    assert decimal_bytes(pa.decimal128(precision, 0)) == width


def test_slices_and_chunks_keep_their_values() -> None:
    type_ = pa.decimal128(12, 2)
    values = [Decimal(at * 12_345).scaleb(-2) if at % 3 else None for at in range(-5, 6)]
    whole = pa.array(values, type_)
    chunks = pa.chunked_array([whole.slice(0, 4), whole.slice(4, 3), whole.slice(7)])
    written = pa.chunked_array([decimal_words(chunks).slice(2, 5)])
    assert from_bytes(written, type_).to_pylist() == values[2:7]


def test_a_value_of_another_width_is_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        from_bytes(pa.chunked_array([pa.array([b"\x01"])]), pa.decimal128(12, 2))
