"""Decimals and INT96 times keep their physical type, whoever wrote the file."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakesplice

ROWS = 1000
KINDS = [pa.decimal128(5, 2), pa.decimal128(10, 2), pa.decimal128(18, 4), pa.decimal128(38, 10)]


def written(path: Path, values: pa.Array, **options: Any) -> Path:
    table = pa.table({"id": np.arange(ROWS), "x": values})
    options = {"max_rows_per_page": 100, "write_batch_size": 50, "write_page_index": True} | options
    pq.write_table(table, path / "source.parquet", **options)
    return path / "source.parquet"


@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_page_of_decimals_is_encoded_as_the_others_are(
    kind: pa.DataType, as_integer: bool, use_dictionary: bool, tmp_path: Path
) -> None:
    values = pa.array([None if at % 7 == 0 else Decimal(at % 50) for at in range(ROWS)], kind)
    source = written(
        tmp_path, values, store_decimal_as_integer=as_integer, use_dictionary=use_dictionary
    )
    changes = pa.table({"id": [5, 6], "x": pa.array([Decimal("1.25"), None], kind)})
    target = tmp_path / "target.parquet"
    done = lakesplice.splice_file(source, changes, target, key="id")
    assert (done.rewritten, done.pages_copied, done.pages_encoded) == (None, 19, 1)
    expected = [*values[:5].to_pylist(), Decimal("1.25"), None, *values[7:].to_pylist()]
    assert pq.read_table(target).column("x").to_pylist() == expected
    before, after = (pq.read_metadata(path).schema.column(1) for path in (source, target))
    assert (before.physical_type, before.length) == (after.physical_type, after.length)
    statistics = pq.read_metadata(target).row_group(0).column(1).statistics
    assert (statistics.min, statistics.max) == (Decimal(0), Decimal(49))


@pytest.mark.parametrize("kind", KINDS[:2], ids=str)
def test_decimals_of_fixed_length_in_a_nested_column_stay_so(
    kind: pa.DataType, tmp_path: Path
) -> None:
    nested = pa.struct([("price", kind), ("count", pa.int64())])
    row = {"price": Decimal("1.5"), "count": 3}
    source = written(tmp_path, pa.array([row] * ROWS, nested))
    new = {"price": Decimal("-2.5"), "count": 4}
    changes = pa.table({"id": [5], "x": pa.array([new], nested)})
    target = tmp_path / "target.parquet"
    done = lakesplice.splice_file(source, changes, target, key="id")
    assert (done.rewritten, done.encoded_whole["x.price"]) == (None, "nested")
    assert pq.read_table(target).column("x").to_pylist()[4:7] == [row, new, row]


def test_a_file_with_an_edited_int96_column_is_rewritten_whole_and_says_why(tmp_path: Path) -> None:
    values = pa.array(np.arange(ROWS), pa.timestamp("us"))
    source = written(tmp_path, values, use_deprecated_int96_timestamps=True)
    changes = pa.table({"id": [5], "x": pa.array([77], pa.timestamp("us"))})
    target = tmp_path / "target.parquet"
    done = lakesplice.splice_file(source, changes, target, key="id")
    assert done.rewritten == "other_layout"
    assert pq.read_metadata(target).schema.column(1).physical_type == "INT96"
    assert pq.read_table(target).column("x")[5].value == 77_000
