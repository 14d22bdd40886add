"""Following: what a table's column becomes for an image's field of another type or name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.model.column_presence import ColumnPresences, is_there
from lakesplice.model.schema import Column, SourceField, SourceSchema, TableSchema
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.schema.source_names import column_of, formerly
from lakesplice.planning.schema.type_changes import accepts, keeps_key_hash, widened


def followed_as(
    current: TableSchema, column: Column, field: SourceField, policy: SchemaPolicy
) -> Column | SourceField | None:
    """Return the column as it has to be for an image's field, the field if it needs a column of its
    own, or None if the table can't continue with it.
    """
    if accepts(column, field):
        return column
    wider = widened(column, field) if policy.widens else None
    if wider is not None and (
        column.name not in current.key or keeps_key_hash(column.type, wider.type)
    ):
        return wider
    return field if policy.sets_beside and column.name not in current.key else None


@dataclass(frozen=True, slots=True)
class ColumnMatch:
    """How the columns of a table and the fields of an image that isn't of any version correspond.

    `kept` has the columns under names that are theirs still, `renamed` those that the source is
    known to have renamed, by their new names and as they have to be for the fields but for the
    name. `new` are fields without a column, `missing` columns without a field. `maybe_renamed` is
    whether what is new may be, or is, what is missing; not if the source reported that it was
    added.
    """

    kept: Mapping[str, Column]
    renamed: Mapping[str, Column]
    new: tuple[SourceField, ...]
    missing: tuple[Column, ...]
    maybe_renamed: bool

    @property
    def handed_on(self) -> tuple[str, ...]:
        """Names that were a column's of the table and are another's now."""
        new = {field.name for field in self.new}
        return tuple(column.source_name for column in self.missing if column.source_name in new)


def matched(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None = None,
) -> ColumnMatch:
    """Match the fields of an image with a table's columns. A key's columns aren't renamed.

    Where the table has shards (`presences`), only columns are missing that the image's own had.
    """
    renamed = _renamed(current, image, policy) if policy.follows_renames else {}
    taken = {column.id for column in renamed.values()}
    left = [field for field in image.fields if field.name not in renamed]
    own = {field.name: column_of(current, field) for field in left}
    kept = {n: c for n, c in own.items() if c is not None and c.id not in taken}
    known = {column.id for column in kept.values()} | taken
    new = tuple(field for field in left if field.name not in kept)
    return ColumnMatch(
        kept,
        renamed,
        new,
        tuple(
            c for c in current.by_source.values() if c.id not in known and is_there(presences, c.id)
        ),
        any(
            formerly(current, field) is not None or not (field.tenures or field.added_by_statement)
            for field in new
        ),
    )


def _renamed(current: TableSchema, image: SourceSchema, policy: SchemaPolicy) -> dict[str, Column]:
    found: dict[str, Column] = {}
    for field in image.fields:
        before = formerly(current, field)
        if before is None or column_of(current, field) is not None or before.name in current.key:
            continue
        followed = followed_as(current, before, field, policy)
        if isinstance(followed, Column):
            found[field.name] = followed
    return found if len({column.id for column in found.values()}) == len(found) else {}
