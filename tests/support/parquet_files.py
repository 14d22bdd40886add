"""Parquet files of any shape by any writer, and conditions on them: drawn from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lakesplice.planning.rows.edits import Edits
from tests.support.parquet_conditions import Condition
from tests.support.parquet_values import COMMON, RARE, values_of, with_nulls
from tests.support.parquet_writers import WRITE_BY_NAME, ColumnShape, FileShape, name_of

ROW_NUMBER = "k"
_DELTA = {
    pa.int32(): ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    pa.int64(): ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"),
    pa.float64(): ("BYTE_STREAM_SPLIT",),
    pa.string(): ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"),
    pa.binary(): ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"),
}


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
    WRITE_BY_NAME[shape.writer](shape, drawn_table(shape), path)


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
