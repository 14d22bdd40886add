"""Columns of an Iceberg mirror, and how they follow the table's schema.

Base files have no field ids, so Iceberg's readers find columns by their names in the files, through
a name mapping. A name may therefore mean one field only, for as long as the Iceberg table lives:

    a column is new, and no file had its name        it is added
    a type gets wider in a way that Iceberg knows    it is changed
    a column is no longer shown                      it is removed; the mapping keeps its name
    anything else                                    a new Iceberg table begins

pyiceberg fails on a file with a column that the mapping lacks. So the mapping has the names of
hidden columns and of all system columns, too, although only `_is_deleted` is in the schema.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakesplice.model.names import COLUMN_POSITIONS, IS_DELETED, SYSTEM_COLUMNS
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import ColumnType, Primitive

_NAMES = {
    Primitive.BOOLEAN: "boolean",
    Primitive.BYTE: "int",
    Primitive.SHORT: "int",
    Primitive.INTEGER: "int",
    Primitive.LONG: "long",
    Primitive.FLOAT: "float",
    Primitive.DOUBLE: "double",
    Primitive.STRING: "string",
    Primitive.BINARY: "binary",
    Primitive.DATE: "date",
    Primitive.TIMESTAMP: "timestamptz",
}
_WIDER = frozenset((("int", "long"), ("float", "double")))
_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")


@dataclass(frozen=True, slots=True)
class MirrorSchema:
    """The columns of a mirror: `columns` maps names to Iceberg's names of their types, `unshown`
    are further columns that files may have, `partitioned_by` some of `columns`.
    """

    columns: Mapping[str, str]
    unshown: frozenset[str]
    partitioned_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """The steps from one version of a mirror's columns to the next, by name."""

    added: Mapping[str, str]
    widened: Mapping[str, str]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        """Whether anything changes."""
        return bool(self.added or self.widened or self.removed)


def mirror_schema(schema: TableSchema) -> MirrorSchema:
    """Return the columns that a mirror of a table has: those that readers see, then
    `_is_deleted`.
    """
    columns = {c.name: iceberg_type(c.type) for c in schema.columns if not c.hidden}
    columns[IS_DELETED] = _NAMES[Primitive.BOOLEAN]
    had = {*schema.aliases, *SYSTEM_COLUMNS, COLUMN_POSITIONS}
    return MirrorSchema(columns, frozenset(had - columns.keys()), schema.partitioned_by)


def iceberg_type(column: ColumnType) -> str:
    """Return Iceberg's name of a column's type, such as `decimal(12, 2)`."""
    if column.kind is Primitive.DECIMAL:
        return f"decimal({column.precision}, {column.scale})"
    return _NAMES[column.kind]


def schema_change(
    present: Mapping[str, str], mapped: Collection[str], wanted: Mapping[str, str]
) -> SchemaChange | None:
    """Return how a mirror's present columns become the wanted ones; None if only a new Iceberg
    table can have them. `mapped` are all names in the present name mapping.
    """
    added = {name: kind for name, kind in wanted.items() if name not in present}
    retyped = {name: kind for name, kind in wanted.items() if present.get(name, kind) != kind}
    if any(name in mapped for name in added):
        return None
    if not all(_is_wider(present[name], kind) for name, kind in retyped.items()):
        return None
    removed = tuple(name for name in present if name not in wanted)
    return SchemaChange(added, retyped, removed)


def _is_wider(before: str, after: str) -> bool:
    if (before, after) in _WIDER:
        return True
    was, is_ = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if was is None or is_ is None:
        return False
    return was[2] == is_[2] and int(was[1]) < int(is_[1])
