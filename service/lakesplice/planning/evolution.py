"""Schema fit and evolution: what a change's row image means to the table it is for.

A table only ever gains columns by itself. An image with the columns of the present or an earlier
version fits: changes from before an ALTER are still on their way after it. One with further columns
evolves the table. Anything else (a column gone, renamed or of another type, another key) would have
to guess what the rows already stored mean, so the table is parked and an operator decides.

Whether a column may be null and what it defaults to are no part of a schema: stored columns outside
the key are nullable, and defaults arrive as values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakesplice.model.manifest import ParkCode
from lakesplice.model.names import column_name
from lakesplice.model.position import Position
from lakesplice.model.schema import Column, SourceField, SourceSchema, TableSchema

_RESET = "reset the table to read it anew under the source's present schema"


@dataclass(frozen=True, slots=True)
class Fits:
    """The image has the columns of `version`; `mapping` takes its names to stored ones.

    For an earlier version `until` is a position where the next one is known to have been in force:
    from there on the image is no straggler but shows a column dropped, and `went_back` says so. The
    image may then have some of the next version's columns, too: several ALTERs may have passed in
    other partitions, or before the table was born, and were seen as one.
    """

    version: int
    mapping: Mapping[str, Column]
    until: Position | None = None


@dataclass(frozen=True, slots=True)
class Adds:
    """The image fits the table once `next` is its schema."""

    next: TableSchema


@dataclass(frozen=True, slots=True)
class Unfit:
    """The table can't go on with this image; `detail` names what differs and what to do."""

    code: ParkCode
    detail: str


SchemaFit: TypeAlias = Fits | Adds | Unfit


def fit(current: TableSchema, image: SourceSchema) -> SchemaFit:
    """Decide how `image` stands to `current`, which has no columns while the table isn't born.

    The order of the image's fields and of its key doesn't matter; the table keeps the key order
    that it was born with. What is added has no position yet: `plan_evolution` gives it one.
    """
    unfit = _unusable(image) or _differing(current, image)
    if unfit is not None:
        return unfit
    known = {column.source_name for column in current.columns}
    new = [field for field in image.fields if field.name not in known]
    missing = [column for column in current.columns if column.source_name not in _names(image)]
    if new and not missing:
        return _grown(current, image, new)
    version = _version_of(current, image) if not new else None
    return _gone(missing[0], new) if version is None else _mapped(current, image, version)


def went_back(schema: TableSchema, earlier: Fits) -> Unfit:
    """Return what an image of an earlier version comes to from `earlier.until` on."""
    gone = (column for column in schema.columns if column.source_name not in earlier.mapping)
    return _gone(next(gone), ())


def plan_evolution(
    current: TableSchema, seen: Sequence[tuple[Position, SourceSchema]]
) -> tuple[TableSchema, dict[SourceSchema, Fits | Unfit]]:
    """Return the schema after all sightings and how each image's schema stands to it.

    `seen` holds schemas of images with positions where they occurred, in any order: of each run of
    images of one schema the first and the last position at least. They are taken in the order of
    positions; what adds columns evolves the schema. Once a schema is found unfit it stays so, also
    for images at lower positions.
    """
    schema = current
    reached = 0
    verdicts: dict[SourceSchema, Fits | Unfit] = {}
    # Fewer columns first: should two schemas meet at one position, neither is a step back.
    for position, image in sorted(seen, key=lambda met: (met[0], len(met[1].fields))):
        if isinstance(verdicts.get(image), Unfit):
            continue
        verdict = fit(schema, image)
        if isinstance(verdict, Adds):
            schema = replace(verdict.next, since=(*schema.since, position))
            verdict = _mapped(schema, image, schema.version)
        if isinstance(verdict, Fits):
            late = verdict.until is not None and position >= verdict.until
            # An image of the later version may have been met lower than any known before.
            if late or verdict.version < reached:
                verdict = went_back(schema, verdict)
            else:
                reached = verdict.version
        verdicts[image] = verdict
    return schema, {
        image: verdict if isinstance(verdict, Unfit) else _mapped(schema, image, verdict.version)
        for image, verdict in verdicts.items()
    }


