"""How Debezium writes MySQL's types into JSON without schemas, by its own documents.

Some of it hangs on settings of the connector, which no record tells (`Handling`). The connector's
`time.precision.mode` and `binary.handling.mode` stay as they are by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.added import CHARACTERS
from lakesplice.formats.events.ddl import DefinedColumn, SchemaHistory
from lakesplice.formats.events.declared import DeclaredType
from lakesplice.formats.events.encoding import Encoding
from lakesplice.formats.events.told import told_types
from lakesplice.formats.events.typed import TypeHistory
from lakesplice.model.names import TableName
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Kind

# MySQL's own, where a definition leaves them out.
_DECIMAL_LENGTH, _DECIMAL_SCALE, _LENGTH = 10, 0, 1
_DECIMAL_LENGTH_MAX = 65
# From this many binary digits on a FLOAT is a DOUBLE.
_DOUBLE_DIGITS = 25
_NAMES = {
    **{
        whole + sign: (whole + sign).lower()
        for whole in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT")
        for sign in ("", " UNSIGNED")
    },
    "BIGINT": "bigint", "DOUBLE": "double", "DOUBLE UNSIGNED": "double", "BOOLEAN": "boolean",
    "YEAR": "year", "DATE": "date", "TIMESTAMP": "timestamp", "TIME": "time",
    **dict.fromkeys(CHARACTERS, "string"),
    # As all are sent; the names tell them apart where they are declared for another connector.
    "ENUM": "enum", "SET": "set", "JSON": "json", "UUID": "string",
    **dict.fromkeys(
        ("VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "binary"
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Handling:
    """The connector's settings of these names, which decide how values are written."""

    decimal_handling_mode: Literal["precise", "string"] = "precise"
    bigint_unsigned_handling_mode: Literal["long", "precise"] = "long"


def type_of(column: DefinedColumn, handling: Handling) -> DeclaredType | None:
    """Return how a column's values are written, None if no exact column can be made of them."""
    name = _declaration(column, handling)
    if name is None:
        return None
    if name == "decimal":
        return _decimal(column, handling)
    try:
        return DeclaredType.parse(name)
    except ConfigurationError:
        return None


def types_of(history: SchemaHistory, table: TableName, handling: Handling) -> TypeHistory | None:
    """Return the types of a table's columns by what its source told; None if it told nothing."""
    return told_types(history, table, lambda column: type_of(column, handling))


def _declaration(column: DefinedColumn, handling: Handling) -> str | None:
    type_, length = column.type, column.length
    if type_ in CHARACTERS and column.charset == "binary":
        return "binary"
    if type_ in ("FLOAT", "FLOAT UNSIGNED"):
        # FLOAT(7,3) has digits in decimal, FLOAT(53) in binary.
        return "double" if column.scale is None and (length or 0) >= _DOUBLE_DIGITS else "float"
    if type_ == "BIGINT UNSIGNED":
        precise = handling.bigint_unsigned_handling_mode == "precise"
        return "bigint unsigned" if precise else "unsigned_long"
    if type_ in ("DECIMAL", "DECIMAL UNSIGNED"):
        return "decimal"
    if type_ in ("BIT", "BINARY"):
        return f"{type_.lower()}({_LENGTH if length is None else length})"
    if type_ == "DATETIME":
        return f"datetime({length or 0})"
    return _NAMES.get(type_)


def _decimal(column: DefinedColumn, handling: Handling) -> DeclaredType | None:
    precision = _DECIMAL_LENGTH if column.length is None else column.length
    scale = _DECIMAL_SCALE if column.scale is None else column.scale
    if not 1 <= precision <= _DECIMAL_LENGTH_MAX or scale > precision:
        return None
    as_text = handling.decimal_handling_mode == "string"
    if precision <= DECIMAL_PRECISION_MAX:
        return DeclaredType.parse(f"decimal{'_text' if as_text else ''}({precision},{scale})")
    if as_text:
        return DeclaredType.parse("string")
    # Which number its bytes are hangs on the scale, so the type says it.
    name = f"wide_decimal({precision},{scale})"
    return DeclaredType(name, ColumnType(Kind.STRING), Encoding.WIDE_DECIMAL_BASE64, name)
