"""Following: what a table's column becomes for an image's field of another type or name."""

from __future__ import annotations

from collections.abc import Mapping

from lakesplice.model.schema import Column, SourceField, SourceSchema, TableSchema
from lakesplice.planning.policy import SchemaPolicy
from lakesplice.planning.retyping import accepts, keeps_key_hash, widened


def followed_as(
    current: TableSchema, column: Column, field: SourceField, policy: SchemaPolicy
) -> Column | SourceField | None:
    """Return the column as it has to be for an image's field, the field if it needs a column of its
    own, or None if the table can't go on with it.
    """
    if accepts(column, field):
        return column
    wider = widened(column, field) if policy.widens else None
    if wider is not None and (
        column.name not in current.key or keeps_key_hash(column.type, wider.type)
    ):
        return wider
    return field if policy.sets_beside and column.name not in current.key else None


def renamed_of(
    current: TableSchema, image: SourceSchema, policy: SchemaPolicy
) -> dict[str, Column]:
    """Return, per field of the image that the source is known to have renamed, its column as it
    has to be for it but for its name. A key's columns aren't renamed.
    """
    found: dict[str, Column] = {}
    for field in image.fields if policy.follows_renames else ():
        named = (current.by_source.get(name) for name in field.formerly)
        before = next((column for column in named if column is not None), None)
        if before is None or field.name in current.by_source or before.name in current.key:
            continue
        followed = followed_as(current, before, field, policy)
        if isinstance(followed, Column):
            found[field.name] = followed
    return found if len({column.id for column in found.values()}) == len(found) else {}


def not_renamed(current: TableSchema, renamed: Mapping[str, Column]) -> dict[str, Column]:
    """The present columns by their source's names; what a renamed one was called is free."""
    gone = {column.id for column in renamed.values()}
    return {name: column for name, column in current.by_source.items() if column.id not in gone}
