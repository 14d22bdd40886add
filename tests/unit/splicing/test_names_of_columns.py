"""Columns are found by any name; columns that share a name are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UsageError
from lakesplice.planning.rows.edits import Edits
from lakesplice.splicing.operations import NewColumn, add_columns, drop_column, replace_column
from lakesplice.splicing.splice import splice
from lakesplice.splicing.verify import verify_edits
from tests.support.in_memory import edits_of, made
from tests.support.parquet_parts import opened, parquet

TWINS = pa.Table.from_arrays(
    [pa.array([1, 2]), pa.array([3, 4]), pa.array([5, 6])], ["a", "a", "b"]
)
SOURCE = parquet(TWINS)
EDIT = edits_of({"a": ([0], pa.array([9]))})
FIELD = pa.field("a", pa.int64())


@pytest.mark.parametrize(
    "operation",
    [
        lambda sink: splice(opened(SOURCE), "a", EDIT, sink),
        lambda sink: add_columns(opened(SOURCE), "a", [NewColumn(FIELD)], Edits(), sink),
        lambda sink: add_columns(
            opened(SOURCE), "a", [NewColumn(pa.field("b", pa.int64()))], Edits(), sink
        ),
        lambda sink: add_columns(
            opened(SOURCE), "a", [NewColumn(pa.field("c", pa.int64()), None, "a")], Edits(), sink
        ),
        lambda sink: drop_column(opened(SOURCE), "a", "a", sink),
        lambda sink: replace_column(opened(SOURCE), "a", FIELD, lambda values: values, sink),
        lambda sink: verify_edits(opened(SOURCE), "a", EDIT),
    ],
)
def test_columns_of_one_name_can_not_be_distinguished(operation: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError, match=r"of one name|of that name"):
        made(operation)


def test_columns_of_one_name_stay_where_another_is_edited() -> None:
    edits = edits_of({"b": ([0], pa.array([9]))})
    found = pq.ParquetFile(opened(made(lambda sink: splice(opened(SOURCE), "a", edits, sink))))
    assert [column.to_pylist() for column in found.read().columns] == [[1, 2], [3, 4], [9, 6]]


@pytest.mark.parametrize("dotted_first", [True, False])
@pytest.mark.parametrize("name", ["a.b", "a"])
def test_a_name_with_a_dot_is_not_a_field_of_a_struct(name: str, dotted_first: bool) -> None:
    columns = {"a.b": pa.array([1, 2, 3]), "a": pa.array([{"b": 7}, {"b": 8}, {"b": 9}])}
    names = sorted(columns, reverse=dotted_first)
    table = pa.table({at: columns[at] for at in names})
    new = pa.array([-2]) if name == "a.b" else pa.array([{"b": -2}])
    edits = edits_of({name: ([1], new)})
    data = made(lambda sink: splice(opened(parquet(table)), "a", edits, sink))
    verify_edits(opened(data), "a", edits)
    expected = {at: columns[at].to_pylist() for at in names}
    expected[name][1] = new[0].as_py()
    assert pq.ParquetFile(opened(data)).read().to_pydict() == expected
