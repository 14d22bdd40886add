"""Schema fit and evolution: what a change's row image does to its table's schema.

An image with the columns of the present or an earlier version fits: changes from before an ALTER
may arrive after it. Otherwise the table's policy decides: the table gets a new column, a column
gets a wider type, or a column keeps its values. If the meaning of stored rows would have to be
guessed (another key, a type that changes values), the table is parked and an operator decides.

Nullability isn't part of a schema: all stored columns outside the key are nullable.

An image may lack columns that still exist, since the source's row image left them out
(`binlog_row_image`). If the event says so itself (`SourceSchema.partial`), or the table applies
partial images, so that the declared columns are those that exist, then the image fits as the whole
image would, with values for some columns only. Otherwise it is an image like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.progress.column_presence import ColumnPresence, ColumnPresences
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.schema import policy_refusals
from lakesplice.planning.schema.column_mapping import followed_as, matched
from lakesplice.planning.schema.image_fit import image_problem, other_key
from lakesplice.planning.schema.missing_columns import Why, declared_yet_omitted, refusal
from lakesplice.planning.schema.policy import DEFAULT_POLICY, Behaviour, PartialImages, SchemaPolicy
from lakesplice.planning.schema.schema_growth import grown_schema, missing_positions
from lakesplice.planning.schema.source_names import (
    SINCE_UNKNOWN,
    column_of,
    formerly,
    in_any_order,
    known_as,
    unplaced,
)
from lakesplice.planning.schema.type_changes import accepts
from lakesplice.planning.shape.masks import is_masked
from lakesplice.planning.shape.partition_columns import partitioned, partitioning_changed
from lakesplice.planning.shape.stats_columns import bounded


@dataclass(frozen=True, slots=True)
class Fits:
    """The image has the columns of `version`; `mapping` maps its names to stored ones.

    For an earlier version `until` is a position at which the next version is known to be in force.
    From there on the image isn't late, but shows that the source went back to the earlier columns,
    or renamed one and back; `fit_as_new` decides about it. The image may then have some columns of
    the next version, too: several ALTERs may have come through other partitions, or before the
    table was created, and were seen as one. If the image is `partial`, `mapping` has the columns
    that it contains, and the others stay unchanged.
    """

    version: int
    mapping: Mapping[str, Column]
    until: Position | None = None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Grows:
    """The image fits the table once `next` is its schema."""

    next: TableSchema


@dataclass(frozen=True, slots=True)
class Unfit:
    """The table can't continue with this image; `detail` says what differs and what to do."""

    code: ParkCode
    detail: str


SchemaFit: TypeAlias = Fits | Grows | Unfit


def fit(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy = DEFAULT_POLICY,
    presences: ColumnPresences | None = None,
) -> SchemaFit:
    """Decide how `image` fits `current`, which has no columns before the table is created.

    The order of the image's fields and of its key doesn't matter; the table keeps the key order
    that it was created with. An added column has no position yet: `plan_evolution` sets it.

    `presences` is, for a table with shards, what is known of the columns of the image's own shard:
    it may lack columns that other shards have, and `planning/schema/shard_columns.py` judges a
    column that it had before.
    """
    asked = partitioning_changed(current, policy.partition_by)
    if asked is not None:
        return Unfit(*asked)
    accepted = _accepted_image(current, image, policy)
    unfit = _unfit(current, image, accepted, policy)
    if unfit is not None:
        return unfit
    if accepted.key_alone and _has_key(current, accepted):
        return _mapped(current, accepted, current.version)
    whole, until = accepted.whole if accepted.partial else accepted, None
    version = _version_of(current, whole, presences)
    if version is None:
        # A column that got its former name back may have another one only before the next version.
        version = _version_of(current, in_any_order(whole), presences)
        if version is None:
            return fit_as_new(current, image, policy, presences)
        until = current.since[min(version + 1, current.version)]
    positions = missing_positions(current, accepted)
    if accepted.left_out <= current.left_out and not positions:
        fits = _mapped(current, accepted, version)
        return fits if until in (None, *SINCE_UNKNOWN) else replace(fits, until=until)
    noted = current.with_columns(positions, current.key)
    return Grows(replace(noted, left_out=current.left_out | accepted.left_out))


