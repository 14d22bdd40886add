from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import CorruptFileError
from lakesplice.formats.parquet import (
    ROW_GROUP_BYTES_MAX,
    ROWS_PER_PAGE,
    BaseReader,
    WrittenBase,
    stats_columns,
    write_base,
)
from lakesplice.formats.parquet.adopted import unfit_columns
from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, row
from tests.support.thrift import Compact

WIDE = TableSchema(
    (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "BIGINT"),
        Column(1, "many", "many", ColumnType(Primitive.STRING), "TEXT"),
        Column(2, "few", "few", ColumnType(Primitive.STRING), "TEXT"),
        Column(3, "flag", "flag", ColumnType(Primitive.BOOLEAN), "BOOLEAN"),
        Column(4, "price", "price", ColumnType(Primitive.DECIMAL, 12, 2), "DECIMAL(12,2)"),
    ),
    ("id",),
    (0, 5),
)


def base(images: list[dict[str, Any]], schema: TableSchema) -> pa.Table:
    system = {"_position_file": 1, "_position_offset": 2, "_row_digest": 3, "_is_deleted": False}
    return pa.Table.from_pylist([image | system for image in images], schema=schema.arrow)


def wide(rows: int) -> pa.Table:
    rng = np.random.default_rng(7)
    # Often enough for a dictionary, and too many for it to be kept.
    many = [f"{x:032x}" for x in rng.integers(0, 2**62, 40_000)[rng.integers(0, 40_000, rows)]]
    at = np.arange(rows)
    columns = {
        "id": at,
        "many": many,
        "few": pa.array(at % 5).cast(pa.string()),
        "flag": at % 2 == 0,
        "price": pa.nulls(rows, pa.decimal128(12, 2)),
        "_position_file": np.full(rows, 7),
        "_position_offset": at * 4096,
        "_row_digest": rng.integers(-(2**63), 2**63 - 1, rows),
        "_is_deleted": np.zeros(rows, np.bool_),
        "_source_ts": pa.nulls(rows, pa.timestamp("us", "UTC")),
    }
    return pa.table(columns).cast(WIDE.arrow)


def write(
    tables: list[pa.Table], schema: TableSchema, row_group_bytes: int = ROW_GROUP_BYTES_MAX
) -> tuple[bytes, WrittenBase]:
    sink = pa.BufferOutputStream()
    written = write_base(tables, schema, sink, row_group_bytes)
    return sink.getvalue().to_pybytes(), written


def reader(data: bytes, rows: int, schema: TableSchema) -> BaseReader:
    return BaseReader(pa.BufferReader(data), BaseFile("b.parquet", 0, (Segment(1, rows),)), schema)


def footer(data: bytes) -> dict[int, Any]:
    (size,) = struct.unpack("<I", data[-8:-4])
    return Compact(data[-8 - size : -8]).structure()


def page_starts(data: bytes, chunk: dict[int, Any]) -> list[int]:
    index = Compact(data[chunk[4] : chunk[4] + chunk[5]]).structure()
    return [page[3] for page in index[1]]


@pytest.mark.slow
def test_pages_of_all_columns_hold_the_same_rows_also_where_a_dictionary_is_given_up() -> None:
    table = wide(80_000)
    data, _ = write([table], WIDE)
    pages = [page_starts(data, chunk) for chunk in footer(data)[4][0][1]]
    assert pages == [list(range(0, 80_000, ROWS_PER_PAGE))] * len(WIDE.arrow)
    encodings = pq.read_metadata(io.BytesIO(data)).row_group(0).column(1).encodings
    assert set(encodings) == {"PLAIN", "RLE", "RLE_DICTIONARY"}, "the test needs a fallback"


