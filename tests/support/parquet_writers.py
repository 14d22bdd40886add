"""The shape of a Parquet file, and the writers that make one of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import ParquetWriterOptions, SessionConfig, SessionContext

from tests.support.parquet_readers import spark_session
from tests.support.parquet_values import COMMON, RARE


@dataclass(frozen=True)
class ColumnShape:
    """A column: its type by name, how many values differ, how many are null, how it is encoded."""

    kind: str
    distinct: int
    null_share: float
    encoding: str
    required: bool

    @property
    def type(self) -> pa.DataType:
        """Its Arrow type."""
        return {**COMMON, **RARE}[self.kind]


@dataclass(frozen=True)
class FileShape:
    """All that a file comes from."""

    seed: int
    writer: str
    rows: int
    rows_per_page: int
    rows_per_group: int
    codec: str
    pages_v2: bool
    checksums: bool
    page_index: bool
    bloom: bool
    dictionary_bytes: int
    decimals_as_integers: bool
    version: str
    columns: tuple[ColumnShape, ...]


def name_of(column: int, shape: ColumnShape) -> str:
    """The name of a file's column."""
    return f"c{column}_{''.join(char if char.isalnum() else '_' for char in shape.kind)}"


def _by_pyarrow(shape: FileShape, table: pa.Table, path: Path) -> None:
    names = [name_of(at, column) for at, column in enumerate(shape.columns)]
    encodings = dict(zip(names, (column.encoding for column in shape.columns), strict=True))
    nested = {n for n, c in zip(names, shape.columns, strict=True) if c.kind in ("list", "struct")}
    dictionary = [n for n in names if encodings[n] == "dictionary" and n not in nested]
    others = {n: e for n, e in encodings.items() if e != "dictionary" and n not in nested}
    numbers = {n: {"ndv": 2000, "fpp": 0.01} for n in names if _may_bloom(table, n)}
    pq.write_table(
        table,
        path,
        # The first version has no nanoseconds.
        version="2.6" if "timestamp ns" in {one.kind for one in shape.columns} else shape.version,
        row_group_size=shape.rows_per_group,
        compression=shape.codec,
        use_dictionary=dictionary or False,
        column_encoding=others or None,
        dictionary_pagesize_limit=shape.dictionary_bytes,
        write_batch_size=min(shape.rows_per_page, 1024),
        max_rows_per_page=shape.rows_per_page,
        data_page_version="2.0" if shape.pages_v2 else "1.0",
        write_page_index=shape.page_index,
        write_page_checksum=shape.checksums,
        store_decimal_as_integer=shape.decimals_as_integers,
        bloom_filter_options=numbers if shape.bloom else None,
    )


def _may_bloom(table: pa.Table, name: str) -> bool:
    kind = table.schema.field(name).type
    return not (pa.types.is_boolean(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind))


def _by_polars(shape: FileShape, table: pa.Table, path: Path) -> None:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    codec: Any = "uncompressed" if shape.codec == "none" else shape.codec
    frame.write_parquet(
        path,
        compression=codec,
        statistics="full",
        row_group_size=shape.rows_per_group,
        data_page_size=shape.rows_per_page * 8,
    )


def _by_duckdb(shape: FileShape, table: pa.Table, path: Path) -> None:
    codec = {"none": "uncompressed", "lz4": "lz4_raw"}.get(shape.codec, shape.codec)
    with duckdb.connect(config={"threads": 1}) as database:
        database.execute("set timezone = 'UTC'")
        database.register("t", table)
        version = "V2" if shape.pages_v2 else "V1"
        database.execute(
            f"copy t to '{path}' (format parquet, codec '{codec}', parquet_version {version},"
            f" row_group_size {shape.rows_per_group})"
        )


def _by_datafusion(shape: FileShape, table: pa.Table, path: Path) -> None:
    codec = {"none": "uncompressed", "lz4": "lz4_raw", "zstd": "zstd(1)", "gzip": "gzip(6)"}
    codec["brotli"] = "brotli(1)"
    context = SessionContext(SessionConfig().with_target_partitions(1))
    frame = context.create_dataframe([table.to_batches()])
    folder = path.with_suffix(".folder")
    frame.write_parquet_with_options(
        str(folder),
        ParquetWriterOptions(
            compression=codec.get(shape.codec, shape.codec),
            writer_version="2.0" if shape.pages_v2 else "1.0",
            max_row_group_size=shape.rows_per_group,
            data_page_row_count_limit=shape.rows_per_page,
            write_batch_size=min(shape.rows_per_page, 1024),
            dictionary_page_size_limit=shape.dictionary_bytes,
            bloom_filter_on_write=shape.bloom,
            statistics_enabled="page",
        ),
    )
    _only_file(folder, path)


def _by_spark(shape: FileShape, table: pa.Table, path: Path) -> None:
    codec = {"none": "uncompressed", "lz4": "lz4_raw", "brotli": "snappy"}.get(
        shape.codec, shape.codec
    )
    spark = spark_session()
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    folder = path.with_suffix(".folder")
    writer = spark.createDataFrame(table).coalesce(1).write
    options: Mapping[str, object] = {
        "compression": codec,
        "parquet.writer.version": "v2" if shape.pages_v2 else "v1",
        "parquet.page.row.count.limit": shape.rows_per_page,
        "parquet.block.row.count.limit": shape.rows_per_group,
        "parquet.page.write-checksum.enabled": str(shape.checksums).lower(),
        "parquet.bloom.filter.enabled": str(shape.bloom).lower(),
        "parquet.bloom.filter.expected.ndv": 2000,
        "parquet.dictionary.page.size": shape.dictionary_bytes,
    }
    for name, value in options.items():
        writer = writer.option(name, str(value))
    writer.parquet(str(folder))
    _only_file(folder, path)


def _only_file(folder: Path, path: Path) -> None:
    files = [folder] if folder.is_file() else sorted(folder.glob("*.parquet"))
    assert len(files) == 1, files
    files[0].rename(path)
    if folder.exists():
        shutil.rmtree(folder)


WRITE_BY_NAME: Mapping[str, Callable[[FileShape, pa.Table, Path], None]] = {
    "pyarrow": _by_pyarrow,
    "Polars": _by_polars,
    "DuckDB": _by_duckdb,
    "DataFusion": _by_datafusion,
    "Spark": _by_spark,
}
WRITERS = tuple(WRITE_BY_NAME)