def fit_as_new(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None = None,
) -> SchemaFit:
    """Decide how an image fits `current` without comparing it with earlier versions.

    This is also for an image of an earlier version from `Fits.until` on: the source went back, and
    columns that it has again have other values than before.
    """
    accepted = _accepted_image(current, image, policy)
    unfit = _unfit(current, image, accepted, policy) or _differing(
        current, accepted, policy, presences
    )
    if unfit is not None:
        return unfit
    next_one = grown_schema(current, accepted, policy, presences)
    if not current.columns:
        next_one = replace(
            bounded(next_one, policy.stats_columns), bloom_filters=policy.bloom_filters
        )
    grown = partitioned(current, next_one, policy.partition_by)
    return Grows(grown) if isinstance(grown, TableSchema) else Unfit(*grown)


def in_time(
    verdict: SchemaFit,
    current: TableSchema,
    image: SourceSchema,
    position: Position,
    policy: SchemaPolicy,
) -> SchemaFit:
    """Return the verdict on an image at a position. An image that comes late must not extend the
    schema at the cost of columns that the table has: they aren't dropped only because an older
    image lacks them.
    """
    since = current.since[-1]
    if not isinstance(verdict, Grows) or since in SINCE_UNKNOWN or position >= since:
        return verdict
    accepted = _accepted_image(current, image, policy)
    match = matched(current, accepted.whole if accepted.partial else accepted, policy)
    if not match.missing or not match.new:
        return verdict
    why = policy_refusals.straggled(match.new, match.missing)
    return Unfit(ParkCode.SCHEMA_CHANGE, why)


def plan_evolution(
    current: TableSchema,
    seen: Sequence[tuple[Position, SourceSchema]],
    policy: SchemaPolicy = DEFAULT_POLICY,
    presences: ColumnPresences | None = None,
) -> tuple[TableSchema, dict[SourceSchema, Fits | Unfit]]:
    """Return the schema after all images, and how each image's schema fits it.

    `seen` has schemas of images with positions where they occurred, in any order: for each run of
    images with one schema at least the first and the last position. They are taken in order of
    positions, and each that adds columns extends the schema. A schema that doesn't fit stays unfit,
    also for images at lower positions. `presences` as in `fit`.
    """
    schema = current
    reached = 0
    verdicts: dict[SourceSchema, Fits | Unfit] = {}
    # Fewer columns first: if two schemas have one position, none of them counts as a step back.
    for position, image in sorted(seen, key=lambda met: (met[0], len(met[1].fields))):
        if isinstance(verdicts.get(image), Unfit):
            continue
        verdict = fit(schema, image, policy, presences)
        if isinstance(verdict, Fits):
            late = verdict.until is not None and position >= verdict.until
            # An image of the later version may be at a lower position than any known before.
            if late or verdict.version < reached:
                verdict = fit_as_new(schema, image, policy, presences)
            else:
                reached = verdict.version
        verdict = in_time(verdict, schema, image, position, policy)
        if isinstance(verdict, Grows):
            schema = replace(verdict.next, since=(*schema.since, position))
            reached = schema.version
            verdict = _mapped(schema, _accepted_image(schema, image, policy), reached)
        if presences is not None and isinstance(verdict, Fits):
            presences = {c.id: ColumnPresence(position) for c in verdict.mapping.values()} | dict(
                presences
            )
        verdicts[image] = verdict
    return schema, {
        image: verdict
        if isinstance(verdict, Unfit)
        else _mapped(schema, _accepted_image(schema, image, policy), verdict.version)
        for image, verdict in verdicts.items()
    }


def _mapped(schema: TableSchema, image: SourceSchema, version: int) -> Fits:
    present = {column.id: column for column in schema.columns}
    between = schema.at(version), schema.at(version + 1)
    fields = in_any_order(image).fields
    columns_of_values = ((field.name, _column_of_values(between, field)) for field in fields)
    mapping = {name: present[column.id] for name, column in columns_of_values if column is not None}
    until = schema.since[version + 1] if version < schema.version else None
    return Fits(version, mapping, until, image.partial)


def _column_of_values(
    between: tuple[TableSchema, TableSchema], field: SourceField
) -> Column | None:
    """Return the column of a version, or of the next one, that the field has the values of."""
    for schema in between:
        column = column_of(schema, field)
        if column is not None and accepts(column, field):
            return column
    return None


