"""Tables and folders of other writers, for adoption."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakesplice import Table
from lakesplice.errors import (
    LakespliceError,
)
from tests.support.readers import READERS

ROWS = 3000
TWO = pa.table({"id": [1, 2], "name": ["a", "b"]})
START = dt.datetime(2020, 2, 29, 23, 59, 59, 123456, tzinfo=dt.UTC)


def some_rows(first: int = 0, last: int = ROWS) -> pa.Table:
    """Rows of every type that files may keep, keyed by `id`, nulls among them."""
    at = range(first, last)
    return pa.table(
        {
            "id": pa.array(at, pa.int64()),
            "name": pa.array([None if n % 11 == 0 else f"näme {n % 500}" for n in at]),
            "n": pa.array([None if n % 5 == 0 else n % 7 for n in at], pa.int32()),
            "small": pa.array([n % 100 for n in at], pa.int16()),
            "tiny": pa.array([n % 100 for n in at], pa.int8()),
            "ratio": pa.array([n / 3 for n in at], pa.float64()),
            "flag": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in at]),
            "price": pa.array([Decimal(n) / 100 for n in at], pa.decimal128(12, 2)),
            "large": pa.array([Decimal(n) * 10**20 for n in at], pa.decimal128(38, 4)),
            "day": pa.array([dt.date(2020, 1, 1) + dt.timedelta(n % 900) for n in at]),
            "at": pa.array(
                [START + dt.timedelta(seconds=n * 1001) for n in at], pa.timestamp("us", tz="UTC")
            ),
            "blob": pa.array([b"\x00" * (n % 40) for n in at], pa.binary()),
        }
    )


def by_pyarrow(path: Path, **options: Any) -> None:
    """Two files, the second with its columns the other way round."""
    path.mkdir()
    pq.write_table(some_rows(0, 1000), path / "a.parquet", **options)
    rest = some_rows(1000)
    pq.write_table(rest.select(rest.column_names[::-1]), path / "b c.parquet", **options)


def by_pyarrow_with_int96(path: Path) -> None:
    """Times as Spark's old INT96."""
    by_pyarrow(path, use_deprecated_int96_timestamps=True, row_group_size=500)


def by_pyarrow_for_pages(path: Path) -> None:
    """Page index, checksums, several pages a chunk."""
    by_pyarrow(path, write_page_index=True, write_page_checksum=True, max_rows_per_page=300)


def by_duckdb(path: Path) -> None:
    """Row groups of DuckDB's size, without an offset index."""
    path.mkdir()
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("made", some_rows())
        target = path / "part.parquet"
        connection.execute(f"copy made to '{target}' (format parquet, row_group_size 2048)")


def by_polars(path: Path) -> None:
    """In a folder of its own within the folder."""
    (path / "more").mkdir(parents=True)
    frame = pl.from_arrow(some_rows())
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(path / "more" / "all.parquet", row_group_size=1000)


def by_deltalake(path: Path) -> None:
    """Three versions: rows, more rows, some deleted and written again."""
    deltalake.write_deltalake(str(path), some_rows(0, 1000))
    deltalake.write_deltalake(str(path), some_rows(900, ROWS), mode="append")
    table = deltalake.DeltaTable(str(path))
    table.delete("id >= 900 and id < 1000")
    deltalake.write_deltalake(str(path), some_rows(900, 1000), mode="append")


def by_deltalake_with_checkpoint(path: Path) -> None:
    """As above, and read from a checkpoint."""
    by_deltalake(path)
    deltalake.DeltaTable(str(path)).create_checkpoint()


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "pyarrow": by_pyarrow,
    "pyarrow with INT96": by_pyarrow_with_int96,
    "pyarrow with a page index": by_pyarrow_for_pages,
    "DuckDB": by_duckdb,
    "Polars": by_polars,
    "deltalake": by_deltalake,
    "deltalake with a checkpoint": by_deltalake_with_checkpoint,
}


Rows = dict[int, dict[str, Any]]


def by_key(table: pa.Table, columns: Sequence[str]) -> Rows:
    """These columns of a table's rows by `id`, which no two share."""
    rows = table.select(columns).to_pylist()
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def live_elsewhere(path: Path, version: int, engine: str) -> pa.Table:
    """A version's rows that aren't deleted, as another engine reads an adopted table."""
    found = READERS[engine](path, version)
    deleted = found.column("_is_deleted").to_pylist()
    return found.filter(pa.array([flag is not True for flag in deleted]))


def files_of(path: Path) -> dict[str, bytes]:
    """The Parquet files of a table, by name, outside of our own folders."""
    return {
        file.relative_to(path).as_posix(): file.read_bytes()
        for file in path.rglob("*.parquet")
        if "_delta_log" not in file.parts and "base" not in file.parts
    }


def folder(path: Path, **files: pa.Table) -> Path:
    path.mkdir(exist_ok=True)
    for name, rows in files.items():
        pq.write_table(rows, path / f"{name}.parquet")
    return path


def refusal(path: Path, key: str = "id") -> str:
    before = sorted(path.rglob("*"))
    with pytest.raises(LakespliceError) as planned:
        Table.adoption(path, key=[key])
    with pytest.raises(type(planned.value)) as done:
        Table.adopt(path, key=[key])
    assert str(done.value) == str(planned.value)
    assert [file for file in sorted(path.rglob("*")) if file in before] == before
    return str(done.value)
