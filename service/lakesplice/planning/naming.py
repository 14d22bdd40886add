"""Names: a column's at the source by other names of it, and stored names that are free."""

from __future__ import annotations

from collections.abc import Iterable

from lakesplice.model.names import column_name
from lakesplice.model.position import AFTER_ALL, BEFORE_ALL
from lakesplice.model.schema import Column, SourceField, TableSchema

# What says of no version where it begins.
SINCE_UNKNOWN = (BEFORE_ALL, AFTER_ALL)


def holds(schema: TableSchema, column: Column, field: SourceField) -> bool:
    """Whether a column of the schema is the field's, going by the name that the source has for it
    there: another column may have had that name before, or got it since. Where nothing tells since
    when the table's column has it, names count (`unplaced` finds out).
    """
    own = [tenure for tenure in field.tenures or () if tenure.name == column.source_name]
    since = schema.named_since(column) if own else BEFORE_ALL
    return since in SINCE_UNKNOWN or any(tenure.has(since) for tenure in own)


def column_of(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's, by its own name or one that it got later."""
    return _first_held(schema, field, (field.name, *field.later))


def formerly(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's by a name that it had before."""
    return _first_held(schema, field, field.formerly)


def own_column(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's by its own name."""
    return _first_held(schema, field, (field.name,))


def known_as(field: SourceField, *schemas: TableSchema) -> str:
    """Return the name that the field's column has in the first of some schemas that has it; its own
    if none has.
    """
    for name in (field.name, *field.later):
        for schema in schemas:
            column = schema.by_source.get(name)
            if column is not None and holds(schema, column, field):
                return name
    return field.name


def unplaced(schema: TableSchema, fields: Iterable[SourceField]) -> str | None:
    """Return the name of a field that may be one or another column's, if there is such a field.

    So it is where the change's place isn't comparable with that at which the name went over, where
    nobody asked the source (letters taken again without the driver), or where it isn't known since
    when the table's column has the name.
    """
    for field in fields:
        names = {tenure.name for tenure in field.tenures or ()}
        # Without tenures nothing was told of the field at all.
        if field.tenures is None or (not names and field.name in schema.handed_on):
            return field.name
        known = (schema.by_source.get(name) for name in names)
        if any(c is not None and schema.named_since(c) in SINCE_UNKNOWN for c in known):
            return field.name
    return None


def _first_held(schema: TableSchema, field: SourceField, names: Iterable[str]) -> Column | None:
    for name in names:
        column = schema.by_source.get(name)
        if column is not None and holds(schema, column, field):
            return column
    return None


def names_ever(schema: TableSchema) -> set[str]:
    """Stored names that any column has or had: a file under one must not show another's values."""
    return {name.lower() for name in schema.aliases}


def free_name(names: set[str], source_name: str) -> str:
    """Return the stored name for a new column, which joins `names`: its own, or with a number if an
    older one has it.
    """
    name, number = column_name(source_name), 1
    while name.lower() in names:
        number += 1
        name = f"{column_name(source_name)}_{number}"
    names.add(name.lower())
    return name
