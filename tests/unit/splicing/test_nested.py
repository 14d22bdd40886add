"""Nested columns with new values: all nulls are kept, and none is added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.errors import UsageError
from lakesplice.planning.rows.edits import ColumnEdit, Edits
from lakesplice.splicing.splice import splice
from lakesplice.splicing.verify import verify_edits
from lakesplice.storage.copying import FileSink


def spliced(path: Path, column: pa.Array, new: pa.Array, *, nullable: bool) -> list[Any]:
    """The column after its second value became `new`."""
    field = pa.field("x", column.type, nullable)
    target = path / "target"
    pq.write_table(
        pa.table([column], schema=pa.schema([field])), path / "source", write_page_index=True
    )
    row = np.array([1])
    edits = Edits(row, {"x": ColumnEdit(row, new)})
    with pa.memory_map(str(path / "source")) as source, pa.OSFile(str(target), "wb") as sink:
        splice(source, "source", edits, FileSink(sink))
    with pa.memory_map(str(target)) as written:
        verify_edits(written, "target", edits)
    found: list[Any] = pq.read_table(target).column("x").to_pylist()
    return found


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


NUMBERS = pa.list_(_required("element", pa.int64()))
PAIR = pa.struct([_required("a", pa.int64()), pa.field("b", pa.float64())])
NAMED = pa.map_(pa.string(), _required("value", pa.int64()))
DEEP = pa.list_(pa.struct([pa.field("a", NUMBERS)]))

CASES = [
    (NUMBERS, [[1], None, []], [None]),
    (PAIR, [{"a": 1, "b": 0.5}, None, None], {"a": None, "b": 1.0}),
    (NAMED, [[("k", 1)], None, []], [("k", None)]),
    (DEEP, [[{"a": [1, 2]}], None, [None, {"a": None}]], [{"a": [None]}]),
]


@pytest.mark.parametrize(("kind", "values", "_broken"), CASES)
def test_a_value_and_a_null_take_the_place_of_others(
    kind: pa.DataType, values: list[Any], _broken: Any, tmp_path: Path
) -> None:
    for new in (*values, None):
        found = spliced(tmp_path, pa.array(values, kind), pa.array([new], kind), nullable=True)
        assert found == [values[0], new, values[2]]


@pytest.mark.parametrize(("kind", "values", "broken"), CASES)
def test_a_null_where_the_type_has_none_is_refused(
    kind: pa.DataType, values: list[Any], broken: Any, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="doesn't allow null"):
        spliced(tmp_path, pa.array(values, kind), pa.array([broken], kind), nullable=True)


@pytest.mark.parametrize("kind", [pa.int64(), pa.list_(pa.int64())])
def test_a_required_column_stays_required(kind: pa.DataType, tmp_path: Path) -> None:
    column = pa.array([1, 2, 3]) if kind == pa.int64() else pa.array([[], [2], [None]], kind)
    assert spliced(tmp_path, column, column[2:], nullable=False)[1] == column[2].as_py()
    assert not pq.read_schema(tmp_path / "target").field("x").nullable
    with pytest.raises(UsageError, match="doesn't allow null"):
        spliced(tmp_path, column, pa.nulls(1, kind), nullable=False)
