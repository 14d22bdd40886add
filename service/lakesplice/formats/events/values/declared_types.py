"""Types that a user declares for JSON without schemas.

A declared type says what the column is and how the connector writes it, since the JSON says
neither:

    declared               the value in the JSON                                column
    boolean                true, false                                          boolean
    byte, short, integer, long (tinyint, smallint, int, bigint)   a number      the same
    float, double          a number                                             the same
    string (text)          a string                                             string
    binary (blob)          base64                                               binary
    binary(n)              the same; the source may omit zeros at the end        binary, of n bytes
    decimal(p,s)           base64 of the unscaled value, or with decimal.handling.mode=string
                           its digits: decimal_text(p,s); with the converter's
                           decimal.format=NUMERIC a number: decimal_number(p,s) decimal(p,s)
    date                   days since 1970-01-01                                date
    timestamp              ISO 8601 with an offset, as MySQL TIMESTAMP is sent  timestamp
    timestamp_millis       milliseconds since 1970, as DATETIME(0..3) is sent   timestamp
    timestamp_micros       microseconds since 1970, as DATETIME(4..6) is sent   timestamp
    timestamp_nanos        nanoseconds since 1970                               timestamp
    datetime, datetime(n)  as timestamp_millis up to three digits, else as timestamp_micros
    time                   microseconds, negative and beyond a day as MySQL has them   long
    time_of_day            the same, of a column that holds nothing else                long
    time_millis, time_nanos   a TIME in milliseconds or nanoseconds                     the same
    year                   a number                                             integer
    enum, set, json        a string                                             string
    geometry, point        an object of `wkb` and `srid`, a POINT's with x, y   binary
    bit(1); bit(n)         true, false; base64                                  boolean; binary
    bigint unsigned        as decimal(20,0); the others as the next wider type  decimal(20,0)
    unsigned_long          a BIGINT UNSIGNED that is sent as a signed number    decimal(20,0)

MySQL's own names of texts and bytes can be declared, too (`varchar(20)`, `mediumtext`,
`varbinary(16)`, `longblob`), and whole numbers with a display width (`int(11)`, but not
`tinyint(1)`, which a connector may send as a boolean). Lengths and widths have no effect.

This is how Debezium writes them. Other formats that need declarations describe in their own modules
how they write declared types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lakesplice.errors import ConfigurationError, UnsupportedError
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.model.types import ColumnType, Primitive

# The source types of columns whose type isn't in the events begin so.
DECLARED = "declared:"
_TIMESTAMP = ColumnType(Primitive.TIMESTAMP)
_NAMED: dict[str, tuple[ColumnType, Encoding]] = {
    **{
        kind.value: (ColumnType(kind), Encoding.PLAIN)
        for kind in Primitive
        if kind not in (Primitive.DECIMAL, Primitive.BINARY, Primitive.DATE, Primitive.TIMESTAMP)
    },
    "binary": (ColumnType(Primitive.BINARY), Encoding.BASE64),
    "geometry": (ColumnType(Primitive.BINARY), Encoding.GEOMETRY),
    "date": (ColumnType(Primitive.DATE), Encoding.DATE_DAYS),
    "timestamp": (_TIMESTAMP, Encoding.TIMESTAMP_ZONED),
    "timestamp_millis": (_TIMESTAMP, Encoding.TIMESTAMP_MILLIS),
    "timestamp_micros": (_TIMESTAMP, Encoding.TIMESTAMP_MICROS),
    "timestamp_nanos": (_TIMESTAMP, Encoding.TIMESTAMP_NANOS),
    "time_millis": (ColumnType(Primitive.LONG), Encoding.TIME_MILLIS),
    "time_nanos": (ColumnType(Primitive.LONG), Encoding.TIME_NANOS),
    "unsigned_long": (ColumnType(Primitive.DECIMAL, 20, 0), Encoding.UNSIGNED_LONG),
}
_ALIASES = {
    "tinyint": "byte",
    "smallint": "short",
    "int": "integer",
    "bigint": "long",
    "text": "string",
    "point": "geometry",
    "blob": "binary",
    "year": "integer",
    "time": "long",
    "time_of_day": "long",
    "enum": "string",
    "set": "string",
    "json": "string",
    "bit(1)": "boolean",
    **{f"bit({digits})": "binary" for digits in range(2, 65)},
    "tinyintunsigned": "short",
    "smallintunsigned": "integer",
    "mediumint": "integer",
    "mediumintunsigned": "integer",
    "intunsigned": "long",
    "bigintunsigned": "decimal(20,0)",
    "datetime": "timestamp_millis",
    **{f"datetime({digits})": "timestamp_millis" for digits in range(4)},
    **{f"datetime({digits})": "timestamp_micros" for digits in range(4, 7)},
}
_DECIMAL = re.compile(r"decimal(_text|_number)?(\(\d+,\d+\))")
_BINARY = re.compile(r"binary\((\d{1,3})\)")
_BINARY_BYTES_MAX = 255

_MYSQL_NAMES = (
    (re.compile(r"(?:var)?char\(\d+\)"), "string"),
    (re.compile(r"(?:tiny|medium|long)text"), "text"),
    (re.compile(r"varbinary\(\d+\)|(?:tiny|medium|long)blob"), "blob"),
    (re.compile(r"(smallint|mediumint|int|bigint)\(\d+\)(unsigned)?"), r"\1\2"),
)
_DECIMALS = {
    None: Encoding.DECIMAL_BASE64,
    "_text": Encoding.DECIMAL_TEXT,
    "_number": Encoding.DECIMAL_NUMBER,
}


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A declared column type. `name` is its canonical spelling; `written` is the declared spelling,
    in lower case without spaces: it distinguishes two types that become the same column type.
    `fill` is the value that existing rows got when the source added the column (`fill_text`).
    `by_setting` says that its notation depends on a setting of the connector, which may be
    configured wrongly.
    """

    name: str
    type: ColumnType
    encoding: Encoding
    written: str = ""
    fill: str | None = None
    by_setting: bool = False

    @classmethod
    def parse(cls, text: str) -> DeclaredType:
        """Parse a declaration, as the table above describes; raises `ConfigurationError` for other
        texts.
        """
        written = _plain_name(re.sub(r"\s+", "", text).lower())
        name = _ALIASES.get(written, written)
        if name in _NAMED:
            return cls(name, *_NAMED[name], written)
        binary = _BINARY.fullmatch(written)
        if binary and 1 <= int(binary[1]) <= _BINARY_BYTES_MAX:
            return cls("binary", *_NAMED["binary"], written)
        if decimal := _DECIMAL.fullmatch(name):
            encoding = _DECIMALS[decimal[1]]
            try:
                return cls(name, ColumnType.parse(f"decimal{decimal[2]}"), encoding, written)
            except UnsupportedError as error:
                raise ConfigurationError(error.message, type=text) from error
        aliases = [alias for alias in _ALIASES if not alias.startswith(("bit(", "datetime("))]
        wide = (
            "decimal(p,s)",
            "decimal_text(p,s)",
            "decimal_number(p,s)",
            "bit(n)",
            "binary(n)",
            "datetime(n)",
        )
        names = (
            re.sub(r"(?<=int)unsigned", " unsigned", name) for name in (*_NAMED, *wide, *aliases)
        )
        known = ", ".join(names)
        raise ConfigurationError(f"unknown column type; known: {known}", type=text)

    @property
    def is_declarable(self) -> bool:
        """Whether a configuration can declare it; some types are known only from the source's
        DDL.
        """
        return not self.written.startswith("wide_decimal")

    @property
    def width(self) -> int:
        """The bytes of each value of a BINARY(n); 0 for any other type."""
        found = _BINARY.fullmatch(self.written)
        return int(found[1]) if found else 0

    def cell(self, name: str) -> Cell:
        """Return the column `name` with this type."""
        source_type = f"{DECLARED}{self.name}"
        by_setting = self.by_setting
        return Cell(
            name, self.type, self.encoding, source_type, fill=self.fill, by_setting=by_setting
        )


def _plain_name(written: str) -> str:
    """Return one of MySQL's names without its length or display width."""
    for pattern, name in _MYSQL_NAMES:
        if found := pattern.fullmatch(written):
            return found.expand(name)
    return written


def declare(columns: Mapping[str, str]) -> dict[str, DeclaredType]:
    """Parse a table's declarations; the error names the column."""
    declared = {}
    for name, text in columns.items():
        try:
            declared[name] = DeclaredType.parse(text)
        except ConfigurationError as error:
            raise ConfigurationError(error.message, column=name, type=text) from error
    return declared
