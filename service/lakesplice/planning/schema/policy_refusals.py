"""Why a table parks at a change of its columns that its policy doesn't follow, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.model.schema import Column, SourceField

RESET = "give `lakesplice reset --anew` to read it again under the source's present schema"


def gone(column: Column, new: Sequence[SourceField], follows_renames: bool = False) -> str:
    """A column that an image lacks, whatever other columns it has. `follows_renames`: the table
    follows renames that the source reports.
    """
    came = f", and {new[0].name!r} is new" if new else ""
    kind = "rename_column" if new else "drop_column"
    evolve = "" if follows_renames else "schema_changes.rename_column: evolve and "
    follow = f" to follow a rename, set {evolve}schema_change_topics;" if new else ""
    return (
        f"column={column.source_name!r} of type {described(column)} isn't in the source any more"
        f"{came}: dropped or renamed;{follow} to keep what it held and continue, set"
        f" schema_changes.{kind}: lenient and give `lakesplice unpark`; or bring it back under its"
        f" name, or {RESET}"
    )


def unmasked(column: Column, new: SourceField) -> str:
    """A masked column that the source dropped while another is new, which isn't masked."""
    return (
        f"column={column.source_name!r}, which is masked, isn't in the source any more, and"
        f" {new.name!r} is new and not masked: it may hold the same values under another name; name"
        " it under `masks` as well, or, if it may be shown, set schema_changes.rename_column:"
        " ignore, and give `lakesplice unpark`"
    )


def handed_on(names: Sequence[str]) -> str:
    """Names that belong to other columns now, by the source's statements."""
    return (
        f"by its statements the source has other columns now under {_listed(names)}: columns"
        " changed their names with each other, or were dropped and added again; to follow new names"
        " (not of the key), set schema_changes.rename_column: evolve; to keep what the old columns"
        " held and give the new ones columns of their own, lenient; then give `lakesplice unpark`;"
        f" or {RESET}"
    )


def unplaced(name: str) -> str:
    """A name that two columns had, where the change's position doesn't show which one it means."""
    return (
        f"by its statements the source had the name {name!r} for one column and then for another,"
        " and the change's position doesn't tell which it means; if all that is still to come is"
        " from after that, let names count: schema_changes.rename_column: ignore, and give"
        f" `lakesplice unpark`; or {RESET}"
    )


def straggled(new: Sequence[SourceField], missing: Sequence[Column]) -> str:
    """A late change from between two schemas, with columns that the table never had."""
    return (
        f"a change that comes late has {_listed([field.name for field in new])}, which the table"
        " never met and the source no longer has, and lacks"
        f" {_listed([column.source_name for column in missing])}; pass it over (`lakesplice unpark"
        f" --from-offset`), or {RESET}"
    )


def retyped(column: Column, found: Column | SourceField) -> str:
    """A column whose new type changes values."""
    return (
        f"column={column.source_name!r} changed its type from {described(column)} to"
        f" {described(found)}; to continue with a column of its own for the new values, set"
        " schema_changes.alter_column_type: lenient and give `lakesplice unpark`; or change it back"
        f" at the source, or {RESET}"
    )


def came_back(column: Column) -> str:
    """A column that a shard dropped, and that others have."""
    return (
        f"column={column.source_name!r} is there again, which this source had dropped: its rows"
        f" that didn't change since hold what the old column held; {RESET}"
    )


def other_default(column: Column, field: SourceField) -> str:
    """A column that came with another default in another shard."""
    return (
        f"column={column.source_name!r} came with the default {field.fill} in this source, and with"
        f" {column.fill} in the table: rows of this source from before it have that, which is not"
        " what the source has in them; to leave them so, set schema_changes.add_column: lenient"
        f" and give `lakesplice unpark`; or {RESET}"
    )


def added(field: SourceField) -> str:
    """A column that isn't wanted."""
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
