from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.formats.deltas import decode_delta, encode_delta
from lakesplice.formats.deltas.avro_container import read_head, write_head
from lakesplice.model.change import delta_schema
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.testing.older_deltas import encode_avro_delta
from tests.conformance.test_deltas_in_avro import CHANGES
from tests.support.every_type import EVERY_TYPE

LAYOUT = delta_schema(EVERY_TYPE)
TABLE = pa.Table.from_pylist(CHANGES, schema=LAYOUT)
DATA = encode_delta(TABLE, EVERY_TYPE)
OLDER = encode_avro_delta(TABLE, EVERY_TYPE)
EACH_FORMAT = pytest.mark.parametrize("data", [DATA, OLDER], ids=["parquet", "avro"])


def decoded(data: bytes, **options: Any) -> pa.Table:
    return decode_delta(data, EVERY_TYPE, 1, path="x.delta", **options)


def stamped(table: pa.Table) -> bytes:
    """A Parquet file that calls itself a delta."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"lakesplice.schema_version": "1"})
    return bytes(sink.getvalue())


@pytest.mark.parametrize("encode", [encode_delta, encode_avro_delta])
def test_a_delta_round_trips_in_the_order_of_addresses_and_positions(
    encode: Callable[[pa.Table, TableSchema], bytes],
) -> None:
    keys = ("_group", "_row", "_position_file", "_position_offset")
    ordered = TABLE.sort_by([(key, "ascending") for key in keys])
    data = encode(TABLE, EVERY_TYPE)
    assert decoded(data).equals(ordered)
    assert encode(TABLE.take(pa.array([2, 0, 1])), EVERY_TYPE) == data


def test_a_delta_keeps_the_bits_of_zeros_and_numbers_that_are_none() -> None:
    words = np.array([0x8000000000000000, 0x7FF8000000000123, 0xFFF0000000000001], np.uint64)
    column = LAYOUT.names.index("c_double_6")
    table = TABLE.set_column(column, LAYOUT.field(column), pa.array(words.view(np.float64)))
    found = decoded(encode_delta(table, EVERY_TYPE)).sort_by("c_long_0").column("c_double_6")
    expected = table.sort_by("c_long_0").column("c_double_6")
    assert (found.to_numpy().view(np.uint64) == expected.to_numpy().view(np.uint64)).all()


@pytest.mark.parametrize(
    "places",
    [
        [(1, 0, 0, 1), (0, 0, 0, 0)],
        [(0, 1, 0, 1), (0, 0, 0, 0)],
        [(0, 0, 0, 1), (0, 0, 0, 0)],
        [(0, 0, 1, 0), (0, 0, 0, 1)],
        [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0)],
        [(7, 0, 0, 0), (-9, 5, 0, 0), (7, 1 << 32, 0, 0), (-9, 1, 0, 0)],
        [(7, 0, 0, 0), (-9, (1 << 32) - 1, 0, 0), (3, 1, 0, 0), (-9, 1, 0, 0)],
    ],
    ids=[
        "groups",
        "rows",
        "offsets of a row",
        "files of a row",
        "the last of three",
        "a row beyond 32 bits",
        "the last row within 32 bits",
    ],
)
def test_changes_are_put_in_order_whatever_is_out_of_it(
    places: list[tuple[int, int, int, int]],
) -> None:
    keys = ("_group", "_row", "_position_file", "_position_offset")
    records = [CHANGES[0] | dict(zip(keys, place, strict=True)) for place in places]
    delta = encode_delta(pa.Table.from_pylist(records, schema=LAYOUT), EVERY_TYPE)
    found = decoded(delta).select(keys).to_pylist()
    assert [tuple(row.values()) for row in found] == sorted(places)


def test_a_delta_without_changes_round_trips() -> None:
    assert decoded(encode_delta(TABLE.slice(0, 0), EVERY_TYPE)).equals(LAYOUT.empty_table())


@EACH_FORMAT
def test_some_columns_are_read_in_the_order_asked_for(data: bytes) -> None:
    table = decoded(data, columns=["c_timestamp_13", "_row"])
    assert table.equals(decoded(data).select(["c_timestamp_13", "_row"]))


def test_reading_some_columns_decodes_no_others() -> None:
    at = (
        pq.ParquetFile(pa.BufferReader(DATA))
        .metadata.row_group(0)
        .column(LAYOUT.names.index("_changed"))
    )
    first, size = at.data_page_offset, at.total_compressed_size
    damaged = DATA[:first] + b"\xff" * size + DATA[first + size :]
    with pytest.raises(CorruptFileError, match=r"x\.delta"):
        decoded(damaged)
    others = [name for name in LAYOUT.names if name != "_changed"]
    assert decoded(damaged, columns=others).equals(decoded(DATA).select(others))


def test_names_with_dots_are_names() -> None:
    columns = [
        Column(at, name, name, ColumnType(Primitive.LONG), "int64")
        for at, name in enumerate(("a", "a.b", "a.b.c"))
    ]
    schema = TableSchema().with_columns(columns, ("a",))
    records = [CHANGES[0] | {"a": 1, "a.b": 2, "a.b.c": 3}]
    data = encode_delta(pa.Table.from_pylist(records, schema=delta_schema(schema)), schema)
    for names in (["a"], ["a.b", "a"], ["a.b.c", "a.b"]):
        found = decode_delta(data, schema, schema.version, path="x", columns=names)
        assert found.to_pylist() == [{name: records[0][name] for name in names}]


@EACH_FORMAT
def test_columns_added_since_are_null(data: bytes) -> None:
    added = Column(14, "added", "added", ColumnType(Primitive.BYTE), "TINYINT")
    now = EVERY_TYPE.with_columns([added], EVERY_TYPE.key)
    table = decode_delta(data, now, 1, path="x")
    assert table.schema == delta_schema(now)
    assert table.column("added").null_count == 3
    assert table.drop_columns(["added"]).equals(decoded(data))
    assert decode_delta(data, now, 1, path="x", columns=["added"]).num_rows == 3


@EACH_FORMAT
def test_a_delta_of_another_schema_version_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.delta.*expected=0"):
        decode_delta(data, EVERY_TYPE, 0, path="x.delta")


@pytest.mark.parametrize("values", [pa.nulls(3, pa.int64()), pa.array([1, 2, 3], pa.int32())])
def test_a_column_that_is_not_of_its_type_is_refused(values: pa.Array) -> None:
    rows = decoded(DATA).set_column(1, "_row", values)
    with pytest.raises(CorruptFileError, match="_row"):
        decoded(stamped(rows), columns=["_group", "_row"])


def test_a_delta_without_one_of_our_columns_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="_op"):
        decoded(stamped(decoded(DATA).drop_columns(["_op"])))


def test_required_values_of_older_deltas_are_required() -> None:
    sink = io.BytesIO()
    rows = decoded(DATA).set_column(1, "_row", pa.nulls(3, pa.int64()))
    frame = pl.from_arrow(rows.select(["_group", "_row"]))
    assert isinstance(frame, pl.DataFrame)
    frame.write_avro(sink, name="x")
    metadata, sync = read_head(sink.getvalue(), "")
    data = write_head(metadata | {"lakesplice.schema_version": b"1"}) + sink.getvalue()[sync:]
    with pytest.raises(CorruptFileError, match="_row"):
        decoded(data, columns=["_group", "_row"])


@pytest.mark.parametrize(
    "data",
    [
        *(DATA[:size] for size in range(0, len(DATA), 83)),
        *(OLDER[:size] for size in range(0, len(OLDER), 83)),
    ],
)
def test_a_truncated_delta_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.delta"):
        decoded(data)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_named_error(data: bytes) -> None:
    for given_data in (data, b"Obj\x01" + data, b"PAR1" + data + b"PAR1"):
        with pytest.raises(CorruptFileError):
            decoded(given_data)


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=300), max_size=70))
def test_heads_round_trip(metadata: dict[str, bytes]) -> None:
    head = write_head(metadata)
    assert read_head(head + b"sync", "") == (metadata, len(head))
