"""Reads a version of a table by other engines, each with its own implementation of Delta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable


def by_deltalake(path: Path, version: int) -> pa.Table:
    """The version as delta-rs reads it."""
    return pa.table(DeltaTable(str(path), version=version).to_pyarrow_table())


def by_polars(path: Path, version: int) -> pa.Table:
    """The version as Polars reads it."""
    return pl.scan_delta(str(path), version=version).collect().to_arrow()


def by_duckdb(path: Path, version: int) -> pa.Table:
    """The version as DuckDB's delta extension, which is Delta's own kernel, reads it."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as database:
        extension = files("duckdb_extension_delta") / "extensions" / f"v{duckdb.__version__}"
        database.execute(f"load '{extension / 'delta.duckdb_extension'}'")
        database.execute("set timezone = 'UTC'")
        query = f"select * from delta_scan('{path}', version => {version})"
        return database.sql(query).to_arrow_table()


READERS: Mapping[str, Callable[[Path, int], pa.Table]] = {
    "deltalake": by_deltalake,
    "Polars": by_polars,
    "DuckDB": by_duckdb,
}
