"""Parquet files of any shape by any writer, and edits of them: drawn by hypothesis, all from one
seed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from datafusion import ParquetWriterOptions, SessionConfig, SessionContext
from hypothesis import strategies as st

from lakesplice.planning.rows.edits import ColumnEdit, Edits
from tests.support.parquet_conditions import Condition
from tests.support.parquet_readers import spark_session
from tests.support.parquet_values import COMMON, RARE, values_of, with_nulls

ROW_NUMBER = "k"
_DELTA = {
    pa.int32(): ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    pa.int64(): ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    pa.float64(): ("BYTE_STREAM_SPLIT",),
    pa.string(): ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"),
    pa.binary(): ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"),
}


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


@dataclass(frozen=True)
class EditShape:
    """Edits of a column: at which rows, and with what."""

    column: int
    pattern: str
    share: float
    values: str


def _column_shapes(kinds: Sequence[str]) -> st.SearchStrategy[ColumnShape]:
    def encoded(kind: str) -> st.SearchStrategy[ColumnShape]:
        others = _DELTA.get({**COMMON, **RARE}[kind], ())
        return st.builds(
            ColumnShape,
            kind=st.just(kind),
            distinct=st.sampled_from([1, 5, 300, 10**6]),
            null_share=st.sampled_from([0.0, 0.0, 0.02, 0.5, 1.0]),
            encoding=st.sampled_from(["dictionary", "dictionary", "PLAIN", *others]),
            required=st.booleans(),
        )

    return st.sampled_from(list(kinds)).flatmap(encoded)


def file_shapes(
    writers: Sequence[str] = ("pyarrow",), kinds: Sequence[str] = tuple(COMMON)
) -> st.SearchStrategy[FileShape]:
    """Files of the writers, with columns of the kinds."""
    return st.builds(
        FileShape,
        seed=st.integers(0, 2**31),
        writer=st.sampled_from(list(writers)),
        rows=st.sampled_from([1, 40, 1000, 4096, 5000, 9000, 9000]),
        rows_per_page=st.sampled_from([50, 50, 333, 333, 1000, 4096]),
        rows_per_group=st.sampled_from([777, 2500, 10**6, 10**6]),
        codec=st.sampled_from(["zstd", "snappy", "none", "gzip", "lz4", "brotli"]),
        pages_v2=st.booleans(),
        checksums=st.booleans(),
        page_index=st.sampled_from([True, True, True, True, True, False]),
        bloom=st.booleans(),
        dictionary_bytes=st.sampled_from([2**20, 2**20, 2000]),
        decimals_as_integers=st.booleans(),
        version=st.sampled_from(["1.0", "2.6", "2.6"]),
        columns=st.lists(_column_shapes(kinds), min_size=1, max_size=5).map(tuple),
    )


# Most leave pages as they were: a chunk of which nearly all are touched is encoded whole.
_PATTERNS = ("one", "uniform", "newest", "run", "here and there", "here and there", "all", "edges")


_VALUES = ("known", "new", "null", "new and null", "few")
# Values that a row has already, all of them or some.
PRESENT = ("present", "present and new", "new here, present there")


def edit_shapes(
    columns: int, values: Sequence[str] = _VALUES
) -> st.SearchStrategy[list[EditShape]]:
    """Edits of some of a file's columns."""
    return st.lists(
        st.builds(
            EditShape,
            column=st.integers(0, columns - 1),
            pattern=st.sampled_from(_PATTERNS),
            share=st.sampled_from([0.001, 0.01, 0.1, 0.5]),
            values=st.sampled_from(values),
        ),
        min_size=1,
        max_size=columns,
        unique_by=lambda shape: shape.column,
    )


def name_of(column: int, shape: ColumnShape) -> str:
    """The name of a file's column."""
    return f"c{column}_{''.join(char if char.isalnum() else '_' for char in shape.kind)}"


def drawn_table(shape: FileShape) -> pa.Table:
    """The rows of a file, with a column that numbers them."""
    random = np.random.default_rng(shape.seed)
    fields = [pa.field(ROW_NUMBER, pa.int64(), nullable=False)]
    columns: list[pa.Array] = [pa.array(np.arange(shape.rows))]
    for at, column in enumerate(shape.columns):
        values = values_of(column.type, random, shape.rows, column.distinct)
        required = column.required and column.null_share < 1 and column.kind != "null"
        if not required:
            values = with_nulls(values, random.random(shape.rows) < column.null_share)
        fields.append(pa.field(name_of(at, column), column.type, nullable=not required))
        columns.append(values)
    return pa.table(columns, schema=pa.schema(fields))


def write(shape: FileShape, path: Path) -> None:
    """Write the file."""
    _WRITERS[shape.writer](shape, drawn_table(shape), path)


