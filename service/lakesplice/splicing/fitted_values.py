"""Casts the caller's values to the types of a file's columns, or refuses them and names the
column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UnsupportedError, UsageError

# Spark marks files whose times before these follow the calendar of Julius Caesar.
_LEGACY_DATES = b"org.apache.spark.legacyDateTime"
_LEGACY_INT96 = b"org.apache.spark.legacyINT96"
_GREGORIAN = dt.date(1582, 10, 15)
_EVEN_ZONES = dt.datetime(1900, 1, 1)  # noqa: DTZ001 - an instant in UTC, compared as such


def fitted(values: Any, field: pa.Field) -> Any:
    """Return an array or chunked array in `field`'s type; a dictionary may become its plain values.

    Raises `UsageError`, which names the column, if a value doesn't fit the type or a null isn't
    allowed.
    """
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if values.null_count and not field.nullable:
        raise UsageError("null for a column that can't be null", column=field.name)
    if values.type.equals(kind):
        return values
    facts = {"column": field.name, "given": str(values.type), "wanted": str(kind)}
    if _zoned(values.type) != _zoned(kind) and not pa.types.is_null(values.type):
        raise UsageError(
            "a time with a zone doesn't fit a column without one; cast the changes", **facts
        )
    try:
        return _cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, NotImplementedError) as error:
        raise UsageError(
            "the changes don't fit a column's type; cast them", **facts, cause=str(error)
        ) from None


def as_key(values: Any, column: str) -> pl.Series:
    """Return values for a join; raises `UsageError` for types whose values can't be looked up."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        values = values.cast(kind.storage_type)
    elif pa.types.is_dictionary(kind):
        values = values.cast(kind.value_type)
    elif pa.types.is_float16(kind):
        values = values.cast(pa.float32())
    if pa.types.is_nested(values.type) or pa.types.is_decimal256(values.type):
        raise UsageError("a column of this type can't be a key", column=column, type=str(kind))
    return pl.Series(column, values)


def refuse_rebased(
    values: pa.Array, metadata: Mapping[bytes, bytes], column: str, name: str
) -> None:
    """Refuse early times if the file's metadata makes readers convert them to another calendar."""
    if pa.types.is_date(values.type):
        marked, limit = _LEGACY_DATES in metadata, pa.scalar(_GREGORIAN)
    elif pa.types.is_timestamp(values.type):
        marked = _LEGACY_DATES in metadata or _LEGACY_INT96 in metadata
        limit = pa.scalar(_EVEN_ZONES)
        values = values.cast(pa.timestamp(values.type.unit)) if marked else values
    else:
        return
    if marked and pc.any(pc.less(values, limit)).as_py():
        raise UnsupportedError(
            "Spark wrote this file for its old calendar, in which such an early time would be"
            " another; rewrite the file with spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED",
            path=name,
            column=column,
            before=str(limit),
        )


def _cast(values: Any, kind: pa.DataType) -> Any:
    if not isinstance(kind, pa.BaseExtensionType):
        return values.cast(kind)
    stored = values.cast(kind.storage_type)
    if isinstance(stored, pa.ChunkedArray):
        chunks = [pa.ExtensionArray.from_storage(kind, chunk) for chunk in stored.chunks]
        return pa.chunked_array(chunks, type=kind)
    return pa.ExtensionArray.from_storage(kind, stored)


def _zoned(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.tz is not None)
