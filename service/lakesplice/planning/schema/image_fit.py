"""Whether a table could hold a row image at all: its types, key and names."""

from __future__ import annotations

from lakesplice.model.names import column_name
from lakesplice.model.parking import ParkCode
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.schema import policy_refusals
from lakesplice.planning.schema.missing_columns import Why
from lakesplice.planning.schema.source_names import own_column


def image_problem(current: TableSchema, image: SourceSchema) -> Why | None:
    """Return why no table could hold the image, or why this table can't as it is configured; else
    None.
    """
    problem = image.problem or _not_computable(current, image)
    if problem:
        return ParkCode.UNSUPPORTED, problem
    if not image.key:
        return (
            ParkCode.NO_KEY,
            "the source table has no primary key; add one, name unique columns as `key` under"
            " `tables`, set `mode: append` if rows are only inserted, or exclude its topic",
        )
    names = {field.name for field in image.fields}
    absent = [name for name in image.key if name not in names]
    if absent:
        return (
            ParkCode.NO_KEY,
            f"key column={absent[0]!r} is not in the row image; include it at the connector",
        )
    for field in image.fields:
        if not field.name:
            return (
                ParkCode.UNSUPPORTED,
                "a column of the row image has no name; name it at the source, or exclude it at the"
                " connector",
            )
        if field.type is None:
            return (
                ParkCode.UNSUPPORTED,
                f"column={field.name!r} source_type={field.source_type!r} has no exact type here;"
                " exclude the column or have the connector send it as a string",
            )
    return _clashing(image)


def _not_computable(current: TableSchema, image: SourceSchema) -> str:
    """Return a computed column that can't be computed and never could. If it could before, a source
    column is missing, which may not exist yet, or no longer.
    """
    had = current.by_source.keys() | {former.column.source_name for former in current.former}
    for name, lacked in image.lacking:
        if name not in had:
            return (
                f"computed column={name!r} needs column={lacked!r}, which the source doesn't"
                " have; correct shape.computed, or add the expression once the source has the"
                " column"
            )
    return ""


def _clashing(image: SourceSchema) -> Why | None:
    """Engines compare names without regard to case, so two columns must not differ in case
    alone.
    """
    stored: dict[str, str] = {}
    for field in image.fields:
        other = stored.setdefault(column_name(field.name).lower(), field.name)
        if other != field.name:
            return (
                ParkCode.UNSUPPORTED,
                f"columns {other!r} and {field.name!r} have the same name for engines that ignore"
                " case; rename or exclude one at the source",
            )
    return None


def other_key(current: TableSchema, image: SourceSchema) -> Why | None:
    """Return why the image's key differs from the table's, if it does."""
    key = {column_name(name) for name in image.key}
    if current.columns and key != set(current.key):
        return (
            ParkCode.KEY_CHANGED,
            f"the primary key changed from {list(current.key)} to {sorted(key)};"
            f" {policy_refusals.RESET}",
        )
    other = [
        field.name
        for field in image.fields
        if field.name in image.key
        and field.name in current.by_source
        and own_column(current, field) is None
    ]
    if not other:
        return None
    return (
        ParkCode.SCHEMA_CHANGE,
        f"the source's statements show that another column is now the primary key's {other[0]!r};"
        f" {policy_refusals.RESET}",
    )
