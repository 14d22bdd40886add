from __future__ import annotations

import io
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import CorruptFileError
from lakesplice.formats.deltas import decode_delta, encode_delta
from lakesplice.formats.deltas.container import read_head, write_head
from lakesplice.model.change import delta_schema
from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Kind
from tests.conformance.test_deltas_in_avro import CHANGES
from tests.support.every_type import EVERY_TYPE

LAYOUT = delta_schema(EVERY_TYPE)
TABLE = pa.Table.from_pylist(CHANGES, schema=LAYOUT)
DATA = encode_delta(TABLE, EVERY_TYPE)


def decoded(data: bytes, **options: Any) -> pa.Table:
    return decode_delta(data, EVERY_TYPE, 1, path="x.avro", **options)


def test_a_delta_round_trips_in_the_order_of_addresses_and_positions() -> None:
    keys = ("_group", "_row", "_position_file", "_position_offset")
    ordered = TABLE.sort_by([(key, "ascending") for key in keys])
    assert decoded(DATA).equals(ordered)
    assert encode_delta(TABLE.take(pa.array([2, 0, 1])), EVERY_TYPE) == DATA


@pytest.mark.parametrize(
    "places",
    [
        [(1, 0, 0, 1), (0, 0, 0, 0)],
        [(0, 1, 0, 1), (0, 0, 0, 0)],
        [(0, 0, 0, 1), (0, 0, 0, 0)],
        [(0, 0, 1, 0), (0, 0, 0, 1)],
        [(0, 0, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0)],
    ],
    ids=["groups", "rows", "offsets of a row", "files of a row", "the last of three"],
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


def test_some_columns_are_read_in_the_order_asked_for() -> None:
    table = decoded(DATA, columns=["c_timestamp_13", "_row"])
    assert table.equals(decoded(DATA).select(["c_timestamp_13", "_row"]))


def test_columns_added_since_are_null() -> None:
    added = Column(14, "added", "added", ColumnType(Kind.BYTE), "TINYINT")
    now = EVERY_TYPE.with_columns([added], EVERY_TYPE.key)
    table = decode_delta(DATA, now, 1, path="x.avro")
    assert table.schema == delta_schema(now)
    assert table.column("added").null_count == 3
    assert table.drop_columns(["added"]).equals(decoded(DATA))
    assert decode_delta(DATA, now, 1, path="x.avro", columns=["added"]).num_rows == 3


def test_a_delta_of_another_schema_version_is_refused() -> None:
    with pytest.raises(CorruptFileError, match=r"x\.avro.*expected=0"):
        decode_delta(DATA, EVERY_TYPE, 0, path="x.avro")


def test_required_values_are_required() -> None:
    sink = io.BytesIO()
    rows = decoded(DATA).set_column(1, "_row", pa.nulls(3, pa.int64()))
    frame = pl.from_arrow(rows.select(["_group", "_row"]))
    assert isinstance(frame, pl.DataFrame)
    frame.write_avro(sink, name="x")
    metadata, sync = read_head(sink.getvalue(), "")
    data = write_head(metadata | {"lakesplice.schema_version": b"1"}) + sink.getvalue()[sync:]
    with pytest.raises(CorruptFileError, match="_row"):
        decoded(data, columns=["_group", "_row"])


@pytest.mark.parametrize("size", range(0, len(DATA), 41))
def test_a_truncated_delta_is_refused_by_name(size: int) -> None:
    with pytest.raises(CorruptFileError, match=r"x\.avro"):
        decoded(DATA[:size])


@given(st.binary(max_size=200))
def test_any_bytes_give_a_named_error(data: bytes) -> None:
    for given_data in (data, b"Obj\x01" + data):
        with pytest.raises(CorruptFileError):
            decoded(given_data)


@given(st.dictionaries(st.text(max_size=5), st.binary(max_size=300), max_size=70))
def test_heads_round_trip(metadata: dict[str, bytes]) -> None:
    head = write_head(metadata)
    assert read_head(head + b"sync", "") == (metadata, len(head))
