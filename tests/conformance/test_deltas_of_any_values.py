"""DuckDB, Polars and our reader read the same from a delta with any values, also from an older
one.
"""

from __future__ import annotations

import datetime as dt
import io
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import avro.datafile
import avro.io
import duckdb
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.deltas import decode_delta, encode_delta
from lakesplice.model.change import delta_schema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.testing.older_deltas import encode_avro_delta
from tests.support.every_type import EVERY_TYPE

DUCKDB = duckdb.connect()
_BITS = {Primitive.BYTE: 8, Primitive.SHORT: 16, Primitive.INTEGER: 32, Primitive.LONG: 64}


def values(kind: ColumnType) -> st.SearchStrategy[Any]:
    """Values of a column type, of all magnitudes."""
    if kind.kind in _BITS:
        half = 1 << (_BITS[kind.kind] - 1)
        return st.integers(-half, half - 1)
    if kind.kind is Primitive.DECIMAL:
        digits = st.integers(0, kind.precision).flatmap(
            lambda n: st.integers(-(10**n) + 1, 10**n - 1)
        )
        return digits.map(lambda unscaled: Decimal(f"{unscaled}e-{kind.scale}"))
    if kind.kind is Primitive.DATE:
        return st.dates()
    if kind.kind is Primitive.TIMESTAMP:
        return st.datetimes(timezones=st.just(dt.UTC))
    if kind.kind in (Primitive.FLOAT, Primitive.DOUBLE):
        return st.floats(width=32 if kind.kind is Primitive.FLOAT else 64, allow_nan=False)
    return {
        Primitive.BOOLEAN: st.booleans(),
        Primitive.STRING: st.text(st.characters(codec="utf-8"), max_size=20),
        Primitive.BINARY: st.binary(max_size=20),
    }[kind.kind]


@st.composite
def changes(draw: st.DrawFn) -> list[dict[str, Any]]:
    longs = values(ColumnType(Primitive.LONG))
    out = []
    for row in range(draw(st.integers(0, 5))):
        user = {
            column.name: draw(
                values(column.type) if column.id == 0 else st.none() | values(column.type)
            )
            for column in EVERY_TYPE.columns
        }
        out.append(
            {
                "_group": 1,
                "_row": row,
                "_op": draw(st.integers(0, 3)),
                "_position_file": draw(longs),
                "_position_offset": draw(longs),
                "_before_digest": draw(st.none() | longs),
                "_row_digest": draw(st.none() | longs),
                "_changed": draw(st.none() | st.binary(max_size=4)),
                "_source_ts": draw(st.none() | values(ColumnType(Primitive.TIMESTAMP))),
                **user,
            }
        )
    return out


@given(changes())
def test_other_readers_of_parquet_and_we_read_what_was_written(rows: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(rows, schema=delta_schema(EVERY_TYPE))
    data = encode_delta(table, EVERY_TYPE)
    assert decode_delta(data, EVERY_TYPE, 1, path="x").equals(table)
    assert pl.read_parquet(io.BytesIO(data)).to_dicts() == rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "delta.parquet"
        path.write_bytes(data)
        found = DUCKDB.execute(f"from read_parquet('{path}')").to_arrow_table()
    assert found.cast(table.schema).equals(table)


@given(changes())
def test_the_official_library_and_we_read_what_an_older_delta_has(
    rows: list[dict[str, Any]],
) -> None:
    table = pa.Table.from_pylist(rows, schema=delta_schema(EVERY_TYPE))
    data = encode_avro_delta(table, EVERY_TYPE)
    assert decode_delta(data, EVERY_TYPE, 1, path="x").equals(table)
    with avro.datafile.DataFileReader(io.BytesIO(data), avro.io.DatumReader()) as reader:
        assert list(reader) == rows
