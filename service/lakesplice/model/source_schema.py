"""The schema of one row image: its columns at the source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lakesplice.model.position import Position
from lakesplice.model.types import ColumnType


@dataclass(frozen=True, slots=True)
class NamePeriod:
    """The range of positions in which a source's column has the name: from `first` on and before
    `until`; None: it still has it. `alone`: no other column ever has the name.
    """

    name: str
    first: Position
    until: Position | None = None
    alone: bool = False

    def has(self, position: Position) -> bool:
        """Whether the column has the name at the position."""
        return self.first <= position and (self.until is None or position < self.until)


@dataclass(frozen=True, slots=True)
class SourceField:
    """A column as one change event describes it; `type` is None if no exact type is known.

    `fill` is the value that the source stored in existing rows when it added the column
    (`fill_text`), None if that was null or is unknown. `formerly` are names that the source is
    known to have had for it before, the latest first, `later` those that it got since, the next
    first. `added_by_statement`: the source reported the statement that added the column, so it had
    no other names before those. These names don't make schemas differ, since they change without
    any change of a row.

    `tenures` do: for names that another column had or got as well, or that this column got back,
    where this column has them. None means that the field's name passed from one column to another,
    and that the change's position relative to this is unknown. `tenure` is the one of the change:
    with a name that the column had, lost and got back, images differ in nothing else.
    """

    name: str
    type: ColumnType | None
    source_type: str
    fill: str | None = field(default=None, compare=False)
    formerly: tuple[str, ...] = field(default=(), compare=False)
    later: tuple[str, ...] = field(default=(), compare=False)
    tenures: tuple[NamePeriod, ...] | None = ()
    tenure: NamePeriod | None = None
    added_by_statement: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The row image of one change event: its fields in the source's order, and the names of the
    key.

    `left_out` names columns of the source that were removed from the image, since the table doesn't
    store them. `problem` says why the configuration can't be applied to it; empty if it can.
    `lacking` has the columns that can't be computed for it, each with the missing column. `omitted`
    are columns without a value in the image although the source is said to have them: only by the
    configuration, or, if it is `partial`, by the event itself. `key_alone`: deletes of which the
    source sends only the key; they say nothing about other columns.
    """

    fields: tuple[SourceField, ...]
    key: tuple[str, ...]
    left_out: frozenset[str] = frozenset()
    problem: str = ""
    lacking: tuple[tuple[str, str], ...] = ()
    omitted: tuple[SourceField, ...] = ()
    partial: bool = False
    key_alone: bool = False

    @property
    def whole(self) -> SourceSchema:
        """The schema of an image without missing columns."""
        return replace(self, fields=(*self.fields, *self.omitted), omitted=(), partial=False)
