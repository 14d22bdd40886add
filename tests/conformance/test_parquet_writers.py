"""Files of present-day writers are read to the last page header, and agree with their page
index.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.parquet_parts import parquet, read_to_the_last_page, some_table

ROWS = 3000
AT = range(ROWS)
TABLE = pa.table(
    {
        **{field.name: some_table(ROWS)[field.name] for field in some_table(ROWS).schema},
        "flag": [None if n % 5 == 0 else n % 2 == 0 for n in AT],
        "day": [dt.date(2020, 1, 1) + dt.timedelta(n % 900) for n in AT],
        "moment": pa.array([n * 1_000_003 for n in AT], pa.timestamp("us")),
        "price": pa.array([Decimal(n) / 100 for n in AT], pa.decimal128(12, 2)),
        "short": pa.array([n % 100 for n in AT], pa.int16()),
        "blob": pa.array([b"\x00" * (n % 40) for n in AT], pa.binary()),
        "nothing": pa.array([None] * ROWS, pa.int32()),
        "list": pa.array([[n] * (n % 4) for n in AT], pa.list_(pa.int32())),
    }
)

PYARROW: dict[str, dict[str, Any]] = {
    "as it is": {},
    "data pages v2": {"data_page_version": "2.0"},
    "plain": {"use_dictionary": False},
    "snappy": {"compression": "snappy"},
    "uncompressed": {"compression": "none"},
    "a dictionary given up": {"dictionary_pagesize_limit": 500, "max_rows_per_page": 70},
    "pages by bytes": {"max_rows_per_page": 1 << 20, "data_page_size": 300, "write_batch_size": 7},
    "one page": {"max_rows_per_page": 1 << 20, "row_group_size": ROWS},
    "byte stream split": {
        "use_dictionary": False,
        "column_encoding": {
            "holes": "BYTE_STREAM_SPLIT",
            "many": "DELTA_BYTE_ARRAY",
            "id": "DELTA_BINARY_PACKED",
        },
    },
    "sorted": {"sorting_columns": [pq.SortingColumn(0)]},
    "no index": {"write_page_index": False},
}


@pytest.mark.parametrize("name", PYARROW)
def test_a_file_by_pyarrow(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(TABLE, **PYARROW[name]))
    source = read_to_the_last_page(path)
    assert source.footer.encode() == path.read_bytes()[source.footer.start :]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "lz4", "uncompressed"])
def test_a_file_by_polars(codec: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pl.from_arrow(TABLE)
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path, compression=codec, row_group_size=1000, data_page_size=2000)
    assert read_to_the_last_page(path).footer.num_rows == ROWS


@pytest.mark.parametrize("version", ["V1", "V2"])
def test_a_file_by_duckdb(version: str, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with duckdb.connect() as connection:
        connection.register("made", TABLE)
        connection.execute(
            f"copy made to '{path}'"
            f" (format parquet, parquet_version {version}, row_group_size 2048)"
        )
    assert read_to_the_last_page(path).footer.num_rows == ROWS
