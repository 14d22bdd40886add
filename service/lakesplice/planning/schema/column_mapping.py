"""What a table's column has to become for an image's field with another type or name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.model.progress.column_presence import ColumnPresences, is_there
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.schema.source_names import column_of, formerly
from lakesplice.planning.schema.type_changes import accepts, keeps_key_hash, widened


def followed_as(
    current: TableSchema, column: Column, field: SourceField, policy: SchemaPolicy
) -> Column | SourceField | None:
    """Return the column as the image's field needs it; the field if it needs a column of its own;
    None if the table can't continue with it.
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
    """How a table's columns correspond to the fields of an image that fits no version of the
    schema.

    `kept` has the columns whose names haven't changed. `renamed` has those that the source is known
    to have renamed, by their new names, with all changes but the name. `new` are fields without a
    column, `missing` columns without a field. `maybe_renamed`: a new field may be, or is, a missing
    column; not if the source reported that it was added.
    """

    kept: Mapping[str, Column]
    renamed: Mapping[str, Column]
    new: tuple[SourceField, ...]
    missing: tuple[Column, ...]
    maybe_renamed: bool

    @property
    def handed_on(self) -> tuple[str, ...]:
        """Names that belonged to a column of the table, and belong to another one now."""
        new = {field.name for field in self.new}
        return tuple(column.source_name for column in self.missing if column.source_name in new)


def matched(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None = None,
) -> ColumnMatch:
    """Match the fields of an image with a table's columns. Columns of the key are never renamed.

    If the table has shards (`presences`), only columns that the image's own shard had can be
    missing.
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
