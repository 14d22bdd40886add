"""A column that a statement described and that a record showed without its digits."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.formats.events.ddl.columns import DefinedColumn

_TEXTS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
_BYTES = frozenset(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"))
# Both spellings of a type mean the same.
_ALIKE = {"BOOLEAN": "TINYINT", "FLOAT UNSIGNED": "FLOAT", "DOUBLE UNSIGNED": "DOUBLE",
          "DECIMAL UNSIGNED": "DECIMAL"}  # fmt: skip


def agreed(described: DefinedColumn, shown: DefinedColumn) -> DefinedColumn:
    """Return the described column if it is the shown one, with that one's name and character set;
    else the shown one.
    """
    if _kind(described) != _kind(shown):
        return shown
    return replace(described, name=shown.name, charset=shown.charset or described.charset)


def _kind(column: DefinedColumn) -> str:
    type_ = _ALIKE.get(column.type, column.type)
    if type_ in _BYTES or (type_ in _TEXTS and column.charset == "binary"):
        return "bytes"
    return "text" if type_ in _TEXTS else type_
