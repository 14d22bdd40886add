"""Deltas of earlier versions: Avro object container files, read through Polars.

Each column is a union of null and its own Avro type:

    byte, short, integer   int                     date        int, logicalType date
    long                   long                    timestamp   long, logicalType timestamp-micros
    float, double          float, double           decimal     bytes, logicalType decimal,
                                                               all values of one width
    boolean                boolean                 string      string
    binary                 bytes

One file is one block without compression, and its head names the schema version. A table has such
deltas until they are compacted; kept versions have them for as long as they are kept.

Polars is imported when it is first used: few tables have such deltas.
"""

from __future__ import annotations

import io
import json

import pyarrow as pa

from lakesplice.errors import CorruptFileError
from lakesplice.formats.deltas.avro_container import MAGIC, read_head, write_head
from lakesplice.formats.deltas.avro_decimals import from_bytes, unname_decimals
from lakesplice.model.names import GROUP

__all__ = ["MAGIC", "SCHEMA", "SCHEMA_VERSION", "read_avro"]

SCHEMA_VERSION = "lakesplice.schema_version"
SCHEMA = "avro.schema"


def read_avro(data: bytes, wanted: pa.Schema, path: str) -> tuple[pa.Table, bytes | None]:
    """Return those of the wanted columns that the file has, and the schema version it names.

    Raises `CorruptFileError` for anything that is not such a file.
    """
    metadata, sync = read_head(data, path)
    held = _names(metadata, path)
    present = [field for field in wanted if field.name in held]
    if any(pa.types.is_decimal(field.type) for field in present):
        data = _with_plain_bytes(metadata, data[sync:], path)
    table = _read(data, [field.name for field in present] or [GROUP], path)
    version = metadata.get(SCHEMA_VERSION)
    if not present:
        return table, version
    columns = [_restored(table, field, path) for field in present]
    return pa.table(columns, schema=pa.schema(present)), version


def _names(metadata: dict[str, bytes], path: str) -> set[str]:
    try:
        return {field["name"] for field in json.loads(metadata[SCHEMA])["fields"]}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            "a delta's schema cannot be read; restore the file", path=path, cause=str(error)
        ) from error


def _with_plain_bytes(metadata: dict[str, bytes], blocks: bytes, path: str) -> bytes:
    """Return the file with decimals declared as bytes, so that Polars doesn't convert their
    values.
    """
    try:
        plain = unname_decimals(metadata[SCHEMA])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptFileError(
            "a delta's schema cannot be read; restore the file", path=path, cause=str(error)
        ) from error
    return write_head(metadata | {SCHEMA: plain}) + blocks


def _read(data: bytes, columns: list[str], path: str) -> pa.Table:
    import polars as pl  # see above

    try:
        return pl.read_avro(io.BytesIO(data), columns=columns).to_arrow(
            compat_level=pl.CompatLevel.oldest()
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, MemoryError) as error:
        raise CorruptFileError(
            "a delta cannot be decoded; restore the file", path=path, cause=str(error)
        ) from error


def _restored(table: pa.Table, field: pa.Field, path: str) -> pa.ChunkedArray:
    try:
        column = table.column(field.name)
        if column.null_count and not field.nullable:
            raise CorruptFileError(
                "a delta lacks a required value; restore the file", path=path, column=field.name
            )
        if pa.types.is_decimal(field.type):
            return pa.chunked_array([from_bytes(column, field.type)])
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, KeyError) as error:
        raise CorruptFileError(
            "a delta's column is not of its type; restore the file", path=path, column=field.name
        ) from error
