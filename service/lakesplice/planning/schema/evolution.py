"""Schema fit and evolution: what a change's row image means to the table it is for.

An image with the columns of the present or an earlier version fits: changes from before an ALTER
are still on their way after it. Otherwise the table's policy decides: the table gains a column, one
of its columns gets a wider type, or keeps its values. Where that would be a guess about the meaning
of stored rows (another key, a type that changes values), the table is parked and an operator
decides.

Whether a column may be null isn't part of a schema: stored columns outside the key are nullable.

An image may lack columns because they weren't in the source's row image (`binlog_row_image`), not
because they are gone. Where the event itself says so (`SourceSchema.partial`), or the table applies
partial images, so that the columns declared for it are those it has, it fits as the whole image
would, and tells of some columns only. Else it is an image like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from lakesplice.model.column_presence import ColumnPresence, ColumnPresences
from lakesplice.model.manifest import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.schema import Column, SourceField, SourceSchema, TableSchema
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
    known_as,
    unplaced,
)
from lakesplice.planning.schema.type_changes import accepts
from lakesplice.planning.shape.masks import is_masked
from lakesplice.planning.shape.partition_columns import partitioned, partitioning_changed


@dataclass(frozen=True, slots=True)
class Fits:
    """The image has the columns of `version`; `mapping` takes its names to stored ones.

    For an earlier version `until` is a position where the next one is known to have been in force:
    from there on the image isn't late but shows that the source went back to the earlier columns,
    and `fit_as_new` says what follows. The image may then have some of the next version's columns,
    too: several ALTERs may have passed in other partitions, or before the table was born, and were
    seen as one. Of a `partial` image `mapping` has the columns that it tells of; the others stay as
    they are.
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
    """The table can't continue with this image; `detail` names what differs and what to do."""

    code: ParkCode
    detail: str


SchemaFit: TypeAlias = Fits | Grows | Unfit


def fit(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy = DEFAULT_POLICY,
    presences: ColumnPresences | None = None,
) -> SchemaFit:
    """Decide how `image` stands to `current`, which has no columns while the table isn't born.

    The order of the image's fields and of its key doesn't matter; the table keeps the key order
    that it was born with. What is added has no position yet: `plan_evolution` gives it one.

    `presences` is, where the table has shards, what is known of the columns of the image's own:
    what others have it may lack, and what it had before `planning/schema/shard_columns.py` judges.
    """
    asked = partitioning_changed(current, policy.partition_by)
    if asked is not None:
        return Unfit(*asked)
    taken = _taken(current, image, policy)
    unfit = _unfit(current, image, taken, policy)
    if unfit is not None:
        return unfit
    if taken.key_alone and _has_key(current, taken):
        return _mapped(current, taken, current.version)
    version = _version_of(current, taken.whole if taken.partial else taken, presences)
    if version is None:
        return fit_as_new(current, image, policy, presences)
    positions = missing_positions(current, taken)
    if taken.left_out <= current.left_out and not positions:
        return _mapped(current, taken, version)
    noted = current.with_columns(positions, current.key)
    return Grows(replace(noted, left_out=current.left_out | taken.left_out))


def fit_as_new(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy = DEFAULT_POLICY,
    presences: ColumnPresences | None = None,
) -> SchemaFit:
    """Decide how an image stands to `current` that is of no earlier version, whatever it has.

    So is one of an earlier version from `Fits.until` on: the source went back, and what it took
    back holds other values than before.
    """
    taken = _taken(current, image, policy)
    unfit = _unfit(current, image, taken, policy) or _differing(current, taken, policy, presences)
    if unfit is not None:
        return unfit
    next_one = grown_schema(current, taken, policy, presences)
    grown = partitioned(current, next_one, policy.partition_by)
    return Grows(grown) if isinstance(grown, TableSchema) else Unfit(*grown)


