"""Reads a table's description from a source database: its columns, its key, and its creation
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lakesplice.planning.source_rows.columns import DatabaseColumn, quoted

Row = tuple[bytes | None, ...]
# Runs a statement with parameters and returns its rows.
Ask = Callable[[str, Sequence[str]], list[Row]]

_COLUMNS = """
    select column_name, column_type, character_set_name, collation_name, is_nullable = 'YES',
        column_default
    from information_schema.columns where table_schema = %s and table_name = %s
    order by ordinal_position
"""
# The primary key, otherwise the first unique key without NULL, as InnoDB itself chooses.
_KEYS = """
    select index_name, column_name, nullable = 'YES'
    from information_schema.statistics
    where table_schema = %s and table_name = %s and non_unique = 0
    order by index_name <> 'PRIMARY', index_name, seq_in_index
"""
_MADE = """
    select create_time, table_rows from information_schema.tables
    where table_schema = %s and table_name = %s and table_type = 'BASE TABLE'
"""


_CASCADES = """
    select count(*) from information_schema.referential_constraints
    where constraint_schema = %s and table_name = %s
    and (delete_rule in ('CASCADE', 'SET NULL') or update_rule in ('CASCADE', 'SET NULL'))
"""
_NAMES = """
    select table_name from information_schema.tables
    where table_schema = %s and table_type = 'BASE TABLE' order by table_name
"""


@dataclass(frozen=True)
class SourceTable:
    """A table as the database describes it. `key` names the columns of the key by which its rows
    are ordered; it is empty without one. `made` changes when the table is re-created or emptied.
    `rows_about` is the server's estimate of the number of rows. `cascades` says whether foreign
    keys may change its rows. `unique` has the columns of every unique key without NULL.
    """

    database: str
    name: str
    columns: tuple[DatabaseColumn, ...]
    key: tuple[str, ...]
    made: str
    rows_about: int = 0
    cascades: bool = False
    unique: tuple[tuple[str, ...], ...] = ()

    @property
    def sql(self) -> str:
        """The table's name in SQL."""
        return f"{quoted(self.database)}.{quoted(self.name)}"

    def same_as(self, other: SourceTable | None) -> bool:
        """Return whether rows have the same meaning under both descriptions."""
        return other is not None and (self.columns, self.key, self.made) == (
            other.columns,
            other.key,
            other.made,
        )


def described(ask: Ask, database: str, name: str) -> SourceTable | None:
    """Return a table's description; None if it doesn't exist or our user may not see it."""
    of = [database, name]
    made = ask(_MADE, of)
    if not made:
        return None
    columns = tuple(
        DatabaseColumn(
            text_of(column),
            text_of(type_),
            None if charset is None else text_of(charset),
            None if collation is None else text_of(collation),
            optional == b"1",
            _default(default),
        )
        for column, type_, charset, collation, optional, default in ask(_COLUMNS, of)
    )
    ((created, rows),) = made
    unique = _unique(ask(_KEYS, of))
    ((cascading,),) = ask(_CASCADES, of)
    return SourceTable(
        database,
        name,
        columns,
        key=unique[0] if unique else (),
        made=text_of(created),
        rows_about=int(rows or 0),
        cascades=cascading != b"0",
        unique=unique,
    )


def table_names(ask: Ask, database: str) -> list[str]:
    """Return the names of a database's tables that our user may see, sorted."""
    return [text_of(name) for (name,) in ask(_NAMES, [database])]


def text_of(value: bytes | str | None) -> str:
    """Return a value of a result as text; empty for NULL."""
    return value.decode("utf-8") if isinstance(value, bytes) else value or ""


def _default(stored: bytes | None) -> str | None:
    """Return the text of a constant DEFAULT. MariaDB returns it as SQL, MySQL as plain text."""
    text = None if stored is None else text_of(stored)
    if text is None or text == "NULL":
        return None
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def _unique(rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
    keys: dict[str, list[str]] = {}
    nullable: set[str] = set()
    for index, column, may_be_null in rows:
        keys.setdefault(text_of(index), []).append(text_of(column))
        if may_be_null == b"1":
            nullable.add(text_of(index))
    return tuple(tuple(names) for index, names in keys.items() if index not in nullable)
