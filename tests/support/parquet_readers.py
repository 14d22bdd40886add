"""One Parquet file through every reader of the matrix, whole or through a filter.

Each reader has code of its own for pages, dictionaries, statistics and indexes (pyarrow and DuckDB
in C++, Polars, DataFusion and arro3 in Rust, chDB's and Spark's two). They map types differently,
so each reader's result for one file is compared with its own result for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from arro3.io import read_parquet
from datafusion import SessionConfig, SessionContext

from tests.support import short_jvms
from tests.support.parquet_conditions import (
    OPERATORS,
    Condition,
    in_clickhouse,
    in_datafusion,
    in_duckdb,
    in_spark,
)

# DuckDB's pages of integers, which a splice copies.
_MINIBLOCKS = "cannot skip miniblock of size 256"


def _by_bloom_filter(condition: Condition) -> bool:
    """DuckDB 1.5 looks into bloom filters for a blob's text, escapes and all, and for one of the
    two zeros.
    """
    sought = condition.values if condition.operator in ("=", "in") else ()
    return any(isinstance(v, bytes) or (isinstance(v, float) and v == 0) for v in sought)


@dataclass(frozen=True)
class Reader:
    """A reader by name; `filters` where it can be given a condition.

    `unskippable` is what it says of pages by some writers that it reads but can't skip rows of;
    `zeros` is whether it finds both zeros by either; `mistakes` are conditions that it gets wrong
    of any file.
    """

    name: str
    read: Callable[[Path, Condition | None], pa.Table]
    filters: bool = True
    unskippable: str = ""
    zeros: bool = True
    mistakes: Callable[[Condition], bool] = field(default=lambda _: False, repr=False)

    def cannot_skip(self, said: str) -> bool:
        """Whether that is what it said."""
        return bool(self.unskippable) and self.unskippable in said


def by_pyarrow(path: Path, condition: Condition | None) -> pa.Table:
    """Through pyarrow, which verifies checksums and prunes row groups by statistics."""
    wanted = None if condition is None else condition.expressed(pc.field(condition.column))
    return pq.read_table(path, filters=wanted, page_checksum_verification=True)


def by_duckdb(path: Path, condition: Condition | None) -> pa.Table:
    """Through DuckDB, which prunes row groups by statistics, dictionaries and bloom filters."""
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("set timezone = 'UTC'")
        where = "" if condition is None else f" where {condition.sql(in_duckdb)}"
        return database.sql(f"select * from read_parquet('{path}'){where}").to_arrow_table()


def by_polars(path: Path, condition: Condition | None) -> pa.Table:
    """Through Polars; a condition is evaluated while it decodes."""
    frame = pl.scan_parquet(path, parallel="columns" if condition is None else "prefiltered")
    if condition is not None:
        column = pl.col(condition.column)
        match condition.operator:
            case "is null":
                frame = frame.filter(column.is_null())
            case "in":
                frame = frame.filter(column.is_in(list(condition.values)))
            case operator:
                frame = frame.filter(OPERATORS[operator](column, pl.lit(condition.values[0])))
    return frame.collect().to_arrow()


def by_datafusion(path: Path, condition: Condition | None, batch_rows: int = 8192) -> pa.Table:
    """Through DataFusion, which prunes pages by the index and selects rows while it decodes."""
    settings = {
        "pushdown_filters": "true",
        "reorder_filters": "true",
        "bloom_filter_on_read": "true",
    }
    config = SessionConfig().with_target_partitions(1).with_batch_size(batch_rows)
    for name, value in settings.items():
        config = config.set(f"datafusion.execution.parquet.{name}", value)
    context = SessionContext(config)
    context.register_parquet("t", str(path))
    where = "" if condition is None else f" where {condition.sql(in_datafusion)}"
    return _without_views(pa.table(context.sql(f"select * from t{where}").to_arrow_table()))


def _without_views(table: pa.Table) -> pa.Table:
    """Columns of views as usual ones: pyarrow can't take rows of views."""
    dense = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    return table.cast(pa.schema([f.with_type(dense.get(f.type, f.type)) for f in table.schema]))


