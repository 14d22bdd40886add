"""Why a table is parked by a change of its columns that its policy doesn't follow, and what to
do.
"""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.model.schema import Column
from lakesplice.model.source_schema import SourceField

RESET = "give `lakesplice reset --anew` to reload it with the source's present schema"


def gone(column: Column, new: Sequence[SourceField], follows_renames: bool = False) -> str:
    """A column that an image lacks, whatever other columns it has. `follows_renames`: the table
    follows renames that the source reports.
    """
    came = f", and {new[0].name!r} is new" if new else ""
    kind = "rename_column" if new else "drop_column"
    evolve = "" if follows_renames else "schema_changes.rename_column: evolve and "
    follow = f" to follow a rename, set {evolve}schema_change_topics;" if new else ""
    return (
        f"column={column.source_name!r} of type {described(column)} isn't in the source any"
        f" more{came}: dropped or renamed;{follow} to keep its values and continue, set"
        f" schema_changes.{kind}: lenient and give `lakesplice unpark`; or add it again under its"
        f" name at the source, or {RESET}"
    )


def unmasked(column: Column, new: SourceField) -> str:
    """A masked column that the source dropped while a new column isn't masked."""
    return (
        f"column={column.source_name!r}, which is masked, isn't in the source any more, and"
        f" {new.name!r} is new and not masked: it may have the same values under another name;"
        " name it under `masks` as well, or, if its values may be shown, set"
        " schema_changes.rename_column: ignore, and give `lakesplice unpark`"
    )


def handed_on(names: Sequence[str]) -> str:
    """Names that belong to other columns now, by the source's statements."""
    return (
        f"the source's statements show that it now has other columns under {_listed(names)}:"
        " columns swapped their names, or were dropped and added again; to follow the new names"
        " (except those of the key), set schema_changes.rename_column: evolve; to keep the old"
        f" columns and add new ones, set lenient; then give `lakesplice unpark`; or {RESET}"
    )


def unplaced(name: str) -> str:
    """A name that two columns had, and the change's position doesn't show which of them it
    means.
    """
    return (
        f"the source's statements show that the name {name!r} belonged to one column and then to"
        " another, and the change's position doesn't show which it means; if all further records"
        " are from after that, set schema_changes.rename_column: ignore, by which names count,"
        f" and give `lakesplice unpark`; or {RESET}"
    )


def straggled(new: Sequence[SourceField], missing: Sequence[Column]) -> str:
    """A late change from between two schemas, with columns that the table never had."""
    return (
        f"a late change has {_listed([field.name for field in new])}, which the table never had"
        " and the source no longer has, and lacks"
        f" {_listed([column.source_name for column in missing])}; skip it (`lakesplice unpark"
        f" --from-offset`), or {RESET}"
    )


def retyped(column: Column, found: Column | SourceField) -> str:
    """A column whose new type changes values."""
    return (
        f"column={column.source_name!r} changed its type from {described(column)} to"
        f" {described(found)}; to store the new values in a column of their own, set"
        " schema_changes.alter_column_type: lenient and give `lakesplice unpark`; or change it"
        f" back at the source, or {RESET}"
    )


def came_back(column: Column) -> str:
    """A column that a shard dropped and added again, and that other shards have."""
    return (
        f"column={column.source_name!r} is back, after this source had dropped it: rows that"
        f" haven't changed since still have the old column's values; {RESET}"
    )


def other_default(column: Column, field: SourceField) -> str:
    """A column that was added with another default in another shard."""
    return (
        f"column={column.source_name!r} has the default {field.fill} in this source, and"
        f" {column.fill} in the table: earlier rows of this source have the table's default,"
        " unlike at the source; to leave them so, set schema_changes.add_column: lenient and"
        f" give `lakesplice unpark`; or {RESET}"
    )


def added(field: SourceField) -> str:
    """A column that the policy refuses."""
    return (
        f"column={field.name!r} of type {described(field)} is new; set schema_changes.add_column"
        " and give `lakesplice unpark`"
    )


def described(column: Column | SourceField) -> str:
    """Return a column's type in words, ours and the source's."""
    known = column.type.name if column.type is not None else "unknown"
    return f"{known} ({column.source_type})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
