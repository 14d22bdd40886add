"""Bounds in the log lie outside of all values: texts are cut, moments have milliseconds."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakesplice.formats.parquet.stats import TEXT_CHARS_MAX, _text_at_least, delta_stats
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType, Primitive

LAST = "\U0010ffff"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
texts = st.text(
    alphabet=st.sampled_from(["a", "Z", "\u00e4", "\u20ac", "\U0001f600", LAST]), max_size=80
)
moments = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_000)


def schema_of(kind: Primitive) -> TableSchema:
    columns = (
        Column(0, "id", "id", ColumnType(Primitive.LONG), "bigint"),
        Column(1, "value", "value", ColumnType(kind), "of a test"),
    )
    return TableSchema(columns, ("id",), (2,), bounded=frozenset([1]))


def stats_of(values: list[Any], kind: Primitive) -> dict[str, Any]:
    """What the log says of a file of values, in two row groups."""
    schema = schema_of(kind)
    rows = pa.table(
        {"id": range(len(values)), "value": pa.array(values, schema.arrow.field("value").type)}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=max(1, len(values) // 2))
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    stated = json.loads(delta_stats(footer, schema))
    assert isinstance(stated, dict)
    return stated


@given(st.lists(texts | st.none(), min_size=1, max_size=8))
@example(["a" * 40, LAST * 40])
@example([LAST * TEXT_CHARS_MAX + "a"])
@example(["a" * (TEXT_CHARS_MAX - 1) + LAST * 3 + "b"])
def test_no_text_is_outside_of_its_bounds(values: list[str | None]) -> None:
    stated = stats_of(values, Primitive.STRING)
    held = sorted(value.encode() for value in values if value is not None)
    assert stated["nullCount"]["value"] == values.count(None)
    assert ("value" in stated["minValues"]) == bool(held)
    if held:
        low, high = stated["minValues"]["value"], stated["maxValues"]["value"]
        assert low.encode() <= held[0]
        assert high.encode() >= held[-1]
        assert len(low) <= TEXT_CHARS_MAX
        if LAST not in high[:-1]:
            assert len(high) <= TEXT_CHARS_MAX + 1


@given(texts.filter(bool), st.integers(1, 90))
def test_a_bound_that_a_writer_cut_and_counted_up_stays_one(text: str, length: int) -> None:
    """Column indexes hold such bounds, and a splice takes them over."""
    cut = bytearray(text.encode()[:length])
    if len(cut) < len(text.encode()):
        while cut and cut[-1] == 0xFF:
            cut.pop()
        cut[-1] += 1
    stated = _text_at_least(bytes(cut))
    if stated is not None:
        assert json.loads(stated).encode() >= text.encode()


@given(st.lists(moments, min_size=1, max_size=6))
@example([-1, 1])
def test_no_moment_is_outside_of_its_bounds(values: list[int]) -> None:
    stated = stats_of(values, Primitive.TIMESTAMP)
    low, high = (
        datetime.fromisoformat(stated[which]["value"]) - EPOCH
        for which in ("minValues", "maxValues")
    )
    assert low <= timedelta(microseconds=min(values)) < low + timedelta(milliseconds=1)
    assert high - timedelta(milliseconds=1) < timedelta(microseconds=max(values)) <= high


@pytest.mark.parametrize(
    ("kind", "beyond"),
    [
        (Primitive.STRING, "x" * 10_000),  # the writer of Parquet states no bounds of it
        (Primitive.TIMESTAMP, 253_402_300_799_999_999),  # the next millisecond is in the year 10000
        (Primitive.TIMESTAMP, -62_135_596_800_000_001),
    ],
)
def test_a_value_beyond_what_bounds_can_say_leaves_a_file_without(
    kind: Primitive, beyond: Any
) -> None:
    assert stats_of([beyond], kind) == {"numRecords": 1}


def test_a_file_of_which_no_column_has_bounds_says_only_how_many_rows_it_has() -> None:
    """Where everything else is empty, deltalake 1.6.6 takes all bounds for null."""
    schema = TableSchema((Column(0, "id", "id", ColumnType(Primitive.STRING), "text"),), ("id",))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": ["a", "b"]}), sink)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    assert json.loads(delta_stats(footer, schema)) == {"numRecords": 2}
