"""The column types that `mysqlType` names, and how their values are written: always as texts.

    mysqlType                                 text                  column
    tinyint … bigint, unsigned ones, year     a number              as wide
    bigint unsigned, serial                   a number              decimal(20,0)
    decimal(p,s)                              its digits            decimal(p,s); string beyond 38
    float, double                             a number              float, double
    bit(1); bit(n)                            a number              boolean; binary
    char, varchar, text, json                 itself                string
    enum('a','b'), set('a','b')               a number              string
    binary, varbinary, blob                   ISO 8859-1            binary; binary(n) of n bytes
    geometry, point, …                        MySQL's bytes, so     binary
    date                                      as MySQL shows it     date
    datetime, timestamp                       as MySQL shows it     timestamp
    time                                      as MySQL shows it     long, microseconds

All of MySQL's names of types are known, in any spelling. For ENUM and SET, Canal and TiCDC send
what the binlog has: a member's number, or a SET's bits (`enumerated.py`). TiCDC leaves the
parameters out unless its `content-compatible` is set: a decimal without digits, a bit without
width, an ENUM or SET without members, and all types that aren't listed must be declared.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lakesplice.formats.events.ddl import DefinedColumn
from lakesplice.formats.events.ddl.columns import CHARACTERS
from lakesplice.formats.events.ddl.definitions import column_definition
from lakesplice.formats.events.ddl.tokens import Tokens, UnreadableError, statements
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Primitive

# Types whose text is used as it is, since it already distinguishes the column's type.
_AS_SPELT = re.compile(
    r"(?:tinyint|smallint|mediumint|int|integer|bigint|year|decimal|bit|float|double|char|varchar"
    r"|json|(?:tiny|medium|long)?(?:text|blob)|binary|varbinary|date|datetime|timestamp|time)"
    r"(?:\(\d+(?:,\d+)?\))?(?: (?:unsigned|zerofill))*"
)
_BITS_MAX, _DIGITS_MAX = 64, 65
_WHOLE = {
    "TINYINT": Primitive.BYTE, "TINYINT UNSIGNED": Primitive.SHORT, "BOOLEAN": Primitive.BYTE,
    "SMALLINT": Primitive.SHORT, "SMALLINT UNSIGNED": Primitive.INTEGER,
    "MEDIUMINT": Primitive.INTEGER, "MEDIUMINT UNSIGNED": Primitive.INTEGER,
    "INT": Primitive.INTEGER, "INT UNSIGNED": Primitive.LONG, "BIGINT": Primitive.LONG,
    "YEAR": Primitive.INTEGER,
}  # fmt: skip
_GEOMETRIES = (
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
    "GEOMETRYCOLLECTION", "GEOMCOLLECTION",
)  # fmt: skip
_OTHERS: dict[str, tuple[Primitive, Encoding]] = {
    **dict.fromkeys(("DOUBLE", "DOUBLE UNSIGNED"), (Primitive.DOUBLE, Encoding.FLOAT_TEXT)),
    **dict.fromkeys((*CHARACTERS, "JSON"), (Primitive.STRING, Encoding.PLAIN)),
    **dict.fromkeys(("BINARY", "VARBINARY"), (Primitive.BINARY, Encoding.LATIN1_TEXT)),
    **{
        f"{s}BLOB": (Primitive.BINARY, Encoding.LATIN1_TEXT) for s in ("TINY", "", "MEDIUM", "LONG")
    },
    **dict.fromkeys(_GEOMETRIES, (Primitive.BINARY, Encoding.GEOMETRY_TEXT)),
    "DATE": (Primitive.DATE, Encoding.DATE_TEXT),
    **dict.fromkeys(("DATETIME", "TIMESTAMP"), (Primitive.TIMESTAMP, Encoding.DATETIME_TEXT)),
    "TIME": (Primitive.LONG, Encoding.TIME_TEXT),
}
_ENUMERATED = {"ENUM": Encoding.ENUM_TEXT, "SET": Encoding.SET_TEXT}
_BIG = ColumnType(Primitive.DECIMAL, 20, 0)
_Known = tuple[ColumnType, Encoding]


@lru_cache(maxsize=4096)
def cell_of(name: str, mysql_type: str) -> Cell | None:
    """Return the column `name` with a type of `mysqlType`; None if the text isn't exact enough."""
    column = _column(mysql_type)
    known = _type_and_encoding(column) if column is not None else None
    if column is None or known is None:
        return None
    # TiCDC may leave the length out; it doesn't remove zeros.
    width = (column.length or 0) if column.type == "BINARY" else 0
    labels = column.members if column.type in _ENUMERATED else ()
    source_type = f"canal:{_spelt(mysql_type, column)}"
    return Cell(name, *known, source_type, width=width, labels=labels)