@pytest.mark.slow
def test_columns_in_which_few_values_come_twice_have_no_dictionary() -> None:
    rows = 50_000
    table, random = wide(rows), np.random.default_rng(8)
    for name, values, kept in (
        ("price", np.arange(rows), False),
        ("price", random.integers(0, 20_000, rows), False),
        ("price", np.arange(rows) % 1_000, True),
        ("price", np.array([None if at % 3 else at % 1_000 for at in range(rows)]), True),
        ("many", np.arange(rows), False),
        ("many", random.integers(0, 20_000, rows), True),
        ("flag", np.arange(rows) % 2 == 0, False),
    ):
        at = table.schema.get_field_index(name)
        column = pa.array(values.astype(object)).cast(pa.string()).cast(WIDE.arrow.field(name).type)
        data, _ = write([table.set_column(at, name, column)], WIDE)
        found = pq.read_metadata(io.BytesIO(data)).row_group(0).column(at)
        assert found.has_dictionary_page == kept, (name, values)


def test_every_page_has_a_checksum_and_every_chunk_a_page_index() -> None:
    data, _ = write([wide(10_000)], WIDE)
    for chunk in footer(data)[4][0][1]:
        for at in (4, 6):
            assert chunk[at] > 0
        meta = chunk[3]
        page = Compact(data[meta.get(11, meta[9]) :]).structure()
        assert 4 in page, "the page header has a CRC"


def test_the_marker_says_who_wrote_the_file() -> None:
    data, _ = write([wide(1)], WIDE)
    found = pq.read_metadata(io.BytesIO(data))
    assert found.metadata == {b"lakesplice": b"1"}
    assert found.created_by.startswith("parquet-cpp-arrow version ")


def test_decimals_are_integers_where_they_fit_and_positions_are_packed() -> None:
    data, _ = write([base([row(1, LOW), row(2, HIGH)], EVERY_TYPE)], EVERY_TYPE)
    group = pq.read_metadata(io.BytesIO(data)).row_group(0)
    chunks = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    physical = [chunks[f"c_decimal_{at}"].physical_type for at in (7, 8, 9)]
    assert physical == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    for name in ("c_long_0", "_position_file", "_position_offset", "_source_ts"):
        assert "DELTA_BINARY_PACKED" in chunks[name].encodings
    assert not chunks["_row_digest"].has_dictionary_page


def test_small_tables_are_gathered_and_large_ones_cut_into_row_groups(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lakesplice.formats.parquet.write.ROW_GROUP_ROWS_MAX", 2 * ROWS_PER_PAGE)
    table = wide(20_000)
    data, written = write([table.slice(at, 300) for at in range(0, 20_000, 300)], WIDE)
    opened = reader(data, 20_000, WIDE)
    assert [last - first for first, last in opened.row_groups] == [8192, 8192, 3616]
    assert pa.concat_tables(opened.read(at) for at in range(3)).equals(table)
    assert written.rows == 20_000


def test_row_groups_are_bounded_by_bytes() -> None:
    data, _ = write([wide(20_000)], WIDE, row_group_bytes=1_000_000)
    assert reader(data, 20_000, WIDE).row_groups == ((0, 8192), (8192, 16384), (16384, 20000))


def test_a_file_without_rows_can_be_written_and_read() -> None:
    data, written = write([], WIDE)
    assert reader(data, 0, WIDE).row_groups == ()
    assert json.loads(written.stats)["numRecords"] == 0


def test_the_pages_end_where_the_page_index_begins() -> None:
    data, written = write([wide(10_000)], WIDE)
    chunks = footer(data)[4][0][1]
    assert written.pages_end == min(chunk[6] for chunk in chunks)


def test_statistics_are_exact_and_cover_each_column_that_always_has_bounds() -> None:
    _, written = write([base([row(2, LOW), row(5, HIGH), row(3, None)], EVERY_TYPE)], EVERY_TYPE)
    stats = json.loads(written.stats, parse_float=str)
    assert stats["numRecords"] == 3
    assert stats["nullCount"] == {n: int(n != "c_long_0") for n in stats_columns(EVERY_TYPE)}
    assert stats["minValues"] == {
        "c_long_0": 2,
        "c_byte_2": -128,
        "c_short_3": -32768,
        "c_integer_4": -(2**31),
        "c_decimal_7": "-999.99",
        "c_decimal_8": "-" + "9" * 15 + ".999",
        "c_decimal_9": "-" + "9" * 28 + "." + "9" * 10,
        "c_date_12": "1000-01-01",
    }
    assert stats["maxValues"]["c_date_12"] == "9999-12-31"
    assert tuple(stats["minValues"]) == tuple(stats["maxValues"]) == stats_columns(EVERY_TYPE)


def test_a_value_beyond_what_bounds_can_say_leaves_the_number_of_rows_alone() -> None:
    images = base([row(1, LOW), row(2, HIGH)], EVERY_TYPE)
    at = images.schema.get_field_index("c_date_12")
    beyond = pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())
    _, written = write([images.set_column(at, images.schema.field(at), beyond)], EVERY_TYPE)
    assert json.loads(written.stats) == {"numRecords": 2}


