"""How Debezium writes MySQL's types into JSON without schemas, according to its documentation.

Parts of this depend on settings of the connector and its converter, which no record shows
(`ConverterSettings`). The connector's `binary.handling.mode` is assumed to have its default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.ddl import DefinedColumn, SchemaHistory
from lakesplice.formats.events.ddl.columns import CHARACTERS
from lakesplice.formats.events.ddl.type_history import type_history
from lakesplice.formats.events.values.column_types import TypeHistory
from lakesplice.formats.events.values.declared_types import DeclaredType
from lakesplice.formats.events.values.encoding import Encoding
from lakesplice.model.names import TableName
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Primitive

DecimalMode = Literal["precise", "string", "double"]
TimeMode = Literal[
    "adaptive_time_microseconds", "adaptive", "connect", "isostring", "microseconds", "nanoseconds"
]
# MySQL's defaults, if a definition leaves them out.
_DECIMAL_LENGTH, _DECIMAL_SCALE, _LENGTH = 10, 0, 1
_DECIMAL_LENGTH_MAX = 65
_DATETIMES = {
    "connect": "timestamp_millis", "microseconds": "timestamp_micros",
    "nanoseconds": "timestamp_nanos",
}  # fmt: skip
_MILLIS_DIGITS = 3
_GEOMETRIES = (
    "GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
    "GEOMETRYCOLLECTION", "GEOMCOLLECTION",
)  # fmt: skip
_NAMES = {
    **{
        whole + sign: (whole + sign).lower()
        for whole in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT")
        for sign in ("", " UNSIGNED")
    },
    "BIGINT": "bigint", "DOUBLE": "double", "DOUBLE UNSIGNED": "double", "BOOLEAN": "boolean",
    "YEAR": "year", "TIMESTAMP": "timestamp",
    **dict.fromkeys(CHARACTERS, "string"),
    **dict.fromkeys(_GEOMETRIES, "geometry"),
    # All are sent in the same form; the names differ if they are declared for another connector.
    "ENUM": "enum", "SET": "set", "JSON": "json", "UUID": "string",
    **dict.fromkeys(
        ("VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "binary"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConverterSettings:
    """The connector's settings with these names, and its converter's `decimal.format`, which decide
    how values are written.
    """

    decimal_handling_mode: DecimalMode = "precise"
    bigint_unsigned_handling_mode: Literal["long", "precise"] = "long"
    time_precision_mode: TimeMode = "adaptive_time_microseconds"
    decimal_format: Literal["base64", "numeric"] = "base64"


def type_of(column: DefinedColumn, handling: ConverterSettings) -> DeclaredType | None:
    """Return how a column's values are written; None if they have no exact column type."""
    name = _declaration(column, handling)
    if name is None:
        return None
    if name == "decimal":
        return _decimal(column, handling)
    try:
        return replace(DeclaredType.parse(name), by_setting=column.type == "DATETIME")
    except ConfigurationError:
        return None


def types_of(
    history: SchemaHistory, table: TableName, handling: ConverterSettings
) -> TypeHistory | None:
    """Return the types of a table's columns by its source's DDL; None if no DDL of it was read."""
    return type_history(history, table, lambda column: type_of(column, handling))


def _declaration(column: DefinedColumn, handling: ConverterSettings) -> str | None:
    type_, length = column.type, column.length
    if column.holds_bytes:
        return "binary"
    if type_ in ("FLOAT", "FLOAT UNSIGNED"):
        return "double" if column.is_wide_float else "float"
    if type_ == "BIGINT UNSIGNED":
        precise = handling.bigint_unsigned_handling_mode == "precise"
        if not precise:
            return "unsigned_long"
        as_number = handling.decimal_format == "numeric"
        return "decimal_number(20,0)" if as_number else "bigint unsigned"
    if type_ in ("DECIMAL", "DECIMAL UNSIGNED"):
        return "decimal"
    if type_ in ("BIT", "BINARY"):
        return f"{type_.lower()}({_LENGTH if length is None else length})"
    if type_ in ("DATE", "DATETIME", "TIME"):
        return _moment(type_, length or 0, handling.time_precision_mode)
    return _NAMES.get(type_)


def _moment(type_: str, digits: int, mode: TimeMode) -> str:
    if mode == "isostring":
        return "string"
    if type_ == "DATE":
        return "date"
    if type_ == "DATETIME":
        return _DATETIMES.get(mode) or f"datetime({digits})"
    if mode == "nanoseconds":
        return "time_nanos"
    in_millis = mode == "connect" or (mode == "adaptive" and digits <= _MILLIS_DIGITS)
    return "time_millis" if in_millis else "time"


def _decimal(column: DefinedColumn, handling: ConverterSettings) -> DeclaredType | None:
    precision = _DECIMAL_LENGTH if column.length is None else column.length
    scale = _DECIMAL_SCALE if column.scale is None else column.scale
    if not 1 <= precision <= _DECIMAL_LENGTH_MAX or scale > precision:
        return None
    if handling.decimal_handling_mode == "double":
        return DeclaredType.parse("double")
    as_text = handling.decimal_handling_mode == "string"
    as_number = not as_text and handling.decimal_format == "numeric"
    if precision <= DECIMAL_PRECISION_MAX:
        written = "_text" if as_text else "_number" if as_number else ""
        return DeclaredType.parse(f"decimal{written}({precision},{scale})")
    if as_text:
        return DeclaredType.parse("string")
    if as_number:
        return None  # no JSON number of so many digits is read exactly
    # The number depends on the scale, so the type contains it.
    name = f"wide_decimal({precision},{scale})"
    return DeclaredType(name, ColumnType(Primitive.STRING), Encoding.WIDE_DECIMAL_BASE64, name)
