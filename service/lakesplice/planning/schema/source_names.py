"""Finds a table's column by the names that it has or had at the source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lakesplice.model.position import AFTER_ALL, BEFORE_ALL
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import NamePeriod, SourceField, SourceSchema

# A schema in which no version has a known beginning.
SINCE_UNKNOWN = (BEFORE_ALL, AFTER_ALL)


def column_of(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's, by its present name or a later one."""
    found = own_column(schema, field)
    return found or _first_held(schema, field, field.later, _before_and_after(field)[1])


def formerly(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's by a name that it had before."""
    return _first_held(schema, field, field.formerly, _before_and_after(field)[0])


def own_column(schema: TableSchema, field: SourceField) -> Column | None:
    """Return the schema's column that is the field's by its present name."""
    return _first_held(schema, field, (field.name,), field.tenures or ())


def known_as(field: SourceField, *schemas: TableSchema) -> str:
    """Return the name that the field's column has in the first of some schemas that has it; its own
    if none does.
    """
    later = _before_and_after(field)[1]
    named = [(field.name, field.tenures or ()), *((name, later) for name in field.later)]
    for name, tenures in named:
        if any(_first_held(schema, field, (name,), tenures) for schema in schemas):
            return name
    return field.name


def in_any_order(image: SourceSchema) -> SourceSchema:
    """Return the image without what shows when its columns had names that no other column had: each
    of a column's names then finds it in a table, whether or not the table has followed that far.
    """
    fields, omitted = (
        tuple(
            replace(field, tenures=tuple(tenure for tenure in field.tenures if not tenure.alone))
            if field.tenures
            else field
            for field in part
        )
        for part in (image.fields, image.omitted)
    )
    return replace(image, fields=fields, omitted=omitted)


def columns_at(schema: TableSchema, names: Iterable[str], *, shard: bool) -> dict[str, Column]:
    """Return the column of each of a source's names that the schema has. A shard may still have a
    column under a former name, if only other shards have renamed it yet.
    """
    names = set(names)
    found = {name: column for name, column in schema.by_source.items() if name in names}
    if shard:
        for before in reversed(schema.former):
            name, column = before.column.source_name, schema.by_id[before.column.id]
            if name in names - found.keys() and column.source_name not in names:
                found[name] = column
    return found


def unplaced(schema: TableSchema, fields: Iterable[SourceField]) -> str | None:
    """Return the name of a field that may belong to one or another column, if there is such a
    field.

    That is the case if one of these holds:

    - the change's position can't be compared with the one at which the name changed its column;
    - the source's DDL wasn't read, as for dead letters that are replayed without the driver;
    - it isn't known since when the table's column has the name.
    """
    for field in fields:
        names = {tenure.name for tenure in field.tenures or () if not tenure.alone}
        # Without tenures, no DDL of the field was read.
        if field.tenures is None or (not names and field.name in schema.handed_on):
            return field.name
        known = (schema.by_source.get(name) for name in names)
        if any(c is not None and schema.named_since(c) in SINCE_UNKNOWN for c in known):
            return field.name
    return None


def _first_held(
    schema: TableSchema, field: SourceField, names: Iterable[str], tenures: Sequence[NamePeriod]
) -> Column | None:
    """Return the first column of the schema that is the field's by one of these names, which it may
    have had during these tenures.
    """
    for name in names:
        column = schema.by_source.get(name)
        if column is not None and _holds(schema, column, field, tenures):
            return column
    return None


def _holds(
    schema: TableSchema, column: Column, field: SourceField, tenures: Sequence[NamePeriod]
) -> bool:
    """Whether a column of the schema is the field's by the name that the source has for it there:
    another column may have had that name before, or later. If nothing shows since when the table's
    column has the name, the name counts (`unplaced` finds that out).
    """
    if not any(tenure.name == column.source_name for tenure in field.tenures or ()):
        return True
    since = schema.named_since(column)
    own = (tenure for tenure in tenures if tenure.name == column.source_name)
    return since in SINCE_UNKNOWN or any(tenure.has(since) for tenure in own)


def _before_and_after(field: SourceField) -> tuple[Sequence[NamePeriod], Sequence[NamePeriod]]:
    """Return a field's tenures from before it had its name, and from after it; all of them in both
    if it isn't known which are which.

    A column may get back a name that it had, while another column had it in between. A table that
    has the other column under the name was altered before, not after.
    """
    tenures = field.tenures or ()
    shared = {tenure.name for tenure in tenures}
    before = sum(name in shared for name in field.formerly)
    after = len(tenures) - sum(name in shared for name in field.later)
    if after - before != (field.name in shared):
        return tenures, tenures
    return tenures[:before], tenures[after:]
