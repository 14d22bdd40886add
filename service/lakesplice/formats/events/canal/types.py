"""What `mysqlType` says of a column, and how its values are written: as texts, all of them.

    mysqlType                                 text                  column
    tinyint … bigint, unsigned ones, year     a number              as wide
    bigint unsigned                           a number              decimal(20,0)
    decimal(p,s)                              its digits            decimal(p,s)
    float, double                             a number              float, double
    bit(1); bit(n)                            a number              boolean; binary
    char, varchar, text, json                 itself                string
    binary, varbinary, blob                   ISO 8859-1            binary; binary(n) of n bytes
    date                                      as MySQL shows it     date
    datetime, timestamp                       as MySQL shows it     timestamp
    time                                      as MySQL shows it     long, microseconds

TiCDC leaves the parameters out unless its `content-compatible` is set. A decimal without scale, a
bit without width, an enum or set (numbers or names, by version) and whatever else isn't listed must
be declared.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lakesplice.formats.events.declared import DeclaredType
from lakesplice.formats.events.encoding import Cell, Encoding
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Kind

_TYPE = re.compile(r"([a-z]+)(?:\((\d+)(?:,(\d+))?\))?((?: (?:unsigned|zerofill))*)")
_BITS_MAX = 64
_WHOLE: dict[str, tuple[Kind, Kind]] = {
    "tinyint": (Kind.BYTE, Kind.SHORT),
    "smallint": (Kind.SHORT, Kind.INTEGER),
    "mediumint": (Kind.INTEGER, Kind.INTEGER),
    "int": (Kind.INTEGER, Kind.LONG),
    "integer": (Kind.INTEGER, Kind.LONG),
    "year": (Kind.INTEGER, Kind.INTEGER),
}
_OTHERS: dict[str, tuple[Kind, Encoding]] = {
    "float": (Kind.FLOAT, Encoding.FLOAT_TEXT),
    "double": (Kind.DOUBLE, Encoding.FLOAT_TEXT),
    **dict.fromkeys(("char", "varchar", "json"), (Kind.STRING, Encoding.PLAIN)),
    **{f"{size}text": (Kind.STRING, Encoding.PLAIN) for size in ("tiny", "", "medium", "long")},
    **dict.fromkeys(("binary", "varbinary"), (Kind.BINARY, Encoding.LATIN1_TEXT)),
    **{f"{s}blob": (Kind.BINARY, Encoding.LATIN1_TEXT) for s in ("tiny", "", "medium", "long")},
    "date": (Kind.DATE, Encoding.DATE_TEXT),
    **dict.fromkeys(("datetime", "timestamp"), (Kind.TIMESTAMP, Encoding.DATETIME_TEXT)),
    "time": (Kind.LONG, Encoding.TIME_TEXT),
}
_BIG = ColumnType(Kind.DECIMAL, 20, 0)


@lru_cache(maxsize=4096)
def cell_of(name: str, mysql_type: str) -> Cell | None:
    """Return the column `name` of a type as `mysqlType` has it; None if that isn't enough."""
    found = _TYPE.fullmatch(mysql_type.strip().lower())
    known = _known(found) if found else None
    if found is None or known is None:
        return None
    # TiCDC may leave the number out; it doesn't cut zeros.
    width = int(found[2] or 0) if found[1] == "binary" else 0
    return Cell(name, *known, f"canal:{mysql_type.strip().lower()}", width=width)


def _known(found: re.Match[str]) -> tuple[ColumnType, Encoding] | None:
    base, first, second = found[1], found[2], found[3]
    unsigned = bool(found[4])
    if base in _WHOLE:
        return ColumnType(_WHOLE[base][unsigned]), Encoding.INTEGER_TEXT
    if base == "bigint":
        return (
            (_BIG, Encoding.DECIMAL_TEXT)
            if unsigned
            else (
                ColumnType(Kind.LONG),
                Encoding.INTEGER_TEXT,
            )
        )
    if base == "decimal":
        precision, scale = int(first or 0), int(second or 0)
        if not 1 <= precision <= DECIMAL_PRECISION_MAX or scale > precision:
            return None
        return ColumnType(Kind.DECIMAL, precision, scale), Encoding.DECIMAL_TEXT
    if base == "bit":
        width = int(first or 0)
        if width == 1:
            return ColumnType(Kind.BOOLEAN), Encoding.BOOLEAN_TEXT
        known_width = 1 < width <= _BITS_MAX
        return (ColumnType(Kind.BINARY), Encoding.BITS_TEXT) if known_width else None
    if base not in _OTHERS:
        return None
    kind, encoding = _OTHERS[base]
    return ColumnType(kind), encoding


def declared_cell(name: str, declared: DeclaredType) -> Cell:
    """Return the column `name` of a declared type, written as a text."""
    kind, written = declared.type.kind, declared.written
    encoding = {
        Kind.DECIMAL: Encoding.DECIMAL_TEXT,
        Kind.BOOLEAN: Encoding.BOOLEAN_TEXT,
        Kind.FLOAT: Encoding.FLOAT_TEXT,
        Kind.DOUBLE: Encoding.FLOAT_TEXT,
        Kind.STRING: Encoding.PLAIN,
        Kind.BINARY: Encoding.BITS_TEXT if written.startswith("bit(") else Encoding.LATIN1_TEXT,
        Kind.DATE: Encoding.DATE_TEXT,
        Kind.TIMESTAMP: Encoding.DATETIME_TEXT,
    }.get(kind, Encoding.INTEGER_TEXT)
    if declared.encoding is Encoding.GEOMETRY:
        encoding = Encoding.GEOMETRY  # which no text is
    if written in ("time", "time_of_day"):
        encoding = Encoding.TIME_TEXT
    by_spelling = declared.width or encoding in (Encoding.TIME_TEXT, Encoding.BITS_TEXT)
    source_type = f"declared:{written if by_spelling else declared.name}"
    return Cell(name, declared.type, encoding, source_type, width=declared.width)
