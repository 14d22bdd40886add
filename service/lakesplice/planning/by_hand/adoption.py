"""Adoption: whether a Delta table, or a folder of Parquet files, can become a table of ours in its
place.

All obstacles are reported at once, each with a remedy. Something that writers must maintain and
that we don't know (constraints, generated columns, change data) is an obstacle only if it is used:
a protocol that merely allows it is replaced by ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.formats.log.actions import DOMAIN, OUR_PROTOCOL, TableMetadata, TableProtocol
from lakesplice.formats.log.state import LogState
from lakesplice.model.names import column_name
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive
from lakesplice.planning.by_hand.hand_fed_schema import column_type

# Features that require nothing of writers unless a property, column or domain uses them.
_UNUSED_HARMLESS = frozenset(
    (
        *OUR_PROTOCOL.writer_features,
        "appendOnly",
        "checkConstraints",
        "changeDataFeed",
        "generatedColumns",
        "identityColumns",
        "allowColumnDefaults",
        "clustering",
        "rowTracking",
        "vacuumProtocolCheck",
    )
)
_ON = "true"
_PROPERTIES: Mapping[str, str] = {
    "delta.appendOnly": "it allows no updates: unset the property",
    "delta.enableChangeDataFeed": "unset the property, and switch the change feed on after the"
    " adoption, with Table.set_change_feed",
    "delta.enableRowTracking": "Lakesplice keeps no row ids: unset the property",
    "delta.enableDeletionVectors": "Lakesplice can't read them: unset the property",
    "delta.enableIcebergCompatV1": "unset the property",
    "delta.enableIcebergCompatV2": "unset the property",
    "delta.enableTypeWidening": "unset the property",
}
_OF_COLUMNS = {
    "delta.invariants": "an invariant, which Lakesplice doesn't check; drop it",
    "delta.generationExpression": "a generation expression; make it a plain column",
    "delta.identity.start": "identity values; make it a plain column",
    "CURRENT_DEFAULT": "a default, which Lakesplice doesn't fill in; drop it",
}
_CONSTRAINT = "delta.constraints."
# Properties of the former protocol, or without use under ours.
_DROPPED = re.compile(r"delta\.(feature\..*|minReaderVersion|minWriterVersion)")
_FOREIGN_PATH = re.compile(r"/|[a-zA-Z][a-zA-Z0-9+.-]*:")


def delta_columns(log: LogState) -> pa.Schema:
    """Return the columns of a Delta table that may be adopted.

    `UsageError` if it is ours already; `UnsupportedError` that names all obstacles.
    """
    if DOMAIN in log.domains:
        raise UsageError("the table is already one of Lakesplice's; open it", version=log.version)
    fields = _fields(log.metadata)
    refuse(
        [
            *_of_protocol(log.protocol),
            *_of_properties(log.metadata),
            *_of_domains(log),
            *_of_paths(log),
            *(text for field in fields for text in _of_column(field)),
        ]
    )
    return pa.schema(
        [pa.field(field["name"], ColumnType.parse(field["type"]).arrow) for field in fields]
    )


def refuse(obstacles: Sequence[str]) -> None:
    """Raise `UnsupportedError` if there are obstacles to an adoption."""
    if obstacles:
        shown = "; ".join(dict.fromkeys(obstacles))
        raise UnsupportedError(f"it can't be adopted as it is: {shown}")


def kept_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the properties that the table keeps."""
    return {
        name: value for name, value in metadata.properties.items() if not _DROPPED.fullmatch(name)
    }


