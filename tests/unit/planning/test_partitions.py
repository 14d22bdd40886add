"""Which partition a row is in, in the notation of Delta's log."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import UnsupportedError
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.shape.partition_columns import partitions_of


def schema(**types: str) -> TableSchema:
    columns = tuple(
        Column(at, name, name, ColumnType.parse(kind), kind)
        for at, (name, kind) in enumerate(types.items())
    )
    return TableSchema(columns, (), (len(columns),), partitioned_by=tuple(types))


def spelt(kind: str, *values: Any) -> list[str | None]:
    table = schema(c=kind)
    rows = pa.table({"c": pa.array(values, table.columns[0].type.arrow)})
    found = partitions_of(rows, table)
    return [found.values[code][0] for code in found.codes.tolist()]


def test_values_are_spelt_as_the_protocol_says() -> None:
    assert spelt("string", "de", "a/b", " ", None) == ["de", "a/b", " ", None]
    assert spelt("long", -7, 1 << 62, None) == ["-7", str(1 << 62), None]
    assert spelt("byte", -128, 0) == ["-128", "0"]
    assert spelt("boolean", True, False, None) == ["true", "false", None]
    assert spelt("date", date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31)) == [
        "2024-02-29",
        "0001-01-01",
        "9999-12-31",
    ]
    assert spelt(
        "timestamp",
        datetime(2024, 3, 31, 2, 30, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
        None,
    ) == [
        "2024-03-31T02:30:00.000000Z",
        "0001-01-01T00:00:00.000000Z",
        "9999-12-31T23:59:59.999999Z",
        "1969-12-31T23:59:59.999999Z",
        None,
    ]


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_has_one_spelling_and_is_read_back_from_it(moment: datetime) -> None:
    (text,) = spelt("timestamp", moment)
    assert text is not None
    assert datetime.fromisoformat(text) == moment
    assert len(text) == len("2024-03-31T02:30:00.000000Z")


def test_an_empty_text_is_where_null_is() -> None:
    table = schema(c="string")
    found = partitions_of(pa.table({"c": ["", None, "x", ""]}), table)
    assert len(found.values) == 2
    assert [found.values[code] for code in found.codes] == [(None,), (None,), ("x",), (None,)]


@pytest.mark.parametrize("days", [-719163, 2932897])
def test_dates_that_readers_do_not_agree_about_are_refused(days: int) -> None:
    rows = pa.table({"c": pa.array([0, days], pa.int32()).cast(pa.date32())})
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        partitions_of(rows, schema(c="date"))
    micros = pa.array([0, days * 86_400_000_000], pa.int64())
    moments = pa.table({"c": micros.cast(pa.timestamp("us", tz="UTC"))})
    with pytest.raises(UnsupportedError, match="years 1 to 9999"):
        partitions_of(moments, schema(c="timestamp"))


def test_no_rows_are_in_no_partition() -> None:
    table = schema(c="string")
    assert partitions_of(pa.table({"c": pa.array([], pa.string())}), table).values == ()


@given(
    st.lists(
        st.tuples(
            st.none() | st.sampled_from(["", "a", "b", "a,b"]),
            st.none() | st.integers(-2, 2),
            st.none() | st.booleans(),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_rows_are_together_if_all_their_values_are_spelt_alike(rows: list[Any]) -> None:
    table = schema(a="string", b="integer", c="boolean")
    columns = [list(column) for column in zip(*rows, strict=True)]
    arrow = pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, table.arrow, strict=False)],
        names=["a", "b", "c"],
    )
    found = partitions_of(arrow, table)
    assert len(set(found.values)) == len(found.values)
    expected = [
        (
            a or None,
            None if b is None else str(b),
            None if c is None else str(c).lower(),
        )
        for a, b, c in rows
    ]
    assert [found.values[code] for code in found.codes] == expected
