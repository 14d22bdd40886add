"""Table schemas as the log states them for other engines.

The manifest is the truth about the schema: the log's JSON holds no history of versions. What only
we need travels in the fields' metadata. Source: the Delta protocol, "Schema Serialization Format".
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from lakesplice.model.schema import SYSTEM_FIELDS, SYSTEM_TYPES, Column, TableSchema
from lakesplice.model.types import ColumnType

ID = "lakesplice.id"
SOURCE_NAME = "lakesplice.source_name"
SOURCE_TYPE = "lakesplice.source_type"
KEY_ORDINAL = "lakesplice.key_ordinal"


def encode_schema(schema: TableSchema, required: Collection[str] = ()) -> str:
    """Return `schemaString`: user columns in their order, then system columns. Key columns, and
    those that are `required`, hold no null.
    """
    needed = frozenset((*schema.key, *required))
    fields = [
        _user_field(schema, column, nullable=column.name not in needed)
        for column in schema.columns
        if not column.hidden
    ]
    system = [
        _system_field(field.with_nullable(True) if schema.adopted else field)
        for field in SYSTEM_FIELDS
    ]
    return json.dumps({"type": "struct", "fields": fields + system})


def _user_field(schema: TableSchema, column: Column, *, nullable: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        ID: column.id,
        SOURCE_NAME: column.source_name,
        SOURCE_TYPE: column.source_type,
    }
    if column.name in schema.key:
        metadata[KEY_ORDINAL] = schema.key.index(column.name)
    return _field(column.name, column.type, nullable=nullable, metadata=metadata)


def _system_field(field: pa.Field) -> dict[str, Any]:
    return _field(field.name, SYSTEM_TYPES[field.name], nullable=field.nullable, metadata={})


def _field(
    name: str, column_type: ColumnType, *, nullable: bool, metadata: dict[str, Any]
) -> dict[str, Any]:
    return {"name": name, "type": column_type.name, "nullable": nullable, "metadata": metadata}
