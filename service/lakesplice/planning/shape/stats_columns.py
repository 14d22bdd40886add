"""Text and moment columns whose bounds the log has, so that readers can skip files by them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.model.schema import TableSchema
from lakesplice.model.types import Primitive

KINDS = frozenset((Primitive.STRING, Primitive.TIMESTAMP))


def bounded(schema: TableSchema, names: Collection[str]) -> TableSchema:
    """Return the first schema of a table with bounds for the source columns `names`.

    A name counts if it is one of a text or a moment: other columns have bounds anyway, or can't
    have any, and a setting may be for several tables.
    """
    chosen = (schema.by_source[name] for name in names if name in schema.by_source)
    return replace(schema, bounded=frozenset(c.id for c in chosen if c.type.kind in KINDS))


def chosen_by_hand(schema: TableSchema, names: Collection[str]) -> TableSchema:
    """Return the schema of a new table that is fed by hand with bounds for `names`.

    `UsageError` for a name of no column and for a column of another kind.
    """
    for name in names:
        column = schema.by_source.get(name)
        if column is None:
            raise UsageError("stats_columns names a column that the table lacks", column=name)
        if column.type.kind not in KINDS:
            raise UsageError(
                "stats_columns is for texts and moments; whole numbers, decimals and dates have"
                " bounds anyway, and other types can't have any",
                column=name,
                type=column.type.name,
            )
    return bounded(schema, names)
