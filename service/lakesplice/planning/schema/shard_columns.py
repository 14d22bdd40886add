"""What the images of a shard show of its own columns: which it dropped, which it added in another
way.

A table with shards has the columns that any of them has, and its schema versions have no position
in any shard's order. So an image that lacks a column may be from before its own shard had it, or
the shard never had it. But above a position where the same source had the column, the image shows a
drop, which the table's policy judges. The column isn't hidden, since other shards still have it.

A column that a shard adds again is another one, while rows that didn't change since have the values
of the old one. A default that differs from the one that the table's rows got is wrong for this
shard's rows. Both park the topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.model.column_values import fill_value, promoted
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.progress.column_presence import ColumnPresence, ColumnPresences, united
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.schema import policy_refusals
from lakesplice.planning.schema.missing_columns import Why, declared_yet_omitted
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.partition_columns import dropped


@dataclass(frozen=True)
class FittingChanges:
    """Changes of one schema that fits: the indexes of their records, their positions, and the
    columns of the table that their images have.
    """

    schema: SourceSchema
    mapping: Mapping[str, Column]
    rows: Integers
    file: Integers
    offset: Integers

    @cached_property
    def ids(self) -> frozenset[int]:
        """The ids of the columns that the images have."""
        return frozenset(column.id for column in self.mapping.values())

    @cached_property
    def ends(self) -> tuple[Position, Position]:
        """The lowest and the highest position."""
        low, high = int(self.file.min()), int(self.file.max())
        first, last = (self.offset[self.file == file] for file in (low, high))
        return Position(low, int(first.min())), Position(high, int(last.max()))

    def from_on(self, position: Position) -> FittingChanges | None:
        """Return the changes at or above a position; None if there are none."""
        late = self.file > position.file
        late |= (self.file == position.file) & (self.offset >= position.offset)
        if not late.any():
            return None
        return replace(self, rows=self.rows[late], file=self.file[late], offset=self.offset[late])


@dataclass(frozen=True, slots=True)
class ObservedColumn:
    """What a partition's images showed of a column: its presence by all that was known there, and
    the highest positions of an image with it and of one without it.
    """

    presence: ColumnPresence | None
    last: Position | None = None
    lacked: Position | None = None

    def then(self, other: ObservedColumn) -> ObservedColumn:
        """Return what both observed; the other one came later."""
        return ObservedColumn(
            other.presence or self.presence,
            _highest(self.last, other.last),
            _highest(self.lacked, other.lacked),
        )


@dataclass(frozen=True)
class ShardVerdict:
    """The verdict on images of a shard: where to stop, and what each column of the table showed."""

    stops: tuple[tuple[int, Why], ...]
    observed_columns: Mapping[int, ObservedColumn]


def judge(
    schema: TableSchema,
    images: Sequence[FittingChanges],
    known: ColumnPresences,
    policy: SchemaPolicy,
) -> ShardVerdict:
    """Judge images of one source by what is `known` of its columns, and by what they show
    themselves.

    A record to stop at comes with the reason; the first one counts.
    """
    first = [dict.fromkeys(image.ids, ColumnPresence(image.ends[0])) for image in images]
    presences = united(known, *first)
    stops = [*_other_defaults(schema, images, known, presences, policy)]
    for image in images:
        for number in presences.keys() - image.ids:
            column = schema.by_id.get(number)
            late = image.from_on(presences[number].first)
            if column is None or late is None or _is_omitted(image.schema, column):
                continue
            why = (
                dropped(column)
                if column.name in schema.partitioned_by
                else _drop_refused(column, late, presences, policy)
            )
            if why is None:
                presences[number] = presences[number].united(
                    ColumnPresence(presences[number].first, late.ends[0])
                )
            else:
                stops.append((int(late.rows[0]), why))
    for image in images:
        for column in image.mapping.values():
            gone = presences[column.id].gone
            back = None if gone is None else image.from_on(gone)
            if back is not None:
                why = (ParkCode.SCHEMA_CHANGE, policy_refusals.came_back(column))
                stops.append((int(back.rows[0]), why))
    observed_columns: dict[int, ObservedColumn] = {}
    for image in images:
        high = image.ends[1]
        sides = {i: (high, None) if i in image.ids else (None, high) for i in schema.by_id}
        seen = {i: ObservedColumn(presences.get(i), *side) for i, side in sides.items()}
        observed_columns = observed_after(observed_columns, seen)
    return ShardVerdict(tuple(stops), observed_columns)


def observed_after(
    before: Mapping[int, ObservedColumn], now: Mapping[int, ObservedColumn]
) -> dict[int, ObservedColumn]:
    """Return what both observed; `now` came later."""
    both = {i: before[i].then(one) if i in before else one for i, one in now.items()}
    return {**before, **both}


def presences_after(
    known: ColumnPresences, several: Sequence[Mapping[int, ObservedColumn]]
) -> dict[int, ColumnPresence]:
    """Return what is known of a source's columns after what its partitions observed."""
    shown = [
        {i: one.presence for i, one in observed_columns.items() if one.presence}
        for observed_columns in several
    ]
    return united(known, *shown)


