"""A table's schema in its manifest. Values of the ordinary case are left out.

Source: docs/format.md, "Manifest".
"""

from __future__ import annotations

from typing import Any

from lakesplice.formats.manifests.partition import position_in
from lakesplice.model.schema import Column, FormerColumn, TableSchema
from lakesplice.model.types import ColumnType


def schema_out(schema: TableSchema) -> dict[str, Any]:
    """Return a schema in the form of a manifest."""
    former = [{"version": before.version, **_column_out(before.column)} for before in schema.former]
    return {
        "columns": [_column_out(column) for column in schema.columns],
        "key": list(schema.key),
        "versions": list(schema.versions),
        "since": [[position.file, position.offset] for position in schema.since],
        **({"adopted": True} if schema.adopted else {}),
        **({"former": former} if former else {}),
        **({"left_out": sorted(schema.left_out)} if schema.left_out else {}),
        **({"partitioned_by": list(schema.partitioned_by)} if schema.partitioned_by else {}),
        **({"bounded": sorted(schema.bounded)} if schema.bounded else {}),
        **({"bloom_filters": True} if schema.bloom_filters else {}),
    }


def _column_out(column: Column) -> dict[str, Any]:
    fill = {} if column.fill is None else {"fill": column.fill}
    hidden = {"hidden": True} if column.hidden else {}
    copy = {} if column.copy_of is None else {"copy_of": column.copy_of}
    own = {"id": column.id, "name": column.name, "source_name": column.source_name}
    type_ = {"type": column.type.name, "source_type": column.source_type}
    return {**fill, **hidden, **copy, **own, **type_}


def schema_in(value: Any) -> TableSchema:
    """Read back `schema_out`."""
    columns = tuple(_column_in(column) for column in value["columns"])
    versions = tuple(int(count) for count in value["versions"])
    since = tuple(position_in(position) for position in value["since"])
    former = tuple(
        FormerColumn(int(before["version"]), _column_in(before))
        for before in value.get("former", ())
    )
    return TableSchema(
        columns,
        key=tuple(str(name) for name in value["key"]),
        versions=versions,
        since=since,
        adopted=bool(value.get("adopted", False)),
        former=former,
        left_out=frozenset(str(name) for name in value.get("left_out", ())),
        partitioned_by=tuple(str(name) for name in value.get("partitioned_by", ())),
        bounded=frozenset(int(id_) for id_ in value.get("bounded", ())),
        bloom_filters=bool(value.get("bloom_filters", False)),
    )


def _column_in(column: Any) -> Column:
    return Column(
        id=int(column["id"]),
        name=str(column["name"]),
        source_name=str(column["source_name"]),
        type=ColumnType.parse(column["type"]),
        source_type=str(column["source_type"]),
        fill=None if column.get("fill") is None else str(column["fill"]),
        hidden=bool(column.get("hidden", False)),
        copy_of=None if column.get("copy_of") is None else int(column["copy_of"]),
    )
