"""Columns added with a default: their values in earlier rows, waiting changes and late images."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.formats.events.debezium.connect import UnsupportedSchema, shape_of_schema
from lakesplice.model.column_values import fill_text, fill_value
from lakesplice.model.types import ColumnType

VALUES = st.one_of(
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("long"), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just("double"), st.floats(allow_nan=False)),
    st.tuples(st.just("decimal(20,4)"), st.decimals(-(10**15), 10**15, places=4)),
    st.tuples(st.just("string"), st.text()),
    st.tuples(st.just("binary"), st.binary()),
    st.tuples(st.just("date"), st.dates()),
    st.tuples(st.just("timestamp"), st.datetimes(timezones=st.just(UTC))),
)


@given(VALUES)
def test_a_fill_is_read_back_as_it_was(case: tuple[str, Any]) -> None:
    kind = ColumnType.parse(case[0])
    value = pa.array([case[1]], kind.arrow)[0]
    assert fill_value(fill_text(value, kind), kind).equals(value)


def fill_of(field: dict[str, Any]) -> object:
    """The fill of a column that Debezium describes so."""
    image = {"type": "struct", "fields": [{"field": "v", **field}]}
    members = [{"field": name, **image} for name in ("before", "after", "source")]
    schema = {"type": "struct", "fields": [*members, {"type": "string", "field": "op"}]}
    shape = shape_of_schema(json.dumps(schema))
    assert not isinstance(shape, UnsupportedSchema), shape
    cell = shape.cells[0]
    return None if cell.fill is None else fill_value(cell.fill, cell.type).as_py()


DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "2", "connect.decimal.precision": "8"},
}


@pytest.mark.parametrize(
    ("field", "fill"),
    [
        ({"type": "int32", "optional": True, "default": 5}, 5),
        ({"type": "string", "optional": False, "default": "new"}, "new"),
        ({"type": "bytes", "optional": True, "default": "AQ==", **DECIMAL}, Decimal("0.01")),
        ({"type": "int32", "name": "io.debezium.time.Date", "default": 1}, date(1970, 1, 2)),
        ({"type": "int32", "optional": True}, None),
        ({"type": "int32", "optional": False}, 0),
        ({"type": "string", "optional": False}, ""),
        ({"type": "string", "name": "io.debezium.data.Enum", "optional": False}, None),
        ({"type": "string", "name": "io.debezium.time.ZonedTimestamp", "optional": False,
          "default": "1970-01-01T00:00:00Z"}, None),
        ({"type": "int32", "optional": True, "default": "no number"}, None),
    ],
)  # fmt: skip
def test_a_fill_is_what_mysql_puts_into_its_rows_or_unknown(
    field: dict[str, Any], fill: object
) -> None:
    assert fill_of(field) == fill


def test_a_moment_is_counted() -> None:
    kind = ColumnType.parse("timestamp")
    value = pa.scalar(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), kind.arrow)
    assert fill_text(value, kind) == "1000000"