def _unfit(
    current: TableSchema, image: SourceSchema, accepted: SourceSchema, policy: SchemaPolicy
) -> Unfit | None:
    """Return why the table can't continue with the image, whatever columns both have; None if it
    can.
    """
    why = (
        image_problem(current, accepted)
        or _unplaced(current, image, policy)
        or other_key(current, image)
        or refusal(accepted, policy)
    )
    return None if why is None else Unfit(*why)


def _unplaced(current: TableSchema, image: SourceSchema, policy: SchemaPolicy) -> Why | None:
    name = None if policy.goes_by_names else unplaced(current, image.fields)
    return None if name is None else (ParkCode.SCHEMA_CHANGE, policy_refusals.unplaced(name))


def _accepted_image(
    current: TableSchema, image: SourceSchema, policy: SchemaPolicy
) -> SourceSchema:
    """Return the image without the fields that the policy leaves out; it becomes `partial` if by
    the policy the columns that it lacks keep their values.
    """
    applied = policy.partial_images is PartialImages.APPLY and bool(image.omitted)
    image = in_any_order(image) if policy.goes_by_names else image
    image = replace(image, partial=image.partial or applied)
    if policy.add_column is not Behaviour.IGNORE or not current.columns:
        return image
    fields, omitted = (
        tuple(
            field
            for field in part
            if column_of(current, field) or (policy.follows_renames and formerly(current, field))
        )
        for part in (image.fields, image.omitted)
    )
    left_out = {field.name for field in image.fields} - {field.name for field in fields}
    partial = image.partial and bool(omitted)
    return replace(
        image, fields=fields, omitted=omitted, partial=partial, left_out=image.left_out | left_out
    )


def _has_key(current: TableSchema, image: SourceSchema) -> bool:
    """Whether the image's key is the table's, with the same types."""
    columns = [(column_of(current, field), field) for field in image.fields]
    return all(column is not None and accepts(column, field) for column, field in columns)


def _version_of(
    current: TableSchema, image: SourceSchema, presences: ColumnPresences | None
) -> int | None:
    """Return the latest version that the image has, or is between that one and the next: it has the
    columns of both, and no others. An image of a shard may lack any column.
    """
    for version in range(current.version, -1, -1):
        schemas = current.at(version), current.at(version + 1)
        had, following = (schema.by_source for schema in schemas)
        names = {known_as(field, *schemas) for field in image.fields}
        # A name may have gone to another column after a time without it.
        kept = {name for name in had.keys() & following if had[name].id == following[name].id}
        if (kept if presences is None else set[str]()) <= names <= had.keys() | following:
            met = {_column_of_values(schemas, field) for field in image.fields}
            # Both names of a renamed column may be known, but an image has only one of them.
            if None not in met and len({c.id for c in met if c is not None}) == len(image.fields):
                return version
    return None


def _differing(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None,
) -> Unfit | None:
    """Return a difference between the image and the table that the policy doesn't allow, if there
    is one.
    """
    if not current.columns:
        return None
    if image.partial:
        image = image.whole
    match = matched(current, image, policy, presences)
    declared = {field.name for field in image.omitted}
    omitted = [c.source_name for c in match.missing if c.source_name in declared]
    if omitted:
        return Unfit(*declared_yet_omitted(omitted))
    may_go = policy.keeps_renamed if match.maybe_renamed else policy.follows_drops
    if match.missing and not may_go:
        why = (
            policy_refusals.handed_on(match.handed_on)
            if match.handed_on
            else policy_refusals.gone(
                match.missing[0], match.new if match.maybe_renamed else (), policy.follows_renames
            )
        )
        return Unfit(ParkCode.SCHEMA_CHANGE, why)
    if match.maybe_renamed and policy.rename_column is not Behaviour.IGNORE:
        hidden = [column for column in match.missing if is_masked(column.source_type)]
        shown = [field for field in match.new if not is_masked(field.source_type)]
        if hidden and shown:
            return Unfit(ParkCode.SCHEMA_CHANGE, policy_refusals.unmasked(hidden[0], shown[0]))
    for field in image.fields:
        column = match.kept.get(field.name)
        if column is not None and followed_as(current, column, field, policy) is None:
            return Unfit(ParkCode.SCHEMA_CHANGE, policy_refusals.retyped(column, field))
    if match.new and not policy.adds:
        return Unfit(ParkCode.SCHEMA_CHANGE, policy_refusals.added(match.new[0]))
    return None