def _column(mysql_type: str) -> DefinedColumn | None:
    try:
        (words,) = statements(f"`v` {mysql_type}")
        return column_definition(Tokens(words)).column
    except (UnreadableError, ValueError):
        return None


def _spelt(mysql_type: str, column: DefinedColumn) -> str:
    """Return the same text for all spellings of a type."""
    text = mysql_type.strip().lower()
    if _AS_SPELT.fullmatch(text) and not _is_wide(column):
        return text
    name, _, sign = column.type.lower().partition(" ")
    inside = [str(number) for number in (column.length, column.scale) if number is not None]
    if column.members:
        inside = ["'" + member.replace("'", "''") + "'" for member in column.members]
    if _is_wide(column):
        name, sign, inside = "wide_decimal", "", [str(column.length), str(column.scale or 0)]
    return name + (f"({','.join(inside)})" if inside else "") + (f" {sign}" if sign else "")


def _is_wide(column: DefinedColumn) -> bool:
    return column.type.startswith("DECIMAL") and (column.length or 0) > DECIMAL_PRECISION_MAX


def _type_and_encoding(column: DefinedColumn) -> _Known | None:
    type_ = column.type
    if column.charset == "binary":
        return None
    if type_ in _WHOLE:
        return ColumnType(_WHOLE[type_]), Encoding.INTEGER_TEXT
    if type_ == "BIGINT UNSIGNED":
        return _BIG, Encoding.DECIMAL_TEXT
    if type_ in ("DECIMAL", "DECIMAL UNSIGNED"):
        return _decimal(column.length or 0, column.scale or 0)
    if type_ == "BIT":
        return _bits(column.length or 0)
    if type_ in ("FLOAT", "FLOAT UNSIGNED"):
        kind = Primitive.DOUBLE if column.is_wide_float else Primitive.FLOAT
        return ColumnType(kind), Encoding.FLOAT_TEXT
    if type_ in _ENUMERATED:
        return (ColumnType(Primitive.STRING), _ENUMERATED[type_]) if column.members else None
    if type_ not in _OTHERS:
        return None
    kind, encoding = _OTHERS[type_]
    return ColumnType(kind), encoding


def _decimal(precision: int, scale: int) -> _Known | None:
    if not 1 <= precision <= _DIGITS_MAX or scale > precision:
        return None
    if precision > DECIMAL_PRECISION_MAX:
        return ColumnType(Primitive.STRING), Encoding.WIDE_DECIMAL_TEXT
    return ColumnType(Primitive.DECIMAL, precision, scale), Encoding.DECIMAL_TEXT


def _bits(width: int) -> _Known | None:
    if width == 1:
        return ColumnType(Primitive.BOOLEAN), Encoding.BOOLEAN_TEXT
    return (ColumnType(Primitive.BINARY), Encoding.BITS_TEXT) if 1 < width <= _BITS_MAX else None


def declared_cell(name: str, declared: DeclaredType) -> Cell:
    """Return the column `name` with a declared type, whose values are written as texts."""
    kind, written = declared.type.kind, declared.written
    encoding = {
        Primitive.DECIMAL: Encoding.DECIMAL_TEXT,
        Primitive.BOOLEAN: Encoding.BOOLEAN_TEXT,
        Primitive.FLOAT: Encoding.FLOAT_TEXT,
        Primitive.DOUBLE: Encoding.FLOAT_TEXT,
        Primitive.STRING: Encoding.PLAIN,
        Primitive.BINARY: Encoding.BITS_TEXT
        if written.startswith("bit(")
        else Encoding.LATIN1_TEXT,
        Primitive.DATE: Encoding.DATE_TEXT,
        Primitive.TIMESTAMP: Encoding.DATETIME_TEXT,
    }.get(kind, Encoding.INTEGER_TEXT)
    if declared.encoding is Encoding.GEOMETRY:
        encoding = Encoding.GEOMETRY_TEXT
    if written in ("time", "time_of_day"):
        encoding = Encoding.TIME_TEXT
    by_spelling = declared.width or encoding in (Encoding.TIME_TEXT, Encoding.BITS_TEXT)
    source_type = f"declared:{written if by_spelling else declared.name}"
    return Cell(name, declared.type, encoding, source_type, width=declared.width)
