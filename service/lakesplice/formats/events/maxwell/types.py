"""How Maxwell writes a declared type.

    declared                       in Maxwell's JSON                    column
    decimal(p,s), bigint unsigned  a number, or its digits as text      decimal
    boolean, bit(1)                0 or 1, as TINYINT(1) is sent, too   boolean
    bit(n)                         a number                             binary, as from Debezium
    binary, blob                   base64                               binary
    binary(n)                      base64, without zeros at the end     binary, of n bytes
    date                           2024-02-29                           date
    datetime, timestamp            2024-02-29 23:59:59.123456           timestamp
    time_of_day                    23:59:59.123456                      long, microseconds
    set                            an array of texts                    string, joined by commas
    json                           nested JSON from MySQL, text from MariaDB   string
    all others                     as Debezium writes them

A TIME that is negative or longer than a day arrives as another time (-12:34:56 as 03:29:08), so
`time` is refused: `time_of_day` says that the column holds no such value.

A TIMESTAMP arrives as a wall clock of the time zone of Maxwell's Java, which must be UTC.
"""

from __future__ import annotations

from functools import lru_cache

from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.model.types import ColumnType, Primitive

_BY_KIND = {
    Primitive.DECIMAL: Encoding.DECIMAL_NUMBER,
    Primitive.BOOLEAN: Encoding.BOOLEAN_NUMBER,
    Primitive.DATE: Encoding.DATE_TEXT,
    Primitive.TIMESTAMP: Encoding.DATETIME_TEXT,
    Primitive.BINARY: Encoding.BASE64,
}
_BY_SPELLING = (Encoding.TIME_TEXT, Encoding.SET_LIST, Encoding.BITS_NUMBER)


def cell_of(name: str, declared: DeclaredType) -> Cell:
    """Return the column `name` of a declared type as Maxwell writes it."""
    type_, fill = declared.type, declared.fill
    return _cell(name, type_, declared.name, declared.written, fill, declared.width)


@lru_cache(maxsize=4096)
def _cell(
    name: str, type_: ColumnType, declared: str, written: str, fill: str | None, width: int
) -> Cell:
    encoding = _encoding(type_, written)
    spelt = written if width or encoding in _BY_SPELLING else declared
    return Cell(name, type_, encoding, f"declared:{spelt}", fill=fill, width=width)


def _encoding(type_: ColumnType, written: str) -> Encoding:
    if written == "time_of_day":
        return Encoding.TIME_TEXT
    if written == "set":
        return Encoding.SET_LIST
    if written.startswith("bit(") and type_.kind is Primitive.BINARY:
        return Encoding.BITS_NUMBER
    return _BY_KIND.get(type_.kind, Encoding.PLAIN)


def is_lossy(declared: DeclaredType) -> bool:
    """Whether Maxwell changes some values of a declared type."""
    return declared.written == "time"
