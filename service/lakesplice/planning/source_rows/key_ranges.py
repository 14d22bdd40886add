"""Ranges of a table's key in the server's order.

Each server has its own order (collations, signs, ENUMs by their number). So the ends of a range are
values that the server returned, written into SQL exactly; this code never compares them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lakesplice.planning.source_rows.columns import DatabaseColumn, Unreadable, octets, quoted

# A bound's texts, one per column of the key, as `bound_sql` returns them.
Bound = tuple[str, ...]


class _Form(StrEnum):
    NUMBER = "number"
    PLACE = "place"  # a member of an ENUM or SET, by its number
    CHARACTERS = "characters"
    OCTETS = "octets"
    QUOTED = "quoted"


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key: its name in SQL, and how its values are written."""

    sql: str
    form: _Form
    charset: str = ""
    collation: str = ""

    @property
    def compared(self) -> str:
        """The expression that is compared with a constant; an ENUM as a number, since its texts
        have another order.
        """
        return f"({self.sql}+0)" if self.form is _Form.PLACE else self.sql

    @property
    def bound(self) -> str:
        """The expression that returns a value's text."""
        if self.form in (_Form.NUMBER, _Form.PLACE):
            return f"{self.sql}+0"
        if self.form is _Form.QUOTED:
            return f"cast({self.sql} as char)"
        return f"hex({self.sql})"

    def constant(self, text: str) -> str:
        """Return the SQL constant of a value's text."""
        if self.form in (_Form.NUMBER, _Form.PLACE):
            return text
        if self.form is _Form.QUOTED:
            return f"'{text}'"
        value = octets(bytes.fromhex(text))
        if self.form is _Form.CHARACTERS:
            return f"_{self.charset} {value} collate {self.collation}"
        return value


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The rows whose keys are above `after` and not above `upto`; None means no bound."""

    after: Bound | None = None
    upto: Bound | None = None


_NUMBERS = frozenset(
    (*(name + sign for name in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL")
       for sign in ("", " UNSIGNED")), "YEAR", "BIT")
)  # fmt: skip
_QUOTED = frozenset(("DATE", "DATETIME", "TIMESTAMP", "TIME", "UUID"))
_CHARACTERS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
_OCTETS = frozenset(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"))


def key_columns(
    key: Sequence[str], columns: Mapping[str, DatabaseColumn]
) -> tuple[KeyColumn, ...] | Unreadable:
    """Return the key's columns for reading in ranges, or a text that names one that can't be
    used.
    """
    found = []
    for name in key:
        column = _key_column(columns[name])
        if column is None:
            return Unreadable(
                name,
                f"a key of {columns[name].type} has no order in which its table can be read "
                f"in chunks",
            )
        found.append(column)
    return tuple(found)


def bound_sql(key: Sequence[KeyColumn]) -> str:
    """Return the expressions that read a key's bound, one per column."""
    return ",".join(column.bound for column in key)


def order_sql(key: Sequence[KeyColumn]) -> str:
    """Return the ORDER BY list of a key."""
    return ",".join(column.sql for column in key)


def range_sql(key: Sequence[KeyColumn], rows: KeyRange) -> str:
    """Return the SQL condition for a range's rows; `1` if it has no bounds."""
    parts = []
    if rows.after is not None:
        parts.append(_beyond(key, rows.after, ">", ">"))
    if rows.upto is not None:
        parts.append(_beyond(key, rows.upto, "<", "<="))
    return " and ".join(parts) or "1"


def _beyond(key: Sequence[KeyColumn], bound: Bound, sign: str, last: str) -> str:
    """Compare column by column, since optimizers don't use an index range for a comparison of
    rows.
    """
    column, value = key[0], key[0].constant(bound[0])
    if len(key) == 1:
        return f"{column.compared}{last}{value}"
    rest = _beyond(key[1:], bound[1:], sign, last)
    strictly, or_equal = f"{column.compared}{sign}{value}", f"{column.compared}{sign}={value}"
    return f"({or_equal} and ({strictly} or ({column.compared}={value} and {rest})))"


def _key_column(column: DatabaseColumn) -> KeyColumn | None:
    defined, name = column.defined, quoted(column.name)
    of = None if defined is None else defined.type
    if of in _NUMBERS:
        return KeyColumn(name, _Form.NUMBER)
    if of in ("ENUM", "SET") and column.charset and column.collation:
        return KeyColumn(name, _Form.PLACE, column.charset, column.collation)
    if of in _QUOTED:
        return KeyColumn(name, _Form.QUOTED)
    if of in _OCTETS or column.charset == "binary":
        return KeyColumn(name, _Form.OCTETS)
    if of in _CHARACTERS and column.charset and column.collation:
        return KeyColumn(name, _Form.CHARACTERS, column.charset, column.collation)
    return None