def common_columns(files: Sequence[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the columns of all Parquet files of a folder, in the order of their first occurrence.

    `files` are paths with their columns as Arrow types. Whole numbers of several widths become the
    widest, and so do floating-point numbers. `UnsupportedError` if files differ in another way, and
    for types that no table can hold.
    """
    met: dict[str, tuple[str, pa.DataType]] = {}
    obstacles = []
    for path, schema in files:
        for field in schema:
            first, known = met.setdefault(field.name, (path, field.type))
            common = _common(known, field.type)
            if common is None:
                obstacles.append(
                    f"column {field.name!r} is {known} in {first} and {field.type} in {path};"
                    " rewrite one of them"
                )
            else:
                met[field.name] = (first, common)
    for name, (path, kind) in met.items():
        if column_type(kind) is None:
            obstacles.append(
                f"column {name!r} has a type without an exact counterpart, {kind} in {path}:"
                " leave it out, or cast it, for example to a string"
            )
        obstacles += _of_name(name)
    refuse(obstacles)
    return pa.schema([pa.field(name, kind) for name, (_, kind) in met.items()])


_WIDTHS: Sequence[Sequence[Primitive]] = (
    WHOLE_NUMBERS,
    (Primitive.FLOAT, Primitive.DOUBLE),
)


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    first, second = column_type(one), column_type(other)
    if one == other or first is None or second is None:
        return one if one == other else None
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return one if (one.tz is None) == (other.tz is None) else None
    if first == second:
        return one
    for widths in _WIDTHS:
        if first.kind in widths and second.kind in widths:
            return max((first, second), key=lambda found: widths.index(found.kind)).arrow
    return None


def _fields(metadata: TableMetadata) -> list[dict[str, Any]]:
    try:
        fields = json.loads(metadata.schema_json)["fields"]
        return [{**field, "metadata": field.get("metadata") or {}} for field in fields]
    except (ValueError, TypeError, KeyError) as error:
        raise UnsupportedError("the table's schema can't be read", cause=repr(error)) from error


def _of_protocol(protocol: TableProtocol) -> list[str]:
    unknown = sorted(set(protocol.writer_features) - _UNUSED_HARMLESS)
    found = [
        f"writers must know the feature {name}, which Lakesplice doesn't know: ALTER TABLE … DROP"
        f" FEATURE {name}"
        for name in unknown
    ]
    if protocol.reader_version > 1:
        features = ", ".join(protocol.reader_features) or "column mapping"
        found.append(
            f"readers must know {features}: apply it (REORG TABLE … APPLY (PURGE) for deletion"
            " vectors) and drop the feature, until minReaderVersion is 1, or copy the rows into a"
            " new table"
        )
    return found


def _of_properties(metadata: TableMetadata) -> list[str]:
    properties = metadata.properties
    found = [
        f"{name} is set, and {advice}"
        for name, advice in _PROPERTIES.items()
        if properties.get(name, "").lower() == _ON
    ]
    found += [
        f"{name} is a constraint, which Lakesplice doesn't check: ALTER TABLE … DROP CONSTRAINT"
        f" {name.removeprefix(_CONSTRAINT)}"
        for name in sorted(properties)
        if name.startswith(_CONSTRAINT)
    ]
    if properties.get("delta.columnMapping.mode", "none") != "none":
        found.append("its columns are mapped to other names: rewrite it without column mapping")
    return found


def _of_domains(log: LogState) -> list[str]:
    return [
        f"it has metadata of the domain {name}: drop the feature to which it belongs"
        for name in sorted(log.domains)
    ]


def _of_paths(log: LogState) -> list[str]:
    outside = [path for path in log.adds if _FOREIGN_PATH.match(path)]
    stay = () if log.metadata.partition_columns else log.adds.values()
    strange = [add.path for add in stay if add.path not in outside and add.log_spelling]
    found = []
    if outside:
        found.append(
            f"some of its files are outside of its folder, such as {outside[0]}: make a"
            " deep clone first"
        )
    if strange:
        found.append(
            f"its log has names of files in unusual escapes, such as that of {strange[0]}:"
            " rewrite them"
        )
    return found


def _of_column(field: Mapping[str, Any]) -> list[str]:
    name, kind = field["name"], field["type"]
    found = [
        f"column {name!r} has {what}"
        for key, what in _OF_COLUMNS.items()
        if key in field["metadata"]
    ]
    try:
        ColumnType.parse(kind if isinstance(kind, str) else kind["type"])
    except UnsupportedError:
        shown = kind if isinstance(kind, str) else kind["type"]
        found.append(f"column {name!r} is of the type {shown}, which tables here don't have")
    return found + _of_name(name)


def _of_name(name: str) -> list[str]:
    if column_name(name) == name:
        return []
    return [f"column {name!r} has a name that files here can't have: rename it"]
