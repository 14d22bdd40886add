"""Decides which columns of a table are compared with which columns of its source, and which can't
be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakesplice.model.names import SOURCE_POSITION
from lakesplice.model.position import Ordering
from lakesplice.model.progress.column_presence import is_there
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import COMPUTED, OF_CHANGE, OF_TOPIC, Column, TableSchema
from lakesplice.planning.schema.source_names import columns_at
from lakesplice.planning.shape.masks import is_masked
from lakesplice.planning.source_rows.canonical_texts import canonical_text_problem
from lakesplice.planning.source_rows.checksums import Compared
from lakesplice.planning.source_rows.columns import (
    DatabaseColumn,
    ReadColumn,
    Unreadable,
    read_column,
)
from lakesplice.planning.source_rows.key_ranges import KeyColumn, key_columns
from lakesplice.planning.sources.shards import in_shard
from lakesplice.storage.source.tables import SourceTable


@dataclass(frozen=True)
class ComparedTable:
    """A table of a lake and the table of its source. `stored` maps each compared column to its name
    in the lake. The source is read in the order of `range_key`. `not_compared` maps the columns
    that are left out to the reasons.

    `unread` are the lake's columns that come from the source and aren't compared: without their
    values a row can't be read whole.
    """

    source: SourceTable
    compared: Compared
    stored: Mapping[str, str]
    range_key: tuple[KeyColumn, ...]
    lake_key: tuple[KeyColumn, ...]
    not_compared: Mapping[str, str]
    shard: tuple[tuple[str, str], ...] = ()
    insert_only: bool = False
    unread: tuple[str, ...] = ()

    @property
    def by_key(self) -> bool:
        """Whether the source can find a row by the lake's key without reading the whole table."""
        return set(self.range_key) == set(self.lake_key)

    @property
    def to_read(self) -> list[str]:
        """The columns that are read in the lake: those that are compared, and those of the
        shard.
        """
        return [*self.stored.values(), *(name for name, _ in self.shard)]

    def of_source(self, rows: pa.Table) -> pa.Table:
        """Return the rows of the lake that belong to the source, with columns renamed as in the
        source.
        """
        if self.shard:
            rows = rows.filter(pa.array(in_shard(rows, self.shard)))
        names = {stored: name for name, stored in self.stored.items()}
        return rows.rename_columns([names.get(name, name) for name in rows.column_names])


@dataclass(frozen=True, slots=True)
class NotComparable:
    """Why a table can't be compared, and what to do."""

    reason: str


def compared_table(
    schema: TableSchema, state: SourceState, source: SourceTable, *, quick: bool, insert_only: bool
) -> ComparedTable | NotComparable:
    """Decide which columns of a table and its source are compared, or why none can be."""
    if state.ordering not in (None, Ordering.BINLOG):
        return NotComparable(
            f"its rows have no binlog positions; they are ordered by {state.ordering}"
        )
    at_source = {column.name: column for column in source.columns}
    shard = {name for name, _ in state.shard}
    of_source = columns_at(schema, at_source, shard=bool(shard))
    names = {column.id: name for name, column in of_source.items()}
    columns, left_out = _columns(schema, names, at_source, shard)
    key = _key(schema, names, shard, columns, left_out)
    if isinstance(key, NotComparable):
        return key
    if not source.key:
        return NotComparable("the database has no key in whose order the table could be read")
    if not any(set(one) <= {column.name for column in key} for one in source.unique):
        return NotComparable("the database doesn't keep the columns of the table's key unique")
    range_key = key_columns(source.key, at_source)
    lake_key = key_columns([column.name for column in key], at_source)
    if isinstance(range_key, Unreadable):
        return NotComparable(range_key.reason)
    if isinstance(lake_key, Unreadable):
        return NotComparable(lake_key.reason)
    return ComparedTable(
        source=source,
        compared=Compared(tuple(columns), key, quick),
        stored={column.name: of_source[column.name].name for column in columns},
        range_key=range_key,
        lake_key=lake_key,
        not_compared=left_out,
        shard=state.shard,
        insert_only=insert_only,
        unread=_unread(schema, state, {of_source[column.name].id for column in columns}),
    )


def _columns(
    schema: TableSchema,
    names_at_source: Mapping[int, str],
    at_source: Mapping[str, DatabaseColumn],
    shard: set[str],
) -> tuple[list[ReadColumn], dict[str, str]]:
    """Return the columns that are compared, and the others with the reasons."""
    columns: list[ReadColumn] = []
    left_out = dict.fromkeys(schema.left_out, "the table doesn't take it")
    for column in schema.columns:
        if column.hidden or column.name in shard or column.source_type.startswith(_NOT_OF_ROWS):
            continue
        read = _read(column, at_source.get(names_at_source.get(column.id, "")))
        if isinstance(read, str):
            left_out[column.source_name or column.name] = read
        else:
            columns.append(read)
    compared = {column.name for column in columns}
    # A name may be that of one column at the source and of another in the lake.
    left_out = {
        f"{name} in the lake" if name in compared else name: reason
        for name, reason in left_out.items()
    }
    lacking = dict.fromkeys(at_source.keys() - compared - left_out.keys(), "the table lacks it")
    return columns, {**left_out, **lacking}


def _unread(schema: TableSchema, state: SourceState, compared: set[int]) -> tuple[str, ...]:
    made, shard = (*_NOT_OF_ROWS, COMPUTED), dict(state.shard)
    return tuple(
        column.name
        for column in schema.columns
        if column.source_name and column.id not in compared and not column.hidden
        if column.name not in shard and not column.source_type.startswith(made)
        if is_there(state.own_presences, column.id)
    )


_NOT_OF_ROWS = (OF_CHANGE, OF_TOPIC)


def _read(column: Column, found: DatabaseColumn | None) -> ReadColumn | str:
    if column.source_type.startswith(COMPUTED):
        return "it is computed"
    if is_masked(column.source_type):
        return "it is masked"
    if column.copy_of is not None:
        return "it repeats a renamed column, which is compared"
    if not column.source_name:
        return "the source no longer has this column"
    if found is None:
        return "the database has no such column"
    read = read_column(found, column.type, column.source_type)
    return read.reason if isinstance(read, Unreadable) else canonical_text_problem(read) or read


def _key(
    schema: TableSchema,
    names_at_source: Mapping[int, str],
    shard: set[str],
    columns: Sequence[ReadColumn],
    left_out: Mapping[str, str],
) -> tuple[ReadColumn, ...] | NotComparable:
    sources = {c.name: names_at_source.get(c.id, c.source_name or c.name) for c in schema.columns}
    by_name = {column.name: column for column in columns}
    names = [sources[name] for name in schema.key if name not in shard]
    if schema.keeps_versions:
        return NotComparable(
            "it is a history table (mode: history), and the database keeps no earlier versions of"
            " its rows"
        )
    if SOURCE_POSITION in names:
        return NotComparable(
            "its rows are distinguished by their positions in the binlog (mode: append), which the"
            " database doesn't keep; to compare them, give the table a key"
        )
    lacking = {name: left_out.get(name, "it isn't known") for name in names if name not in by_name}
    if not names or lacking:
        return NotComparable(
            "its rows can't be found in the database, which needs the key's own values; a column"
            f" of the key can't be compared: {_reasons_text(lacking)}"
        )
    return tuple(by_name[name] for name in names)


def _reasons_text(left_out: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {reason}" for name, reason in sorted(left_out.items()))
