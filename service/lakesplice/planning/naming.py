"""Names: a column's at the source by other names of it, and stored names that are free."""

from __future__ import annotations

from collections.abc import Set

from lakesplice.model.names import column_name
from lakesplice.model.schema import SourceField, TableSchema


def known_as(field: SourceField, names: Set[str]) -> str:
    """Return which of some names is the field's column: its own, else one that it got later."""
    if field.name in names:
        return field.name
    return next((name for name in field.later if name in names), field.name)


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
