"""How a column of a source database is read, so that its text shows the exact value.

For each type of MySQL and MariaDB an expression returns the *canonical text* of a value, and a form
says how the text is parsed (`values.py`). The session is in UTC, its charset utf8mb4, its sql_mode
empty.

    type                              expression                                   form
    integers, DECIMAL, YEAR           the column (ZEROFILL: cast, without zeros)   digits
    FLOAT, DOUBLE                     its 8 bytes, little-endian, in hexadecimal   float bits
    DATE                              days since 1970                              days
    DATETIME, TIMESTAMP               microseconds since 1970                      micros
    TIME                              microseconds                                 time
    BIT(n)                            its number                                   digits
    CHAR to LONGTEXT, ENUM, SET       the text in utf8mb4                          characters
    JSON of MariaDB                   the same
    BINARY to LONGBLOB                hexadecimal                                  octets
    geometries                        the server's own bytes in hexadecimal        geometry

A FLOAT isn't read as text, since its text has only six of seven to nine digits. Invalid dates are
read as Debezium sends them. A DATE or DATETIME with a zero in its date is null, or the first moment
of 1970 if the column is NOT NULL. Such a TIMESTAMP is always the first moment of 1970. A YEAR of
zero is 1900. `tests/integration/
test_source_rows.py` compares each type with what a real connector sends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from lakesplice.formats.events.ddl import DefinedColumn, read_statements
from lakesplice.formats.events.ddl.columns import TableDefined
from lakesplice.model.types import WHOLE_NUMBERS, ColumnType, Primitive


class TextForm(StrEnum):
    """How a canonical text represents its value."""

    DIGITS = "digits"
    FLOAT_BITS = "float-bits"
    DAYS = "days"
    MICROS = "micros"
    TIME = "time"
    CHARACTERS = "characters"
    OCTETS = "octets"
    GEOMETRY = "geometry"


@dataclass(frozen=True, slots=True)
class DatabaseColumn:
    """A column as information_schema describes it; `type` is the server's own text, such as
    `decimal(12,2) unsigned`, `charset` and `collation` are None for a column without characters.
    `default` is the text of a constant or of a function; None if there is none.
    """

    name: str
    type: str
    charset: str | None = None
    collation: str | None = None
    optional: bool = True
    default: str | None = None

    @property
    def defined(self) -> DefinedColumn | None:
        """The column as a CREATE TABLE would define it; None if the type's text can't be parsed."""
        charset = f" character set {self.charset}" if self.charset == "binary" else ""
        null = "" if self.optional else " not null"
        (read,) = read_statements(f"create table t (c {self.type}{charset}{null})", "d")
        return read.columns[0] if isinstance(read, TableDefined) else None


@dataclass(frozen=True, slots=True)
class ReadColumn:
    """A column that can be read: `sql` returns its canonical text or NULL, `form` says how the text
    is parsed, `type` is the type of the value in the lake. `plain_sql` returns the value itself
    (bytes as they are, texts in the result's charset), without functions that have a limit of
    length.

    `bits` is n of a BIT(n), `scale` that of a DECIMAL, and `unit` the number of microseconds in a
    unit of the value that a TIME becomes. `optional` is whether the database may have NULL. `zero`
    is the text that also stands for values with a zero in the date, empty if there are none.
    """

    name: str
    sql: str
    form: TextForm
    type: ColumnType
    plain_sql: str
    bits: int = 0
    unit: int = 1
    scale: int = 0
    optional: bool = True
    zero: str = ""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why a column can't be read with the values that streaming gives it, and what to do."""

    column: str
    reason: str


_WHOLE = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT")
_WHOLE_TYPES = {name + sign for name in _WHOLE for sign in ("", " UNSIGNED")} | {"YEAR"}
_DECIMALS = ("DECIMAL", "DECIMAL UNSIGNED")
_FLOATS = ("FLOAT", "FLOAT UNSIGNED", "DOUBLE", "DOUBLE UNSIGNED")
_CHARACTERS = ("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET")
_OCTETS = ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")
_GEOMETRIES = (
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
    "GEOMETRYCOLLECTION", "GEOMCOLLECTION",
)  # fmt: skip
_MOMENTS = ("DATETIME", "TIMESTAMP")
_DIGIT_KINDS = (
    *WHOLE_NUMBERS,
    Primitive.DECIMAL,
    Primitive.FLOAT,
    Primitive.DOUBLE,
    Primitive.STRING,
)
# Under other settings of the connector a TIME or DATETIME is sent in another unit; its schema's
# name says so. Millions of nanoseconds have no fraction in MySQL, thousands of microseconds may.
_MILLIS = re.compile(r"io\.debezium\.time\.(Time|Timestamp)$|org\.apache\.kafka\.connect\.data\.")
_NANOS = re.compile(r"io\.debezium\.time\.NanoTime$")
_MILLIS_DIGITS, _MILLI, _NANO = 3, 1_000, -1_000
# The octets of a double in the well-known binary of a point follow byte order and type.
_FLOAT_BITS = "hex(substr(st_aswkb(point({0},0)),6,8))"
# Neither TIME_TO_SEC nor EXTRACT has the fraction in MySQL and MariaDB both.
_MICROS_OF_TIME = (
    "(if({0}<0,-1,1)*(((hour({0})*60+minute({0}))*60+second({0}))*1000000+microsecond({0})))"
)
_DAYS_TO_1970 = 719_528
_CHARSET = "utf8mb4"
# MySQL's years are 0 and 1901 to 2155.
_YEAR_ZERO = 1900


def read_column(
    column: DatabaseColumn, type_: ColumnType, source_type: str
) -> ReadColumn | Unreadable:
    """Return how to read a column as the type that streaming gives it; `source_type` is the type in
    its events (`SourceField.source_type`).
    """
    defined = column.defined
    if defined is None:
        return Unreadable(column.name, f"the type {column.type!r} isn't known")
    found = _read(column, defined, type_, source_type)
    if found is None:
        return Unreadable(
            column.name,
            f"the database's {column.type} can't be read as the {type_.name} that the table "
            f"holds; leave the column out",
        )
    if isinstance(found, Unreadable):
        return found
    return replace(found, optional=column.optional)


def _read(
    column: DatabaseColumn, defined: DefinedColumn, type_: ColumnType, source_type: str
) -> ReadColumn | Unreadable | None:
    name, kind, of = quoted(column.name), type_.kind, defined.type
    if (of in _WHOLE_TYPES or of in _DECIMALS) and kind in _DIGIT_KINDS:
        sql = _without_zeros(name, column.type, defined)
        scale = (defined.scale or 0) if of in _DECIMALS else 0
        zero = str(_YEAR_ZERO) if of == "YEAR" else ""
        return ReadColumn(column.name, sql, TextForm.DIGITS, type_, sql, scale=scale, zero=zero)
    if of in _FLOATS and kind in (Primitive.FLOAT, Primitive.DOUBLE):
        sql = _FLOAT_BITS.format(name)
        return ReadColumn(column.name, sql, TextForm.FLOAT_BITS, type_, sql)
    if of == "BIT" and kind is (
        Primitive.BOOLEAN if (defined.length or 1) == 1 else Primitive.BINARY
    ):
        bits = defined.length or 1
        sql = f"cast({name} as unsigned)"
        return ReadColumn(column.name, sql, TextForm.DIGITS, type_, sql, bits)
    if of in (*_MOMENTS, "DATE", "TIME"):
        return _moment(column, defined, type_, source_type)
    if of in _CHARACTERS and column.charset != "binary" and kind is Primitive.STRING:
        sql = name if column.charset == _CHARSET else f"convert({name} using {_CHARSET})"
        return ReadColumn(column.name, sql, TextForm.CHARACTERS, type_, name)
    if (of in _OCTETS or column.charset == "binary") and kind is Primitive.BINARY:
        return ReadColumn(column.name, f"hex({name})", TextForm.OCTETS, type_, name)
    if of in _GEOMETRIES and kind is Primitive.BINARY:
        return ReadColumn(column.name, f"hex({name})", TextForm.GEOMETRY, type_, name)
    if of == "UUID":
        return Unreadable(
            column.name,
            "Debezium 3.5 sends values of a UUID that differ from the database's; leave the "
            "column out",
        )
    if of == "JSON":
        return Unreadable(
            column.name,
            "MySQL's binlog and a SELECT have different texts of a JSON column; leave the"
            " column out",
        )
    return None


def _without_zeros(name: str, text: str, defined: DefinedColumn) -> str:
    """Cast numbers, since ZEROFILL puts zeros before them; turn a YEAR of zero into the connector's
    value.
    """
    if defined.type == "YEAR":
        return f"if({name}=0,{_YEAR_ZERO},{name}+0)"
    if "zerofill" not in text.lower():
        return name
    if defined.type in _DECIMALS:
        return f"cast({name} as decimal({defined.length or 10},{defined.scale or 0}))"
    return f"cast({name} as unsigned)"


def _moment(
    column: DatabaseColumn, defined: DefinedColumn, type_: ColumnType, source_type: str
) -> ReadColumn | Unreadable | None:
    name, of, digits = quoted(column.name), defined.type, defined.length or 0
    if of != "DATE" and _MILLIS.search(source_type) and digits > _MILLIS_DIGITS:
        return Unreadable(
            column.name,
            "the connector cuts its values to milliseconds; set"
            " time.precision.mode=adaptive_time_microseconds there",
        )
    if of == "TIME" and type_.kind in (Primitive.LONG, Primitive.INTEGER):
        unit = _MILLI if _MILLIS.search(source_type) else _NANO if _NANOS.search(source_type) else 1
        sql = _MICROS_OF_TIME.format(name)
        return ReadColumn(column.name, sql, TextForm.TIME, type_, sql, unit=unit)
    if of == "DATE" and type_.kind is Primitive.DATE:
        sql, form = f"to_days({name})-{_DAYS_TO_1970}", TextForm.DAYS
    elif of in _MOMENTS and type_.kind is Primitive.TIMESTAMP:
        sql, form = f"timestampdiff(microsecond,'1970-01-01',{name})", TextForm.MICROS
    else:
        return None
    if not defined.optional:
        sql = f"ifnull({sql},0)"
    elif of == "TIMESTAMP":
        sql = f"if({name} is null,null,ifnull({sql},0))"
    else:
        sql = f"({sql})"
    return ReadColumn(column.name, sql, form, type_, sql, zero="0")


def quoted(name: str) -> str:
    """Return a quoted name of a database, table or column."""
    return "`" + name.replace("`", "``") + "`"


def octets(value: bytes) -> str:
    """Return bytes as a constant of SQL; safe for any bytes."""
    return f"X'{value.hex()}'"
