"""Two tables compared by key: the first difference in words."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakesplice.testing.compare import DifferenceKind, compare

TABLE = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": pa.array(["a", None, "c"]),
        "price": pa.array([Decimal("1.00"), None, Decimal("2.50")], pa.decimal128(10, 2)),
        "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", tz="UTC")),
        "score": pa.array([1.0, float("nan"), None]),
    }
)


def _with(column: str, values: list[object]) -> pa.Table:
    index = TABLE.schema.get_field_index(column)
    return TABLE.set_column(index, column, pa.array(values, TABLE.schema.field(column).type))


def test_the_order_of_rows_and_columns_makes_no_difference() -> None:
    assert (
        compare(TABLE, TABLE.take([2, 0, 1]).select(list(reversed(TABLE.column_names))), ["id"])
        is None
    )


def test_storage_of_a_logical_type_makes_no_difference() -> None:
    other = TABLE.set_column(1, "name", TABLE["name"].cast(pa.large_string()).dictionary_encode())
    other = other.set_column(3, "at", TABLE["at"].cast(pa.timestamp("ns", tz="Etc/UTC")))
    assert compare(TABLE, other, ["id"]) is None


def test_system_columns_of_the_lake_are_passed_over() -> None:
    assert compare(TABLE, TABLE.append_column("_is_deleted", pa.array([False] * 3)), ["id"]) is None


@pytest.mark.parametrize(
    ("actual", "kind", "words"),
    [
        (TABLE.slice(1), DifferenceKind.MISSING_ROW, "missing-row at key (1,)"),
        (pa.concat_tables([TABLE, TABLE.slice(2)]), DifferenceKind.DUPLICATE_KEY, "got 2"),
        (_with("id", [1, 2, 4]), DifferenceKind.MISSING_ROW, "at key (3,)"),
        (_with("name", ["a", None, None]), DifferenceKind.VALUE, "(3,): expected 'c', got None"),
        (_with("name", ["a", "", "c"]), DifferenceKind.VALUE, "expected None, got ''"),
        (_with("score", [1.0, 2.0, None]), DifferenceKind.VALUE, "expected nan, got 2.0"),
        (TABLE.drop_columns(["name"]), DifferenceKind.COLUMNS, "name"),
        (
            TABLE.set_column(2, "price", TABLE["price"].cast(pa.decimal128(12, 4))),
            DifferenceKind.TYPE,
            "expected 'decimal128(10, 2)', got 'decimal128(12, 4)'",
        ),
    ],
)  # fmt: skip
def test_a_difference_says_where_and_what(
    actual: pa.Table, kind: DifferenceKind, words: str
) -> None:
    difference = compare(TABLE, actual, ["id"])
    assert difference is not None
    assert difference.kind is kind
    assert words in str(difference)


def test_an_excess_row_is_reported() -> None:
    difference = compare(TABLE.slice(0, 2), TABLE, ["id"])
    assert difference is not None
    assert (difference.kind, difference.key) == (DifferenceKind.EXTRA_ROW, (3,))
