"""Table schemas: columns with identities, the key, and the history of versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lakesplice.model.names import (
    IS_DELETED,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.types import ColumnType, Kind

SYSTEM_FIELDS: tuple[pa.Field, ...] = (
    pa.field(POSITION_FILE, pa.int64(), nullable=False),
    pa.field(POSITION_OFFSET, pa.int64(), nullable=False),
    pa.field(ROW_DIGEST, pa.int64()),
    pa.field(IS_DELETED, pa.bool_(), nullable=False),
    pa.field(SOURCE_TS, pa.timestamp("us", tz="UTC")),
)


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column. `id` is never reused: a column dropped and added again is a new one."""

    id: int
    name: str
    source_name: str
    type: ColumnType
    source_type: str

    @property
    def identity(self) -> str:
        """What the column's part of a row digest is seeded with."""
        return f"{self.id}:{self.type.name}:{self.source_type}"


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table in the order of their identities, which is the order of base files.

    `key` names the key columns in key order; it is empty only while the table has no columns yet.
    `versions[v]` is how many columns version v had: columns are only ever added, at the end,
    whatever place they have at the source. The last version is the present one. `since[v]` is the
    lowest position known of a change under version v (`BEFORE_ALL` where none was given): an image
    above it that lacks the version's columns is no straggler from before they were added, but shows
    that they were dropped.
    """

    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    versions: tuple[int, ...] = (0,)
    since: tuple[Position, ...] = ()

    def __post_init__(self) -> None:
        """Let `since` have one position per version."""
        missing = len(self.versions) - len(self.since)
        object.__setattr__(self, "since", (*self.since, *[BEFORE_ALL] * missing))

    @property
    def version(self) -> int:
        """The present version, counted from zero; deltas are stamped with it."""
        return len(self.versions) - 1

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Stored names of the user's columns."""
        return tuple(column.name for column in self.columns)

    def at(self, version: int) -> TableSchema:
        """Return the schema as it stood at an earlier version."""
        versions = self.versions[: version + 1]
        since = self.since[: version + 1]
        return replace(self, columns=self.columns[: versions[-1]], versions=versions, since=since)

    def with_columns(self, added: Iterable[Column], key: tuple[str, ...]) -> TableSchema:
        """Return the next version with `added` at the end."""
        columns = (*self.columns, *added)
        return TableSchema(columns, key, (*self.versions, len(columns)), self.since)

    @cached_property
    def user_fields(self) -> tuple[pa.Field, ...]:
        """Arrow fields of the user's columns; key columns are required, all others nullable."""
        return tuple(
            pa.field(column.name, column.type.arrow, nullable=column.name not in self.key)
            for column in self.columns
        )

    @cached_property
    def arrow(self) -> pa.Schema:
        """The schema of base files: user columns, then system columns."""
        return pa.schema([*self.user_fields, *SYSTEM_FIELDS])


SYSTEM_TYPES: dict[str, ColumnType] = {
    POSITION_FILE: ColumnType(Kind.LONG),
    POSITION_OFFSET: ColumnType(Kind.LONG),
    ROW_DIGEST: ColumnType(Kind.LONG),
    IS_DELETED: ColumnType(Kind.BOOLEAN),
    SOURCE_TS: ColumnType(Kind.TIMESTAMP),
}


@dataclass(frozen=True, slots=True)
class SourceField:
    """A column as one change event describes it; `type` is None where no exact type is known."""

    name: str
    type: ColumnType | None
    source_type: str


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """The row image of one change event: its fields in the source's order, and the key's names."""

    fields: tuple[SourceField, ...]
    key: tuple[str, ...]
