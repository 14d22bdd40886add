"""Schemas of mirrors in pyiceberg's form: fields, their ids, the name mapping, partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestamptzType,
)

from lakesplice.planning.mirroring.columns import MirrorSchema, SchemaChange

_TYPES: dict[str, PrimitiveType] = {
    str(kind): kind
    for kind in (
        BooleanType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        StringType(),
        BinaryType(),
        DateType(),
        TimestamptzType(),
    )
}
_FIRST_PARTITION_FIELD = 1000
# Ids of columns that files have and the schema doesn't; Iceberg counts its own from 1.
_FIRST_UNSHOWN = 1_000_000


def type_named(name: str) -> PrimitiveType:
    """Return the type of a name such as `long` or `decimal(12, 2)`."""
    if name in _TYPES:
        return _TYPES[name]
    precision, _, scale = name.removeprefix("decimal(").removesuffix(")").partition(", ")
    return DecimalType(int(precision), int(scale))


def first_schema(schema: MirrorSchema) -> Schema:
    """Return the schema of a new table. No field is required: adopted files may lack columns."""
    return Schema(
        *(
            NestedField(at, name, type_named(kind), required=False)
            for at, (name, kind) in enumerate(schema.columns.items(), 1)
        )
    )


def partition_spec(schema: MirrorSchema, fields: Schema) -> PartitionSpec:
    """Return the partitions of a new table, each by a column's own value."""
    return PartitionSpec(
        *(
            PartitionField(
                fields.find_field(name).field_id,
                _FIRST_PARTITION_FIELD + at,
                IdentityTransform(),
                name,
            )
            for at, name in enumerate(schema.partitioned_by)
        )
    )


def name_mapping(
    fields: Schema, before: Mapping[str, int], unshown: Iterable[str]
) -> dict[str, int]:
    """Return the field id of every name that a file may have: of the fields, of those that were in
    the mapping `before`, and of columns that aren't shown.
    """
    mapping = {**before, **{field.name: field.field_id for field in fields.fields}}
    following = max(_FIRST_UNSHOWN, *(at + 1 for at in mapping.values()))
    for at, name in enumerate(sorted(set(unshown) - mapping.keys())):
        mapping[name] = following + at
    return mapping


def mapping_text(mapping: Mapping[str, int]) -> str:
    """Return the JSON of a name mapping."""
    return json.dumps([{"field-id": at, "names": [name]} for name, at in mapping.items()])


def mapping_of(text: str) -> dict[str, int]:
    """Read back `mapping_text`."""
    return {name: field["field-id"] for field in json.loads(text) for name in field["names"]}


def columns_of(fields: Schema) -> dict[str, str]:
    """Return the types of a schema's fields by name."""
    return {field.name: str(field.field_type) for field in fields.fields}


def steps(change: SchemaChange) -> list[tuple[str, str, PrimitiveType | None]]:
    """Return a change as steps: what is done, to which column, and its type."""
    return [
        *(("add", name, type_named(kind)) for name, kind in change.added.items()),
        *(("widen", name, type_named(kind)) for name, kind in change.widened.items()),
        *(("remove", name, None) for name in change.removed),
    ]