def _mapped(schema: TableSchema, image: SourceSchema, version: int) -> Fits:
    by_source = {column.source_name: column for column in schema.columns}
    mapping = {field.name: by_source[field.name] for field in image.fields}
    until = schema.since[version + 1] if version < schema.version else None
    return Fits(version, mapping, until)


def _names(image: SourceSchema) -> set[str]:
    return {field.name for field in image.fields}


def _unusable(image: SourceSchema) -> Unfit | None:
    """Return why no table could hold the image, if so."""
    if not image.key:
        return Unfit(
            ParkCode.NO_KEY, "the source table has no primary key; add one or exclude its topic"
        )
    absent = [name for name in image.key if name not in _names(image)]
    if absent:
        return Unfit(
            ParkCode.NO_KEY,
            f"key column={absent[0]!r} is not in the row image; include it at the connector",
        )
    for field in image.fields:
        if field.type is None:
            return Unfit(
                ParkCode.UNSUPPORTED,
                f"column={field.name!r} source_type={field.source_type!r} has no exact type here;"
                " exclude the column or have the connector send it as a string",
            )
    return _clashing(image)


def _clashing(image: SourceSchema) -> Unfit | None:
    """Engines compare names without regard to case: two columns must not differ in it alone."""
    stored: dict[str, str] = {}
    for field in image.fields:
        other = stored.setdefault(column_name(field.name).lower(), field.name)
        if other != field.name:
            return Unfit(
                ParkCode.UNSUPPORTED,
                f"columns {other!r} and {field.name!r} have one name to engines that ignore case;"
                " rename or exclude one at the source",
            )
    return None


def _differing(current: TableSchema, image: SourceSchema) -> Unfit | None:
    """Return how the key or a column that both have differs in the image, if so."""
    if not current.columns:
        return None
    key = {column_name(name) for name in image.key}
    if key != set(current.key):
        return Unfit(
            ParkCode.SCHEMA_CHANGE,
            f"the primary key changed from {list(current.key)} to {sorted(key)}; {_RESET}",
        )
    by_source = {column.source_name: column for column in current.columns}
    for field in image.fields:
        column = by_source.get(field.name)
        if column is not None and (field.type, field.source_type) != (
            column.type,
            column.source_type,
        ):
            return Unfit(
                ParkCode.SCHEMA_CHANGE,
                f"column={field.name!r} changed its type from {_described(column)} to"
                f" {_described(field)}; change it back at the source, or {_RESET}",
            )
    return None


def _described(column: Column | SourceField) -> str:
    known = column.type.name if column.type is not None else "unknown"
    return f"{known} ({column.source_type})"


def _grown(current: TableSchema, image: SourceSchema, new: Sequence[SourceField]) -> Adds:
    first = max((column.id for column in current.columns), default=-1) + 1
    added = [
        Column(first + at, column_name(field.name), field.name, field.type, field.source_type)
        for at, field in enumerate(new)
        if field.type is not None  # true of all: `_unusable` has looked
    ]
    key = current.key or tuple(column_name(part) for part in image.key)
    return Adds(current.with_columns(added, key))


def _version_of(current: TableSchema, image: SourceSchema) -> int | None:
    """Return the latest version all of whose columns the image has, if the next has all of its.

    Types are known to agree.
    """
    names = _names(image)
    for version in range(current.version, -1, -1):
        had = {column.source_name for column in current.columns[: current.versions[version]]}
        if had <= names:
            following = current.columns[: current.versions[min(version + 1, current.version)]]
            return version if names <= {column.source_name for column in following} else None
    return None


def _gone(gone: Column, new: Sequence[SourceField]) -> Unfit:
    came = f", and {new[0].name!r} is new" if new else ""
    return Unfit(
        ParkCode.SCHEMA_CHANGE,
        f"column={gone.source_name!r} of type {_described(gone)} is gone from the source{came}:"
        f" dropped or renamed; bring it back under its name, or {_RESET}",
    )
