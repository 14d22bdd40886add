"""Small Parquet files made in memory, to look into their parts."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.splicing.place import Place

PLACE = Place("some.parquet", "some part")
EVERYTHING: dict[str, Any] = {
    "compression": "zstd",
    "write_page_index": True,
    "write_page_checksum": True,
    "max_rows_per_page": 100,
    "write_batch_size": 100,
    "data_page_size": 1 << 30,
    "row_group_size": 1000,
}


def parquet(table: pa.Table, **options: Any) -> bytes:
    """A file with indexes, checksums, pages of 100 rows and row groups of 1,000, unless told."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{**EVERYTHING, **options})
    data: bytes = sink.getvalue().to_pybytes()
    return data


def opened(data: bytes) -> pa.NativeFile:
    return pa.BufferReader(data)


def some_table(rows: int = 2500) -> pa.Table:
    """Numbers, few and many texts, and a column with nulls in every third row."""
    at = range(rows)
    return pa.table(
        {
            "id": pa.array(at, pa.int64()),
            "few": [f"kind {n % 7}" for n in at],
            "many": [f"text {n * 7919 % 10007}" for n in at],
            "holes": pa.array([None if n % 3 == 0 else n / 2 for n in at], pa.float64()),
        }
    )
