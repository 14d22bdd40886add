"""Other writers' Parquet files, unchanged: which of their columns need no rewriting.

A file of an adopted table is unchanged until it is spliced. It may lack system columns, have its
columns in another order, and columns outside the key that it lacks are null. What a missing system
column stands for is a constant (`SYSTEM_VALUES`), so readers of rows needn't know of it.

A column is taken as it stands if its physical and logical type are those by which every Delta
reader knows the column's type; INT96, as Spark writes times, is one of them. Source: the Delta
protocol, "Schema Serialization Format"; the Parquet format, "LogicalTypes".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakesplice.model.column_values import promoted
from lakesplice.model.names import IS_DELETED, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.schema import SYSTEM_TYPES, TableSchema
from lakesplice.model.types import ColumnType, Primitive

# A row that no change was applied to yet: as if the table had been created with it.
SYSTEM_VALUES: dict[str, pa.Scalar] = {
    POSITION_FILE: pa.scalar(0, pa.int64()),
    POSITION_OFFSET: pa.scalar(0, pa.int64()),
    IS_DELETED: pa.scalar(False),
}

_SIMPLE: dict[Primitive, tuple[str, ...]] = {
    Primitive.BOOLEAN: ("BOOLEAN",),
    Primitive.INTEGER: ("INT32", "INT32 INT 32"),
    Primitive.LONG: ("INT64", "INT64 INT 64"),
    Primitive.BYTE: ("INT32 INT 8",),
    Primitive.SHORT: ("INT32 INT 16",),
    Primitive.FLOAT: ("FLOAT",),
    Primitive.DOUBLE: ("DOUBLE",),
    Primitive.STRING: ("BYTE_ARRAY STRING",),
    Primitive.BINARY: ("BYTE_ARRAY",),
    Primitive.DATE: ("INT32 DATE",),
    Primitive.TIMESTAMP: ("INT96", "INT64 TIMESTAMP microseconds", "INT64 TIMESTAMP milliseconds"),
}
_OTHERS_DECIMALS = ("INT32", "INT64", "FIXED_LEN_BYTE_ARRAY")


def opened(source: pa.NativeFile) -> pq.ParquetFile:
    """Open a file with page checksums verified and INT96 read as microseconds."""
    return pq.ParquetFile(source, page_checksum_verification=True, coerce_int96_timestamp_unit="us")


def type_of(file: pq.ParquetFile, column: int) -> pa.DataType:
    """Return the Arrow type of a flat column; INT96 is a moment, as Spark means it."""
    if file.schema.column(column).physical_type == "INT96":
        return pa.timestamp("us", tz="UTC")
    return file.schema_arrow.field(column).type


def is_flat(file: pq.ParquetFile) -> bool:
    """Whether the file's columns are its leaves."""
    return len(file.schema) == len(file.schema_arrow) and all(
        file.schema.column(at).path == name for at, name in enumerate(file.schema_arrow.names)
    )


def unfit_columns(
    file: pq.ParquetFile, schema: TableSchema, elsewhere: Collection[str] = ()
) -> tuple[str, ...]:
    """Return what keeps a file from being read as one of the table's, a text per column.

    Empty if it may be kept: its columns are some of the table's, the whole key among them,
    each once and of its column's type as Delta readers know it. The values of columns that are
    `elsewhere` are known without the file.
    """
    if not is_flat(file):
        return ("it has nested columns",)
    types = SYSTEM_TYPES | {column.name: column.type for column in schema.columns}
    types |= {name: types[now] for name, now in schema.aliases.items()}
    names = file.schema_arrow.names
    found = [f"column {name!r} is not the table's" for name in names if name not in types]
    found += [
        f"column {name!r} is missing" for name in schema.key if name not in (*names, *elsewhere)
    ]
    found += [f"it has column {name!r} twice" for name in _repeated(names)]
    for at, name in enumerate(names):
        if name in types and not _is_as_known(file.schema.column(at), types[name]):
            found.append(f"column {name!r} is {described(file.schema.column(at))}")
    return tuple(found)


def described(column: pq.ColumnSchema) -> str:
    """Return a column's physical and logical type in a few words."""
    logical = json.loads(column.logical_type.to_json())
    kind = column.logical_type.type
    parts: list[Any] = [column.physical_type, *([] if kind == "NONE" else [kind])]
    if kind == "INT":
        parts.append(f"{logical['bitWidth']}" + ("" if logical["isSigned"] else " unsigned"))
    if kind == "TIMESTAMP":
        parts.append(logical["timeUnit"])
        parts += [] if logical["isAdjustedToUTC"] else ["without zone"]
    if kind == "DECIMAL":
        parts.append(f"({logical['precision']},{logical['scale']})")
    return " ".join(parts)


def in_layout(
    table: pa.Table, fields: Sequence[pa.Field], fills: Mapping[str, pa.Scalar]
) -> pa.Table:
    """Return a file's rows as `fields`; what the file lacks is its fill, a
    `SYSTEM_VALUES` or null.
    """
    there = frozenset(table.column_names)
    columns = [
        _cast(table.column(field.name), field.type)
        if field.name in there
        else missing(field, table.num_rows, fills)
        for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def missing(field: pa.Field, rows: int, fills: Mapping[str, pa.Scalar]) -> pa.Array:
    """Return the values of a column that a file lacks."""
    value = fills.get(field.name, SYSTEM_VALUES.get(field.name))
    return pa.nulls(rows, field.type) if value is None else pa.repeat(value, rows)


def _cast(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    return promoted(values, kind)


def _is_as_known(column: pq.ColumnSchema, kind: ColumnType) -> bool:
    if column.max_repetition_level:
        return False
    if kind.kind is Primitive.DECIMAL:
        same = (column.precision, column.scale) == (kind.precision, kind.scale)
        decimal = column.logical_type.type == "DECIMAL"
        return decimal and same and column.physical_type in _OTHERS_DECIMALS
    return described(column) in _SIMPLE[kind.kind]


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
