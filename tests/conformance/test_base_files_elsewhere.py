"""Every engine reads the same rows from base files, new ones and rewritten ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice.model.change import Op
from lakesplice.table.reading.table import Table
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, TYPES, row
from tests.support.made import MadeTable

ROWS = 9_000
NAMES = ", ".join(EVERY_TYPE.names)


@pytest.fixture(scope="module", params=["written", "rewritten"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The file of a table and the rows that were meant."""
    root = tmp_path_factory.mktemp(str(request.param))
    made = MadeTable(root, EVERY_TYPE)
    values = (LOW, HIGH, None)
    meant = [row(key, values[key % 3]) for key in range(ROWS)]
    made.insert(meant)
    if request.param == "rewritten":
        keys = range(0, ROWS, 97)
        for key in keys:
            meant[key] = row(key, values[(key + 1) % 3])
        made.change([(Op.UPDATE, meant[key]) for key in keys])
        made.compact()
    (path,) = made.manifest.files
    truth = pa.Table.from_pylist(meant, schema=pa.schema(list(EVERY_TYPE.user_fields)))
    assert len(TYPES) == truth.num_columns
    assert Table(made.store).read("read_optimised", include_deleted=True).equals(truth)
    return root / path, truth


def test_pyarrow_reads_the_same_rows(files: tuple[Path, pa.Table]) -> None:
    path, rows = files
    assert pq.read_table(path, columns=rows.column_names).equals(rows)


def test_polars_reads_the_same_rows(files: tuple[Path, pa.Table]) -> None:
    path, rows = files
    assert (
        pl.read_parquet(path, columns=rows.column_names).to_arrow().cast(rows.schema).equals(rows)
    )


def test_duckdb_reads_the_same_rows_also_through_a_filter(files: tuple[Path, pa.Table]) -> None:
    path, rows = files
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        query = f"select {NAMES} from read_parquet('{path}')"
        # DuckDB's Arrow has other widths of decimals and no zone name of its own.
        assert database.sql(query).to_arrow_table().cast(rows.schema).equals(rows)
        some = database.sql(f"{query} where c_long_0 between 4090 and 4100").to_arrow_table()
    assert some.cast(rows.schema).equals(rows.slice(4090, 11))
