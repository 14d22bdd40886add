"""Columns as MySQL's DDL defines them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.model.names import TableName

CHARACTERS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
"""MySQL's types of texts."""

# From this many binary digits on, MySQL stores a FLOAT as a DOUBLE.
_DOUBLE_DIGITS = 25


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column of a table of the source.

    `type` is MySQL's own name in capitals without its brackets, such as `DECIMAL` or `BIGINT
    UNSIGNED`; `length` and `scale` are the two numbers in brackets, None if the definition lacks
    them. `default` is the text of a constant, None if there is none or it isn't known. With
    `default_known` None means that the column has no default; otherwise the default is computed,
    counted or not stated. Without `digits_known` the content of the brackets isn't known: `length`
    and `scale` have no meaning.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    optional: bool = True
    default: str | None = None
    members: tuple[str, ...] = ()
    digits_known: bool = True
    default_known: bool = True

    @property
    def holds_bytes(self) -> bool:
        """Whether it was defined as a text, but its values are bytes: its charset is `binary`."""
        return self.type in CHARACTERS and self.charset == "binary"

    @property
    def is_wide_float(self) -> bool:
        """Whether it was defined as a FLOAT, but its values are DOUBLEs, as of `FLOAT(53)`.

        A number alone counts binary digits; of two numbers, as in `FLOAT(7,3)`, the first one
        counts decimal digits. Source: MySQL's manual, "Floating-Point Types".
        """
        digits = self.length if self.scale is None else None
        return self.type in ("FLOAT", "FLOAT UNSIGNED") and (digits or 0) >= _DOUBLE_DIGITS


@dataclass(frozen=True, slots=True)
class TableShown:
    """The table's columns before or after a change, as the connector that read the statement shows
    them.
    """

    table: TableName
    columns: tuple[DefinedColumn, ...]


@dataclass(frozen=True, slots=True)
class TableDefined:
    """The table has these columns from here on, and no others.

    `former` is the table's name before, where the statement renamed it; that name is then free.
    `origins` are as `TableAltered.origins`.
    """

    table: TableName
    columns: tuple[DefinedColumn, ...]
    key: tuple[str, ...] = ()
    former: TableName | None = None
    origins: Mapping[str, str | None] | None = None
    unless_there: bool = False


@dataclass(frozen=True, slots=True)
class TableLike:
    """The table is created with the columns of another."""

    table: TableName
    like: TableName
    unless_there: bool = False


@dataclass(frozen=True, slots=True)
class TableGone:
    """The table is dropped, or all tables of a database if `table` is None."""

    database: str
    table: str | None


@dataclass(frozen=True, slots=True)
class ColumnAdded:
    """A column is new; with `unless_there` the statement does nothing if the column exists."""

    column: DefinedColumn
    unless_there: bool = False


@dataclass(frozen=True, slots=True)
class ColumnGone:
    """A column is dropped, if it is there."""

    name: str
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class ColumnChanged:
    """A column gets another definition, and maybe another name."""

    name: str
    column: DefinedColumn
    if_there: bool = False


@dataclass(frozen=True, slots=True)
class ColumnRenamed:
    """A column gets another name and nothing else."""

    name: str
    to: str
    if_there: bool = False


Action = ColumnAdded | ColumnGone | ColumnChanged | ColumnRenamed


@dataclass(frozen=True, slots=True)
class TableAltered:
    """A statement's changes to a table's columns, and the table's new name, if it gets one."""

    table: TableName
    actions: tuple[Action, ...]
    to: TableName | None = None

    @property
    def origins(self) -> dict[str, str | None]:
        """Of columns that the statement names, under their names after it, the ones before it; None
        for those that are new. All names in a statement are those from before it.
        """
        origins: dict[str, str | None] = {}
        for action in self.actions:
            if isinstance(action, ColumnChanged):
                origins[action.column.name] = action.name
            elif isinstance(action, ColumnRenamed):
                origins[action.to] = action.name
            elif isinstance(action, ColumnAdded) and not action.unless_there:
                origins[action.column.name] = None
        return origins


@dataclass(frozen=True, slots=True)
class RowsMoved:
    """The statement removes rows from a table, or adds some, without events; `what`
    is the statement in short, such as `DROP PARTITION`.
    """

    table: TableName
    what: str


@dataclass(frozen=True, slots=True)
class ForeignKeyCascades:
    """The table has a foreign key by which the server changes or deletes its rows itself."""

    table: TableName


@dataclass(frozen=True, slots=True)
class TableUnread:
    """A statement about the table couldn't be read: its columns are unknown from here on.

    Without `table` it isn't even known which table the statement is about.
    """

    table: TableName | None
    reason: str


Statement = (
    TableDefined
    | TableLike
    | TableGone
    | TableAltered
    | RowsMoved
    | ForeignKeyCascades
    | TableUnread
)