def test_statistics_cover_all_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakesplice.formats.parquet.write.ROW_GROUP_ROWS_MAX", ROWS_PER_PAGE)
    _, written = write([wide(10_000)], WIDE)
    stats = json.loads(written.stats)
    assert (stats["minValues"]["id"], stats["maxValues"]["id"]) == (0, 9_999)
    assert stats["nullCount"]["price"] == 10_000
    assert "price" not in stats["minValues"]


def test_row_groups_that_cannot_match_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakesplice.formats.parquet.write.ROW_GROUP_ROWS_MAX", ROWS_PER_PAGE)
    data, _ = write([wide(10_000)], WIDE)
    opened = reader(data, 10_000, WIDE)
    assert opened.matching(pc.field("id") == 5_000) == (1,)
    assert opened.matching(pc.field("id") < 0) == ()
    assert opened.matching(pc.field("flag")) == (0, 1, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TableSchema(WIDE.columns, ("few",), WIDE.versions),
        lambda: TableSchema(WIDE.columns[:4], WIDE.key, (0, 4)),
        lambda: TableSchema(
            (*WIDE.columns[:4], Column(4, "cost", "c", WIDE.columns[4].type, "")), ("id",), (0, 5)
        ),
    ],
)
def test_a_file_of_other_columns_is_refused(make: Callable[[], TableSchema]) -> None:
    data, _ = write([wide(10)], WIDE)
    with pytest.raises(CorruptFileError, match=r"b\.parquet"):
        reader(data, 10, make())


def test_a_file_of_another_number_of_rows_is_refused() -> None:
    data, _ = write([wide(10)], WIDE)
    with pytest.raises(CorruptFileError, match="number of rows"):
        reader(data, 11, WIDE)


def test_a_page_that_cannot_be_decoded_names_its_file() -> None:
    data, _ = write([wide(10)], WIDE)
    (start, *_) = page_starts(data, footer(data)[4][0][1][0])
    damaged = bytearray(data)
    damaged[start + 30 : start + 60] = bytes(30)
    with pytest.raises(CorruptFileError, match=r"b\.parquet"):
        reader(bytes(damaged), 10, WIDE).read(0, ["id"])


@pytest.mark.parametrize(
    ("precision", "scale", "as_integer", "fits"),
    [(12, 2, True, True), (12, 2, False, True), (12, 3, True, False), (11, 2, True, False)],
)
def test_another_writers_decimals_are_kept_if_they_are_those_of_the_column(
    precision: int, scale: int, as_integer: bool, fits: bool
) -> None:
    prices = pa.array([Decimal("1.25"), None], pa.decimal128(precision, scale))
    sink = pa.BufferOutputStream()
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "price": prices})
    pq.write_table(table, sink, store_decimal_as_integer=as_integer)
    found = unfit_columns(pq.ParquetFile(pa.BufferReader(sink.getvalue())), WIDE)
    assert [text.split(" is ")[0] for text in found] == ([] if fits else ["column 'price'"])