def drawn_edits(shapes: Sequence[EditShape], table: pa.Table, seed: int) -> Edits:
    """The edits of `table`, which is the file as pyarrow reads it; its row number is left alone."""
    random = np.random.default_rng(seed)
    columns: dict[str, ColumnEdit] = {}
    for shape in shapes:
        field = table.schema.field(shape.column + 1)
        rows = _rows(shape, table.num_rows, random)
        if not len(rows):
            continue
        values = _new_values(shape, table.column(field.name), field, rows, random)
        columns[field.name] = ColumnEdit(rows, values)
    every = [edit.rows for edit in columns.values()]
    return Edits(np.unique(np.concatenate(every)) if every else np.empty(0, np.int64), columns)


def conditions(table: pa.Table, edits: Edits, seed: int, most: int = 4) -> list[Condition]:
    """Conditions on values that were there, came in or are nowhere; on types that all compare."""
    random = np.random.default_rng(seed)
    found: list[Condition] = []
    names = [name for name in table.column_names if _comparable(table.schema.field(name).type)]
    for name in random.permutation(names):
        edit = edits.columns.get(name)
        new = [] if edit is None else _examples(edit.values, random)
        old = _examples(table.column(name), random)
        found += [Condition(str(name), "=", (value,)) for value in (*new[:2], *old[:1])]
        if len(old) > 1:
            found.append(Condition(str(name), "in", tuple([*old, *new][:4])))
            found.append(Condition(str(name), ">=", (old[0],)))
        if new:
            found.append(Condition(str(name), "<", (new[0],)))
    # ClickHouse knows no list or struct that is null.
    flat = [field for field in table.schema if not pa.types.is_nested(field.type)]
    found += [Condition(field.name, "is null") for field in flat if field.nullable][:1]
    picked = random.permutation(len(found))[:most]
    return [found[at] for at in picked]


def _comparable(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    return bool(
        kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(5))
        or kind in (pa.bool_(), pa.float32(), pa.float64(), pa.date32())
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
    )


def _examples(values: Any, random: np.random.Generator) -> list[Any]:
    # Of times few are near enough to be said.
    wanted = 120 if pa.types.is_temporal(values.type) else 12
    at = random.integers(0, len(values), wanted).tolist() if len(values) else []
    examples = [values[one].as_py() for one in at]
    if pa.types.is_floating(values.type) and random.random() < 0.5:
        examples.insert(0, -0.0 if random.random() < 0.5 else 0.0)
    return list(dict.fromkeys(value for value in examples if _sayable(value)))


def _sayable(value: Any) -> bool:
    """Whether every reader's SQL can say it, and all mean the same by it."""
    if isinstance(value, int):
        return abs(value) < 2**62
    if isinstance(value, float):
        return value == value
    if hasattr(value, "year"):
        return bool(1900 <= value.year <= 2200)
    return value is not None


def _rows(shape: EditShape, rows: int, random: np.random.Generator) -> Any:
    match shape.pattern:
        case "one":
            return random.integers(0, rows, 1)
        case "newest":
            return np.arange(int(rows * (1 - shape.share)), rows)
        case "run":
            start = int(random.integers(0, rows))
            return np.arange(start, min(rows, start + 1 + int(rows * shape.share)))
        case "here and there":
            tenth = np.arange(rows) * 10 // rows
            return np.flatnonzero((random.random(10) < 0.3)[tenth] & (random.random(rows) < 0.2))
        case "all":
            return np.arange(rows)
        case "edges":
            return np.unique([0, rows // 2, rows - 1])
    return np.flatnonzero(random.random(rows) < shape.share)


def _new_values(
    shape: EditShape, column: pa.ChunkedArray, field: pa.Field, rows: Any, random: Any
) -> pa.Array:
    size = len(rows)
    if shape.values in PRESENT:
        held = _in_one(column.take(pa.array(rows)))
        if shape.values == "present":
            return held
        part = random.random(size) < 0.02
        if shape.values == "new here, present there":
            part = rows < np.quantile(rows, random.random())
        taken = np.where(part, random.integers(0, size, size), np.arange(size))
        return held.take(pa.array(taken))
    values = values_of(field.type, random, size, 5 if shape.values == "few" else size)
    if shape.values == "known":
        return _in_one(column.take(pa.array(random.integers(0, len(column), size))))
    if not field.nullable or shape.values in ("new", "few"):
        return values
    return with_nulls(values, np.ones(size, bool) if shape.values == "null" else _half(size))


def _in_one(values: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(values.unify_dictionaries().chunks)


def _half(size: int) -> Any:
    return np.arange(size) % 2 == 0


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


_WRITERS: Mapping[str, Callable[[FileShape, pa.Table, Path], None]] = {
    "pyarrow": _by_pyarrow,
    "Polars": _by_polars,
    "DuckDB": _by_duckdb,
    "DataFusion": _by_datafusion,
    "Spark": _by_spark,
}
WRITERS = tuple(_WRITERS)
