"""Columns of a table after a statement altered them, or a record showed them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakesplice.formats.events.ddl.columns import (
    Action,
    ColumnAdded,
    ColumnChanged,
    ColumnRenamed,
    DefinedColumn,
)

_TEXTS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
_BYTES = frozenset(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"))
# Both spellings of a type mean the same.
_ALIKE = {"BOOLEAN": "TINYINT", "FLOAT UNSIGNED": "FLOAT", "DOUBLE UNSIGNED": "DOUBLE",
          "DECIMAL UNSIGNED": "DECIMAL"}  # fmt: skip


def altered(
    columns: Mapping[str, DefinedColumn],
    born: Mapping[str, str],
    actions: Sequence[Action],
    mark: Callable[[], str],
) -> tuple[dict[str, DefinedColumn], dict[str, str]]:
    """Apply a statement's changes to columns; all its names are those from before it. `KeyError` if
    the columns can't have been these.
    """
    kept, came = dict(columns), []
    for action in actions:
        if isinstance(action, ColumnAdded):
            came.append((action.column, mark(), action.unless_there))
            continue
        name = stored_spelling(kept, action.name)
        if name is None:
            if stored_spelling(columns, action.name) is not None or not action.if_there:
                raise KeyError(action.name)
            continue
        former = kept.pop(name)
        if isinstance(action, ColumnChanged):
            came.append((action.column, born[name], False))
        elif isinstance(action, ColumnRenamed):
            came.append((replace(former, name=action.to), born[name], False))
    births = {name: born[name] for name in kept}
    for column, birth, unless_there in came:
        if stored_spelling(kept, column.name) is None:
            kept[column.name], births[column.name] = column, birth
        elif not unless_there:
            raise KeyError(column.name)
    return kept, births


def stored_spelling(columns: Mapping[str, DefinedColumn], name: str | None) -> str | None:
    """Return a column's name as the table has it; names don't differ by case."""
    if name is None or name in columns:
        return name
    return next((own for own in columns if own.lower() == name.lower()), None)


def agreed(described: DefinedColumn, shown: DefinedColumn) -> DefinedColumn:
    """Return the column that a statement described if it is the one that a record showed without
    its digits, with that one's name and character set; else the shown column.
    """
    if _kind(described) != _kind(shown):
        return shown
    return replace(described, name=shown.name, charset=shown.charset or described.charset)


def _kind(column: DefinedColumn) -> str:
    type_ = _ALIKE.get(column.type, column.type)
    if type_ in _BYTES or (type_ in _TEXTS and column.charset == "binary"):
        return "bytes"
    return "text" if type_ in _TEXTS else type_