def judged_the_same(
    after: ColumnPresences, several: Sequence[Mapping[int, ObservedColumn]]
) -> bool:
    """Whether each partition judged its images as it would have with the knowledge of all of
    them.
    """
    return all(
        _same_side(one.lacked, one.presence.first if one.presence else None, after[number].first)
        and _same_side(one.last, one.presence.gone if one.presence else None, after[number].gone)
        for observed_columns in several
        for number, one in observed_columns.items()
        if number in after
    )


def _same_side(met: Position | None, known: Position | None, now: Position | None) -> bool:
    if met is None or now is None or met < now:
        return True
    return known is not None and known <= met


def _highest(*several: Position | None) -> Position | None:
    return max((position for position in several if position is not None), default=None)


def _is_omitted(image: SourceSchema, column: Column) -> bool:
    return image.partial and any(field.name == column.source_name for field in image.omitted)


def _drop_refused(
    column: Column, late: FittingChanges, presences: ColumnPresences, policy: SchemaPolicy
) -> Why | None:
    """Return why the source's drop of a column isn't followed; None if it is."""
    if any(field.name == column.source_name for field in late.schema.omitted):
        return declared_yet_omitted([column.source_name])
    if presences[column.id].gone is not None or not column.source_name:
        return None
    low = late.ends[0]
    new = [
        field
        for field in late.schema.fields
        if field.name in late.mapping and presences[late.mapping[field.name].id].first >= low
    ]
    may_go = policy.keeps_renamed if new else policy.follows_drops
    return None if may_go else (ParkCode.SCHEMA_CHANGE, policy_refusals.gone(column, new))


def _other_defaults(
    schema: TableSchema,
    images: Sequence[FittingChanges],
    known: ColumnPresences,
    presences: ColumnPresences,
    policy: SchemaPolicy,
) -> Iterator[tuple[int, Why]]:
    """Yield records that show a column with a default that differs from the one that the shard's
    existing rows have in the table.
    """
    if not policy.fills:
        return
    for image in images:
        for field in image.schema.fields:
            column = image.mapping.get(field.name)
            if column is None or column.id in known or column.name in schema.key:
                continue
            if column.source_name in schema.left_out or _is_default(column, field):
                continue
            first = presences[column.id].first
            earlier = (one for one in images if column.id not in one.ids)
            if known or any(one.ends[0] < first for one in earlier):
                why = (ParkCode.SCHEMA_CHANGE, policy_refusals.other_default(column, field))
                yield int(image.rows[0]), why


def _is_default(column: Column, field: SourceField) -> bool:
    """Whether a field's default is the value that existing rows have in its column."""
    if field.fill is None or column.fill is None or field.type is None:
        return field.fill is None and column.fill is None
    own = pa.array([fill_value(field.fill, field.type)])
    there = fill_value(column.fill, column.type)
    return bool(promoted(own, column.type.arrow)[0].equals(there))
