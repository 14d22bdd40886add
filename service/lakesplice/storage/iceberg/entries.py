"""Entries of a mirror's files as Iceberg's manifests have them."""

from __future__ import annotations

from collections.abc import Mapping

from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType

from lakesplice.planning.mirroring.files import MirrorFile, Value


def data_file(file: MirrorFile, location: str, fields: Schema, spec_id: int) -> DataFile:
    """Return the entry of a file of the table at `location`, with bounds by the fields' ids."""
    ids = {field.name: field.field_id for field in fields.fields}
    types = {field.name: field.field_type for field in fields.fields}
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{location}/{file.path}",
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition),
        record_count=file.rows,
        file_size_in_bytes=file.bytes,
        column_sizes={},
        value_counts={ids[name]: file.rows for name in file.nulls},
        null_value_counts={ids[name]: count for name, count in file.nulls.items()},
        nan_value_counts={},
        lower_bounds=_bounds(file.lower, ids, types),
        upper_bounds=_bounds(file.upper, ids, types),
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=spec_id,
    )


def _bounds(
    values: Mapping[str, Value], ids: Mapping[str, int], types: Mapping[str, object]
) -> dict[int, bytes]:
    found = {}
    for name, value in values.items():
        kind = types[name]
        assert isinstance(kind, PrimitiveType)
        found[ids[name]] = to_bytes(kind, value)
    return found
