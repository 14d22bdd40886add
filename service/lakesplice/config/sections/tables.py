"""Settings of some tables: what their events don't say, and how their rows are stored."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, field_validator, model_validator

from lakesplice.config.options import ByName, Options
from lakesplice.config.quantities import Seconds
from lakesplice.config.sections.freshness import FreshnessSettings
from lakesplice.config.sections.kafka import pattern_of
from lakesplice.config.sections.schema_changes import (
    TableSchemaChanges,
)
from lakesplice.config.sections.section import DAY, Section
from lakesplice.config.sections.shaping import (
    ShapeSettings,
)
from lakesplice.errors import ConfigurationError
from lakesplice.model.choices import FormatName, MissingOffsets, NotInserts, TypeMapping
from lakesplice.model.names import APPENDED, SOURCE_POSITION, TableName
from lakesplice.planning.schema.policy import PartialImages
from lakesplice.planning.upkeep.retention import PURGE_SECONDS_MIN, RETENTION_SECONDS_MIN

if TYPE_CHECKING:
    from lakesplice.formats.events.values.declared_types import DeclaredType


class RowSettings(Section):
    """Whether the rows of some tables ever change, and when deleted rows are removed."""

    mode: Literal["upsert", "insert-only", "append", "history"] = Field(
        default="upsert",
        description="`insert-only` is for events that never change: a row whose key is already"
        " known is skipped, so no change ever waits for compaction. `append` is the"
        " same for tables without a key: every inserted row is a new row,"
        " identified by its position at the source, in the column"
        " `_source_position`. `history` keeps every version of every row (docs/history.md).",
    )
    not_inserts: NotInserts = Field(
        default=NotInserts.PARK,
        description="What happens with an update or delete if `mode` is `insert-only` or `append`:"
        " the table is parked, or the record becomes a dead letter.",
    )

    partial_images: PartialImages | None = Field(
        default=None,
        description="What happens with row images of these tables that lack columns; without it"
        " `partial_images` of the whole service applies.",
    )
    purge_after: Seconds | None = Field(
        default=None,
        ge=PURGE_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long ago a row of these tables must have been deleted to be removed"
        " for good; without it `purge.after` applies.",
    )

    @property
    def policy(self) -> NotInserts | None:
        """What happens to updates and deletes; None if they are applied, or kept as versions."""
        return self.not_inserts if self.mode in ("insert-only", "append") else None

    @property
    def keeps_versions(self) -> bool:
        """Whether each change of a row is kept as a row of its own."""
        return self.mode == "history"


def is_regex(match: str) -> bool:
    """Whether the tables are chosen by a regular expression instead of a glob."""
    return len(match) > 1 and match.startswith("/") and match.endswith("/")


def check_route(match: str, to: str) -> None:
    """Raise `ValueError` for a route that doesn't give `database.table`, or refers to missing
    groups.
    """
    parts = to.split(".")
    if len(parts) != 2 or not all(parts):
        raise ValueError("to must be database.table")
    expression = match[1:-1] if is_regex(match) else ""
    try:
        # A group is found, if only as an empty one, exactly where the expression has it.
        matched = re.fullmatch(f"(?:{expression})|", "")
        assert matched is not None, "the second alternative matches"
        matched.expand(to)
    except (re.error, IndexError) as error:
        raise ValueError(f"to has a group that match lacks: {error}") from None


def route(match: str, to: str, name: TableName) -> TableName:
    """Return the table that `name`, which `match` matches, is stored as."""
    matched = re.fullmatch(match[1:-1], str(name)) if is_regex(match) else None
    database, _, table = (to if matched is None else matched.expand(to)).partition(".")
    return TableName(database, table)


def declared_types(columns: Options) -> dict[str, DeclaredType]:
    """Return the declared types of columns; `ValueError` for an unknown type."""
    # The decoder takes a while to import and most configurations declare nothing.
    from lakesplice.formats.events.values.declared_types import declare

    try:
        return declare(columns)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


# Settings of other tables, and why history tables don't have them.
_NOT_OF_HISTORY = {
    "not_inserts": "updates and deletes are versions, too",
    "purge_after": "its rows are never deleted",
}


class HistoryBesideSettings(Section):
    """The history table beside a table of current rows."""

    to: str | None = Field(
        default=None,
        max_length=10_000,
        description="The history table, `database.table`, if it isn't named like the table of"
        r" current rows with `_history` at the end; `\1`, `\2` stand for groups as in `to`.",
    )


class TableSettings(RowSettings):
    """What the events of some tables don't say, and settings that apply only to some tables."""

    match: str = Field(
        min_length=1,
        max_length=10_000,
        description="Which tables the entry is for, by `database.table` at the source: a glob"
        " such as `shop.order_*`, or a regular expression between slashes such as"
        r" `/shop\.(orders|items)/`.",
    )
    read: bool = Field(default=True, description="Whether the topics of these tables are read.")
    to: str | None = Field(
        default=None,
        max_length=10_000,
        description="The table of the lake, `database.table`, if it isn't named like the"
        r" source's; `\1`, `\2` stand for the groups of a regular expression in"
        " `match`.",
    )
    format: FormatName | None = Field(
        default=None,
        description="Format of the change events; without it the format is recognised from the"
        " records.",
    )
    columns: ByName = Field(
        default=ByName(),
        description="Types of columns that nothing else gives, such as `id: bigint`"
        " (docs/types.md explains which type applies).",
    )
    type_mapping: tuple[TypeMapping, ...] = Field(
        default=(),
        description="Names of mappings that give columns other types than their own"
        " (docs/types.md). Choose them before the table is created: a column's type"
        " doesn't change afterwards.",
    )
    key: tuple[str, ...] = Field(
        default=(),
        max_length=64,
        description="Unique columns that identify a row; without it the source's key.",
    )
    whole_snapshots: bool = Field(
        default=True,
        description="Whether snapshots contain all rows: if so, rows that a new snapshot lacks"
        " are deleted; in a history table their last versions end.",
    )
    schema_changes: TableSchemaChanges | None = Field(
        default=None,
        description="How these tables follow schema changes; without it `schema_changes` of the"
        " whole service applies.",
    )
    shape: ShapeSettings | None = Field(
        default=None,
        description="Which columns these tables have and how they are masked (docs/shaping.md).",
    )
    priority: int = Field(
        default=0,
        ge=-100,
        le=100,
        description="Which tables are read first if not everything can be read at once: those with"
        " the highest number. Among equals, a table that is in its first load gives way"
        " (docs/operations.md).",
    )
    missing_offsets: MissingOffsets | None = Field(
        default=None,
        description="What happens if the broker no longer has records that these tables haven't"
        " read; without it `missing_offsets` of the whole service applies.",
    )
    freshness: FreshnessSettings | None = Field(
        default=None,
        description="How old the views of these tables may become before the tables count as late"
        " (docs/operations.md).",
    )
    change_feed: bool | None = Field(
        default=None,
        description="Whether other Delta readers get a change feed of these tables, with images of"
        " rows before and after each change (docs/change-feed.md). The feed of an existing table"
        " begins when this is set, and ends when it is set to false; without the setting the table"
        " stays as it is. Compaction then writes more.",
    )
    cluster_by: tuple[str, ...] = Field(
        default=(),
        max_length=8,  # the curve's limit
        description="Columns by which these tables are laid out, by their names in the table, so"
        " that queries that filter by them read few files (docs/layout.md). New files are laid out"
        " once they are a share of the table, `cluster.new_share_min`. After a change of the"
        " columns files that were laid out stay as they are; `lakesplice optimize --full` lays them"
        " out, too.",
    )
    also: tuple[Literal["iceberg", "history"], ...] = Field(
        default=(),
        max_length=2,
        description="What else these tables get: `iceberg` keeps an Iceberg table of the same"
        " base files in the catalog `iceberg.catalog` (docs/iceberg.md), and drops it once this is"
        " removed. `history` feeds a second table from the same topic, which keeps every version"
        " of every row (docs/history.md).",
    )
    history: HistoryBesideSettings = HistoryBesideSettings()
    retention: Seconds | None = Field(
        default=None,
        ge=RETENTION_SECONDS_MIN,
        le=3_650 * DAY,
        description="How long old versions of these tables stay readable; without it"
        " `log.retention` applies.",
    )

    @field_validator("cluster_by", "also")
    @classmethod
    def _different(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len({*value}) < len(value):
            raise ValueError("one of them is named twice")
        return value

    @field_validator("match")
    @classmethod
    def _compiles(cls, value: str) -> str:
        if is_regex(value):
            pattern_of(value[1:-1])
        return value

    @field_validator("columns")
    @classmethod
    def _declares(cls, value: Options) -> Options:
        if value:
            declared_types(value)
        return value

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Self:
        if self.to is not None:
            check_route(self.match, self.to)
        return self

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.mode == "append" and self.key:
            raise ValueError("a table with mode: append has no key; leave it out, or the mode")
        if SOURCE_POSITION in self.key:
            raise ValueError(f"{SOURCE_POSITION} is the key of mode: append, and of no other")
        return self

    @model_validator(mode="after")
    def _history(self) -> Self:
        if not self.keeps_versions:
            return self
        if taken := sorted(self.model_fields_set & _NOT_OF_HISTORY.keys()):
            raise ValueError(f"mode history has no {taken[0]}: {_NOT_OF_HISTORY[taken[0]]}")
        return self

    @model_validator(mode="after")
    def _history_beside(self) -> Self:
        if self.history.to is not None:
            if not self.has_history_beside:
                raise ValueError("history.to needs also: [history]")
            check_route(self.match, self.history.to)
            if self.history.to == (self.to or self.match):
                raise ValueError(
                    "history.to names the same table as to, or as match; choose another"
                )
        if self.has_history_beside and self.mode != "upsert":
            raise ValueError(f"also: [history] is for mode upsert, not for mode {self.mode}")
        return self

    @property
    def has_history_beside(self) -> bool:
        """Whether the topics of these tables feed history tables, too."""
        return "history" in self.also

    def target(self, name: TableName) -> TableName:
        """Return the lake's table for a table of the source."""
        return name if self.to is None else route(self.match, self.to, name)

    def history_target(self, name: TableName) -> TableName:
        """Return the history table beside it."""
        if self.history.to is not None:
            return route(self.match, self.history.to, name)
        current = self.target(name)
        return TableName(current.database, f"{current.table}_history")

    def of_history_beside(self) -> TableSettings:
        """Return the settings of the history table beside it: the same, but for those that only
        tables of current rows have.
        """
        others = {name: type(self).model_fields[name].default for name in _NOT_OF_HISTORY}
        return self.model_copy(update={**others, "mode": "history", "also": ()})

    @property
    def row_key(self) -> tuple[str, ...]:
        """The columns that identify rows; empty if the source's key does."""
        return APPENDED if self.mode == "append" else self.key

    def matches(self, table: TableName) -> bool:
        """Whether the entry is for `table`."""
        if is_regex(self.match):
            return re.fullmatch(self.match[1:-1], str(table)) is not None
        return fnmatch.fnmatchcase(str(table), self.match)
