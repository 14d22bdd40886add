"""Small Parquet files in memory, for tests of their parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.splicing.faults import FilePart
from lakesplice.splicing.structures.source import SourceFile

PLACE = FilePart("some.parquet", "some part")
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


def read_to_the_last_page(path: Path) -> SourceFile:
    """Find every page by walking, and see that the indexes say the same."""
    source = SourceFile(pa.memory_map(str(path)), path.name)
    for group in range(len(source.footer.row_groups)):
        for column in range(len(source.footer.leaves)):
            pages = [page for page in source.pages(group, column) if page.header.is_data]
            index = source.offset_index(group, column)
            bounds = source.column_index(group, column)
            if index is not None:
                assert index.offsets.tolist() == [page.offset for page in pages]
                assert index.ends.tolist() == [page.end for page in pages]
                assert bounds is None or len(bounds) == len(pages)
    return source
