"""Table schemas: columns with identities, the key, and the history of versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from lakesplice.model.names import (
    COLUMN_POSITIONS,
    HISTORY_POSITION,
    IS_DELETED,
    POSITION_FILE,
    POSITION_OFFSET,
    ROW_DIGEST,
    SOURCE_TS,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.types import ColumnType, Primitive

SYSTEM_FIELDS: tuple[pa.Field, ...] = (
    pa.field(POSITION_FILE, pa.int64(), nullable=False),
    pa.field(POSITION_OFFSET, pa.int64(), nullable=False),
    pa.field(ROW_DIGEST, pa.int64()),
    pa.field(IS_DELETED, pa.bool_(), nullable=False),
    pa.field(SOURCE_TS, pa.timestamp("us", tz="UTC")),
)


# How the source types begin of columns that the source doesn't have
# (`planning/shape/metadata_columns.py`, `planning/shape/computing`).
OF_CHANGE, OF_TOPIC, COMPUTED = "of-change:", "of-topic:", "computed:"


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column. `id` is never reused: a column that is dropped and added again is a new one.

    `fill` is the value of rows that existed when it was added (`fill_text`), None for null. A
    `hidden` column is still in files but in no schema for readers: the source dropped it. With
    `copy_of` it has in each row the value of the column with that id, under another name that the
    source has or had for it.
    """

    id: int
    name: str
    source_name: str
    type: ColumnType
    source_type: str
    fill: str | None = None
    hidden: bool = False
    copy_of: int | None = None

    @property
    def identity(self) -> str:
        """The text that seeds the column's part of a row digest."""
        return f"{self.id}:{self.type.name}:{self.source_type}"

    @property
    def of_change(self) -> bool:
        """Whether its value belongs to the row's last change rather than to the row: it is in no
        digest, and every change sets it.
        """
        return self.source_type.startswith(OF_CHANGE)