def by_arro3(path: Path, condition: Condition | None) -> pa.Table:
    """Through arro3."""
    assert condition is None
    return pa.table(read_parquet(str(path)).read_all())


def by_chdb(path: Path, condition: Condition | None, **settings: int) -> pa.Table:
    """Through ClickHouse's reader, pruning by statistics, page index and bloom filters."""
    import chdb

    where = "" if condition is None else f" where {condition.sql(in_clickhouse)}"
    given = {
        "input_format_parquet_filter_push_down": 1,
        "input_format_parquet_page_filter_push_down": 1,
        "input_format_parquet_bloom_filter_push_down": 1,
        "input_format_parquet_preserve_order": 1,
        "output_format_arrow_string_as_string": 0,
        "max_threads": 1,
        **settings,
    }
    options = ", ".join(f"{name} = {value}" for name, value in given.items())
    query = f"select * from file('{path}', Parquet){where} settings {options}"
    ask: Any = chdb.query  # which has no types
    answer = ask(query, "Arrow").bytes()
    return pa.ipc.open_file(pa.BufferReader(answer)).read_all()


IN_PROCESS: Sequence[Reader] = (
    Reader("pyarrow", by_pyarrow),
    Reader(
        "DuckDB",
        by_duckdb,
        unskippable="PlainSkip not implemented",
        mistakes=_by_bloom_filter,
    ),
    Reader("Polars", by_polars),
    Reader("DataFusion", by_datafusion, unskippable=_MINIBLOCKS, zeros=False),
    Reader(
        "DataFusion, 1,000 rows a batch",
        lambda p, c: by_datafusion(p, c, 1000),
        unskippable=_MINIBLOCKS,
        zeros=False,
    ),
    Reader("arro3", by_arro3, filters=False),
    Reader("chDB", by_chdb, zeros=False),
    Reader(
        "chDB, 1,000 rows a block",
        lambda p, c: by_chdb(p, c, max_block_size=1000),
        zeros=False,
    ),
)


@cache
def spark_session() -> Any:
    """A Spark session of this process, for reading Parquet."""
    from lakesplice.spark.session import build_session

    short_jvms.use()
    return build_session(
        "local[1]",
        "1g",
        [],
        {
            "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
            "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
            "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
            "spark.sql.legacy.parquet.nanosAsLong": "true",
            "spark.sql.files.maxPartitionBytes": "1g",
        },
    )


def prepare_own_session() -> None:
    """End that session, if it runs, before a test starts one of its own: a process has one, so the
    test would get this one. The JVM is one of `short_jvms`.
    """
    short_jvms.use()
    if spark_session.cache_info().currsize:
        spark_session().stop()
        spark_session.cache_clear()


@dataclass(frozen=True)
class SparkReader:
    """Spark with one choice of its settings."""

    vectorized: bool = True
    column_index: bool = True
    batch_rows: int = 4096

    @property
    def reader(self) -> Reader:
        """It as a `Reader`."""
        kind = f"{self.batch_rows} rows a batch" if self.vectorized else "row by row"
        index = "" if self.column_index else ", no column index"
        return Reader(f"Spark, {kind}{index}", self.read, zeros=self.vectorized)

    def read(self, path: Path, condition: Condition | None) -> pa.Table:
        """The file's rows in order."""
        spark = spark_session()
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(self.vectorized).lower())
        spark.conf.set("spark.sql.parquet.columnarReaderBatchSize", str(self.batch_rows))
        spark.conf.set("spark.sql.parquet.recordLevelFilter.enabled", "true")
        index = str(self.column_index).lower()
        frame = spark.read.option("parquet.filter.columnindex.enabled", index).parquet(str(path))
        if condition is not None:
            frame = frame.where(condition.sql(in_spark).replace('"', "`"))
        return frame.toArrow()


SPARK: Sequence[Reader] = tuple(
    one.reader
    for one in (
        SparkReader(),
        SparkReader(batch_rows=1000),
        SparkReader(batch_rows=37, column_index=False),
        SparkReader(vectorized=False),
        SparkReader(vectorized=False, column_index=False),
    )
)
