"""The next schema of a table, extended for a row image."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.names import column_name
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.schema.column_mapping import ColumnMatch, followed_as, matched
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.schema.stored_names import has_copy, renamed_beside, stored_names


def missing_positions(current: TableSchema, image: SourceSchema) -> tuple[Column, ...]:
    """Return the column for column positions, if the table needs it for the image and lacks it."""
    if not image.partial or current.positions is not None:
        return ()
    first = max((column.id for column in current.columns), default=-1) + 1
    return (TableSchema.positions_column(first),)


def grown_schema(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None,
) -> TableSchema:
    """Return the next schema of a table for the image, within what the policy allows.

    `presences` as in `fit`.
    """
    positions = missing_positions(current, image)
    image = image.whole if image.partial else image
    match = matched(current, image, policy, presences)
    new = list(match.new)
    # Also for a table's first columns: later images that lack one are from before it was added.
    filled = (
        {field.name for field in new} - {*image.key, *current.left_out} if policy.fills else set()
    )
    changed = _renamed(current, match, policy, presences)
    keeps = policy.keeps_old_names and presences is None
    both = renamed_beside(current, match, image) if keeps else ()
    beside = []
    for field in image.fields:
        column = match.kept.get(field.name)
        if column is None:
            continue
        followed = followed_as(current, column, field, policy)
        if isinstance(followed, SourceField):
            beside.append(followed)
            changed.append(replace(column, source_name=""))
        elif followed is not None and followed != column:
            changed.append(followed)
    copied = [column for column in both if not has_copy(current, column)]
    names_of_new = [*(field.name for field in new), *(column.source_name for column in copied)]
    named = stored_names(current, changed, names_of_new, both)
    new += beside
    names = [*named.added[: len(names_of_new) - len(copied)], *named.beside(f.name for f in beside)]
    first = max((column.id for column in current.columns), default=-1) + 1
    added = [
        _added(first + at, name, field, filled=field.name in filled)
        for at, (name, field) in enumerate(zip(names, new, strict=True))
    ]
    for name, column in zip(named.added[len(names_of_new) - len(copied) :], copied, strict=True):
        at = first + len(added)
        copy = Column(at, name, "", column.type, column.source_type, copy_of=column.id)
        added.append(copy)
    added += [TableSchema.positions_column(first + len(added)) for _ in positions]
    key = current.key or tuple(column_name(part) for part in image.key)
    grown = current.with_columns(added, key, named.changed)
    return replace(grown, left_out=current.left_out | image.left_out)


def _renamed(
    current: TableSchema,
    match: ColumnMatch,
    policy: SchemaPolicy,
    presences: ColumnPresences | None,
) -> list[Column]:
    """Return the columns whose name at the source changes, or that no longer have one, and copies
    that are hidden with them.
    """
    hides = policy.hides_dropped and not match.maybe_renamed and presences is None
    # Other shards still have the column, so it keeps its name unless another column has it now.
    released = [c for c in match.missing if presences is None or c.source_name in match.handed_on]
    renamed = [replace(kept, source_name=name) for name, kept in match.renamed.items()]
    gone = [replace(c, source_name="", hidden=hides or c.hidden) for c in released]
    of = {column.id for column in gone} if hides else set[int]()
    copies = [replace(c, hidden=True) for c in current.columns if c.copy_of in of]
    return [*gone, *copies, *renamed]


def _added(id_: int, name: str, field: SourceField, *, filled: bool) -> Column:
    assert field.type is not None, "`image_problem` has looked"
    fill = field.fill if filled else None
    return Column(id_, name, field.name, field.type, field.source_type, fill)