@dataclass(frozen=True, slots=True)
class FormerColumn:
    """What a column was before schema version `version`; its identity stays the same."""

    version: int
    column: Column


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table in the order of their ids, which is the order in base files.

    `key` names the key columns in key order; it is empty only while the table has no columns yet.
    `versions[v]` is the number of columns in version v: columns are only ever added, at the end,
    wherever they are at the source. The last version is the present one. `since[v]` is the lowest
    known position of a change under version v (`BEFORE_ALL` if unknown): an image above it without
    the version's columns is not a late one from before they were added, but shows that they were
    dropped. In a table with shards it is `AFTER_ALL`, since nothing shows that there. In an
    `adopted` table, files of other writers are base files as they are: they may lack system
    columns, which are therefore nullable for readers of the log. `former` has the changes of
    columns, oldest first. A column without a source name no longer exists at the source: it keeps
    its values. `left_out` names columns that the source's images had and that aren't stored: the
    table doesn't know their values. `partitioned_by` names the columns, as stored, in which every
    base file has one value each; it never changes. With `bloom_filters` base files that are written
    have a bloom filter of each key column whose type can have one.
    """

    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    versions: tuple[int, ...] = (0,)
    since: tuple[Position, ...] = ()
    adopted: bool = False
    former: tuple[FormerColumn, ...] = ()
    left_out: frozenset[str] = frozenset()
    partitioned_by: tuple[str, ...] = ()
    bounded: frozenset[int] = frozenset()
    bloom_filters: bool = False

    def __post_init__(self) -> None:
        """Check that `since` has one position per version."""
        missing = len(self.versions) - len(self.since)
        object.__setattr__(self, "since", (*self.since, *[BEFORE_ALL] * missing))

    @property
    def version(self) -> int:
        """The present version, counted from zero; deltas are stamped with it."""
        return len(self.versions) - 1

    @property
    def keeps_versions(self) -> bool:
        """Whether the table is a history table: each change of a row is a row of its own."""
        return self.key[-1:] == (HISTORY_POSITION,)

    @property
    def versioned_key(self) -> tuple[str, ...]:
        """Of a history table the key columns that all versions of a row share."""
        return self.key[:-1]

    @cached_property
    def shard_key(self) -> tuple[str, ...]:
        """The key columns in which all rows of one topic have the same value."""
        own = {column.name for column in self.columns if column.source_type.startswith(OF_TOPIC)}
        return tuple(name for name in self.key if name in own)

    def stores_like(self, other: TableSchema) -> bool:
        """Whether rows are stored in the same way under both: they differ at most in `since`."""
        return replace(self, since=()) == replace(other, since=())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Stored names of the user's columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def shown(self) -> tuple[str, ...]:
        """Stored names of the user's columns that readers see."""
        return tuple(column.name for column in self.columns if not column.hidden)

    def at(self, version: int) -> TableSchema:
        """Return the schema as it stood at an earlier version."""
        versions = self.versions[: version + 1]
        columns = {column.id: column for column in self.columns[: versions[-1]]}
        for before in reversed(self.former):
            if before.version > version and before.column.id in columns:
                columns[before.column.id] = before.column
        return replace(
            self,
            columns=tuple(columns.values()),
            versions=versions,
            since=self.since[: version + 1],
            former=tuple(before for before in self.former if before.version <= version),
        )

    def precedes(self, later: TableSchema) -> bool:
        """Whether the columns of another schema developed from those of this one, or are the same.

        Schemas of one table may not: after a restore, a rebuild or an overwrite it can get columns
        with the identities of others.
        """
        return self.version <= later.version and later.at(self.version).columns == self.columns

    @cached_property
    def by_id(self) -> Mapping[int, Column]:
        """The columns by their identities."""
        return {column.id: column for column in self.columns}

    @cached_property
    def by_source(self) -> Mapping[str, Column]:
        """The column of each name at the source."""
        return {column.source_name: column for column in self.columns if column.source_name}

    def with_columns(
        self, added: Iterable[Column], key: tuple[str, ...], changed: Iterable[Column] = ()
    ) -> TableSchema:
        """Return the next version, with `added` at the end and `changed` in place of the columns
        with these ids.
        """
        now = {column.id: column for column in changed}
        version = self.version + 1
        former = (FormerColumn(version, column) for column in self.columns if column.id in now)
        columns = (*(now.get(column.id, column) for column in self.columns), *added)
        versions = (*self.versions, len(columns))
        return replace(
            self,
            columns=columns,
            key=key,
            versions=versions,
            former=(*self.former, *former),
        )

    def filled_since(self, version: int) -> tuple[Column, ...]:
        """The columns that were added with a fill since an earlier version."""
        return tuple(c for c in self.columns[self.versions[version] :] if c.fill is not None)

    def names_since(self, earlier: TableSchema) -> Mapping[str, str]:
        """The present name of each stored name that a column had in an earlier version."""
        now = {column.id: column.name for column in self.columns}
        return {column.name: now[column.id] for column in earlier.columns}

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """For each stored name that a column ever had, the present name of the last column that had
        it.
        """
        now = {column.id: column.name for column in self.columns}
        names = {before.column.name: now[before.column.id] for before in self.former}
        return names | {column.name: column.name for column in self.columns}

    def named_since(self, column: Column) -> Position:
        """The lowest known position of a change under the source's present name of a column of this
        version; `BEFORE_ALL` if unknown.
        """
        at = next(at for at, other in enumerate(self.columns) if other.id == column.id)
        version = next(v for v, count in enumerate(self.versions) if count > at)
        for before in self.former:
            if before.column.id == column.id and before.column.source_name != column.source_name:
                version = max(version, before.version)
        return self.since[version]

    @cached_property
    def has_handed_on(self) -> bool:
        """Whether a stored name belonged to one column and later to another."""
        had = {(c.name, c.id) for c in (*self.columns, *(f.column for f in self.former))}
        return len({name for name, _ in had}) < len(had)

    @cached_property
    def handed_on(self) -> frozenset[str]:
        """Names at the source that passed from one column to another of its type, in one
        version.
        """
        found: set[str] = set()
        for version in range(1, self.version + 1) if self.former else ():
            before, now = self.at(version - 1).by_source, self.at(version).by_source
            for name in before.keys() & now.keys():
                was, is_ = before[name], now[name]
                if was.id != is_.id and (was.type, was.source_type) == (is_.type, is_.source_type):
                    found.add(name)
        return frozenset(found)

    @cached_property
    def copies(self) -> Mapping[str, str]:
        """The copied column of each copy, by stored names."""
        of = self.by_id
        return {c.name: of[c.copy_of].name for c in self.columns if c.copy_of is not None}

    def copied_since(self, version: int) -> Mapping[str, str]:
        """The copies, as in `copies`, that were added since an earlier version."""
        new = {column.name for column in self.columns[self.versions[version] :]}
        return {name: of for name, of in self.copies.items() if name in new}

    @cached_property
    def filled(self) -> Mapping[int, Position]:
        """For each column with a fill, by id, the lowest known position of a change with a value of
        its own.
        """
        return {
            column.id: self.since[version]
            for version in range(1, len(self.versions))
            for column in self.columns[self.versions[version - 1] : self.versions[version]]
            if column.fill is not None
        }

    @cached_property
    def positions(self) -> Column | None:
        """The column with the column positions, in a table that takes partial images
        (`planning/rows/column_positions.py`); None in others.
        """
        found = (column for column in self.columns if column.source_type == _POSITIONS)
        return next(found, None)

    @staticmethod
    def positions_column(identity: int) -> Column:
        """Return the new column for column positions."""
        kind = ColumnType(Primitive.BINARY)
        return Column(identity, COLUMN_POSITIONS, "", kind, _POSITIONS, hidden=True)

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


# The source type of `TableSchema.positions`; no source has such a type.
_POSITIONS = "lakesplice:column-positions"

SYSTEM_TYPES: dict[str, ColumnType] = {
    POSITION_FILE: ColumnType(Primitive.LONG),
    POSITION_OFFSET: ColumnType(Primitive.LONG),
    ROW_DIGEST: ColumnType(Primitive.LONG),
    IS_DELETED: ColumnType(Primitive.BOOLEAN),
    SOURCE_TS: ColumnType(Primitive.TIMESTAMP),
}