def in_time(
    verdict: SchemaFit,
    current: TableSchema,
    image: SourceSchema,
    position: Position,
    policy: SchemaPolicy,
) -> SchemaFit:
    """Return the verdict on an image at a position: one that comes late doesn't make the schema
    grow at the cost of columns that the table has, which aren't gone for what is from before them.
    """
    since = current.since[-1]
    if not isinstance(verdict, Grows) or since in SINCE_UNKNOWN or position >= since:
        return verdict
    taken = _taken(current, image, policy)
    match = matched(current, taken.whole if taken.partial else taken, policy)
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
    """Return the schema after all sightings and how each image's schema stands to it.

    `seen` holds schemas of images with positions where they occurred, in any order: of each run of
    images of one schema the first and the last position at least. They are taken in the order of
    positions; what adds columns evolves the schema. Once a schema is found unfit it stays so, also
    for images at lower positions. `presences` is as for `fit`.
    """
    schema = current
    reached = 0
    verdicts: dict[SourceSchema, Fits | Unfit] = {}
    # Fewer columns first: should two schemas meet at one position, neither is a step back.
    for position, image in sorted(seen, key=lambda met: (met[0], len(met[1].fields))):
        if isinstance(verdicts.get(image), Unfit):
            continue
        verdict = fit(schema, image, policy, presences)
        if isinstance(verdict, Fits):
            late = verdict.until is not None and position >= verdict.until
            # An image of the later version may have been met lower than any known before.
            if late or verdict.version < reached:
                verdict = fit_as_new(schema, image, policy, presences)
            else:
                reached = verdict.version
        verdict = in_time(verdict, schema, image, position, policy)
        if isinstance(verdict, Grows):
            schema = replace(verdict.next, since=(*schema.since, position))
            reached = schema.version
            verdict = _mapped(schema, _taken(schema, image, policy), reached)
        if presences is not None and isinstance(verdict, Fits):
            presences = {c.id: ColumnPresence(position) for c in verdict.mapping.values()} | dict(
                presences
            )
        verdicts[image] = verdict
    return schema, {
        image: verdict
        if isinstance(verdict, Unfit)
        else _mapped(schema, _taken(schema, image, policy), verdict.version)
        for image, verdict in verdicts.items()
    }


def _mapped(schema: TableSchema, image: SourceSchema, version: int) -> Fits:
    present = {column.id: column for column in schema.columns}
    between = schema.at(version), schema.at(version + 1)
    met = ((field.name, _met(between, field)) for field in image.fields)
    mapping = {name: present[column.id] for name, column in met if column is not None}
    until = schema.since[version + 1] if version < schema.version else None
    return Fits(version, mapping, until, image.partial)


def _met(between: tuple[TableSchema, TableSchema], field: SourceField) -> Column | None:
    """Return the column of a version, or of the next one, that the field's values are of."""
    for schema in between:
        column = column_of(schema, field)
        if column is not None and accepts(column, field):
            return column
    return None


def _unfit(
    current: TableSchema, image: SourceSchema, taken: SourceSchema, policy: SchemaPolicy
) -> Unfit | None:
    """Return why the table can't continue with the image, whatever columns either has, if so."""
    why = (
        image_problem(current, taken)
        or _unplaced(current, image, policy)
        or other_key(current, image)
        or refusal(taken, policy)
    )
    return None if why is None else Unfit(*why)


def _unplaced(current: TableSchema, image: SourceSchema, policy: SchemaPolicy) -> Why | None:
    name = None if policy.goes_by_names else unplaced(current, image.fields)
    return None if name is None else (ParkCode.SCHEMA_CHANGE, policy_refusals.unplaced(name))


def _taken(current: TableSchema, image: SourceSchema, policy: SchemaPolicy) -> SourceSchema:
    """Return the image without the fields that the table leaves out by its policy, and `partial` if
    it is by the policy that what it lacks counts.
    """
    applied = policy.partial_images is PartialImages.APPLY and bool(image.omitted)
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
    left_out = _names(image) - {field.name for field in fields}
    partial = image.partial and bool(omitted)
    return replace(
        image, fields=fields, omitted=omitted, partial=partial, left_out=image.left_out | left_out
    )


def _has_key(current: TableSchema, image: SourceSchema) -> bool:
    """Whether the image's key is the table's, and of its types."""
    columns = [(column_of(current, field), field) for field in image.fields]
    return all(column is not None and accepts(column, field) for column, field in columns)


def _names(image: SourceSchema) -> set[str]:
    return {field.name for field in image.fields}


def _version_of(
    current: TableSchema, image: SourceSchema, presences: ColumnPresences | None
) -> int | None:
    """Return the latest version of which the image is, or between which and the next it lies: it
    has what both have, and nothing that neither has. That of a shard may lack whatever it likes.
    """
    for version in range(current.version, -1, -1):
        schemas = current.at(version), current.at(version + 1)
        had, following = (schema.by_source.keys() for schema in schemas)
        names = {known_as(field, *schemas) for field in image.fields}
        both = had & following if presences is None else set[str]()
        if both <= names <= had | following:
            met = {_met(schemas, field) for field in image.fields}
            # Of a column that was renamed both names may be known, but one image has one of them.
            if None not in met and len({c.id for c in met if c is not None}) == len(image.fields):
                return version
    return None


def _differing(
    current: TableSchema,
    image: SourceSchema,
    policy: SchemaPolicy,
    presences: ColumnPresences | None,
) -> Unfit | None:
    """Return which difference between the image and the table the policy doesn't allow, if any."""
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
