"""Finds the types of columns, as Maxwell writes them, in its records of schema changes.

The DDL in these records takes precedence over declared types. A declared type is used

- if the records don't mention the table, such as before its first record;
- for a DECIMAL, BIT or FLOAT whose digits the records don't have, if it is of the same kind and
  differs from the type that a later statement gives the column: otherwise it would be the type
  after that statement, not the one before;
- for a TIME, if it says that the column holds only times of day, since Maxwell sends only these
  exactly;
- for a TINYINT, if it says that its values are true and false.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.ddl import DefinedColumn, SchemaHistory
from lakesplice.formats.events.ddl.columns import CHARACTERS
from lakesplice.formats.events.ddl.type_history import type_history
from lakesplice.formats.events.values.column_types import PartialType, TypeHistory, TypeVersion
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.model.names import TableName
from lakesplice.model.types import Primitive

SOURCE = "the topic of Maxwell's schema changes"
# MySQL's defaults, if a definition leaves them out.
_DECIMAL_LENGTH, _LENGTH = 10, 1
_NAMES = {
    **{
        whole + sign: (whole + sign).lower()
        for whole in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
        for sign in ("", " UNSIGNED")
    },
    "BOOLEAN": "tinyint", "DOUBLE": "double", "DOUBLE UNSIGNED": "double", "YEAR": "year",
    "DATE": "date", "TIMESTAMP": "timestamp", "TIME": "time", "ENUM": "enum", "SET": "set",
    "JSON": "json", "UUID": "string",
    **dict.fromkeys(CHARACTERS, "string"),
    **dict.fromkeys(
        ("VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "binary"
    ),
}  # fmt: skip
_KINDS = {"DECIMAL": (Primitive.DECIMAL,), "FLOAT": (Primitive.FLOAT, Primitive.DOUBLE)}
# Declared types that say more about a column than its definition.
_FINER = {("time", "time_of_day"), ("tinyint", "boolean")}
_TRUTHS = {"0": "false", "1": "true"}


def types_of(history: SchemaHistory, table: TableName) -> TypeHistory | None:
    """Return the types of a table's columns by its source's DDL; None if no DDL of it was read."""
    return type_history(history, table, type_of, SOURCE)


def type_of(column: DefinedColumn) -> DeclaredType | None:
    """Return the type of a column's values; None if they have no exact column type."""
    name = _declaration(column)
    try:
        return None if name is None else DeclaredType.parse(name)
    except ConfigurationError:
        return None  # a decimal with more digits than MySQL allows


def _declaration(column: DefinedColumn) -> str | None:
    type_, length = column.type, column.length
    if column.holds_bytes:
        return "binary"
    if type_ in ("FLOAT", "FLOAT UNSIGNED"):
        return "double" if column.is_wide_float else "float"
    if type_ in ("DECIMAL", "DECIMAL UNSIGNED"):
        return f"decimal({length or _DECIMAL_LENGTH},{column.scale or 0})"
    if type_ in ("BIT", "BINARY"):
        return f"{type_.lower()}({_LENGTH if length is None else length})"
    if type_ == "DATETIME":
        return f"datetime({length or 0})"
    return _NAMES.get(type_)


class KnownTypes:
    """The types of a table's columns at one position."""

    def __init__(
        self, declared: Mapping[str, DeclaredType], version: TypeVersion | None = None
    ) -> None:
        self.columns = dict(declared)
        self._gap = "" if version is None else version.gap
        self._untyped = {} if version is None else dict(version.untyped)
        # The table's columns; the declared ones if no DDL of it was read.
        self._present = set(declared)
        if version is None or version.gap:
            return
        self._present = version.columns.keys() | version.untyped.keys()
        for name, type_ in version.columns.items():
            self.columns[name] = _finest(type_, declared.get(name))
        for name, known in version.partly.items():
            if name in self.columns and (why := _contradicts(self.columns[name], known)):
                self._untyped[name] = why
                del self.columns[name]

    def omitted(self, names: Container[str]) -> Iterator[tuple[str, DeclaredType]]:
        """Yield the columns of the table that aren't among `names`."""
        for name, type_ in self.columns.items():
            if name not in names and name in self._present:
                yield name, type_

    def missing(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return which of some columns have no type."""
        return tuple(name for name in names if name not in self.columns)

    def why(self, names: Iterable[str]) -> str:
        """Return why columns have no type, as far as the DDL shows; may be empty."""
        reasons = [f"{name}: {self._untyped[name]}" for name in names if name in self._untyped]
        return "; ".join(filter(None, (self._gap, *reasons)))


def _finest(from_ddl: DeclaredType, declared: DeclaredType | None) -> DeclaredType:
    if declared is None or (from_ddl.written, declared.written) not in _FINER:
        return from_ddl
    return replace(declared, fill=_TRUTHS.get(from_ddl.fill or ""))


def _contradicts(declared: DeclaredType, known: PartialType) -> str:
    """Return why a declared type can't be that of a column whose DDL has only the kind; None if it
    can.
    """
    what = f"{known.kind}, whose digits are not known, and declared as {declared.written}"
    if known.kind == "BIT":
        fits = declared.written.startswith("bit(") or declared.type.kind is Primitive.BOOLEAN
    else:
        fits = declared.type.kind in _KINDS[known.kind]
    if not fits:
        return f"{what}, which isn't a type"
    if declared.written == known.next:
        return f"{what}, which only a later statement gave it; declare its earlier type"
    return ""
