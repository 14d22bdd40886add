"""How Debezium writes MySQL's types into JSON without schemas, by its own documents.

Some of it hangs on settings of the connector, which no record tells (`Handling`). The connector's
`time.precision.mode` and `binary.handling.mode` stay as they are by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from lakesplice.errors import ConfigurationError
from lakesplice.formats.events.ddl import DefinedColumn, SchemaHistory, TableVersion
from lakesplice.formats.events.declared import DeclaredType
from lakesplice.formats.events.encoding import Encoding
from lakesplice.formats.events.typed import TypeHistory, TypeVersion
from lakesplice.model.fills import fill_text, fill_value
from lakesplice.model.names import TableName
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Kind

# MySQL's own, where a definition leaves them out.
_DECIMAL_LENGTH, _DECIMAL_SCALE, _BIT_LENGTH = 10, 0, 1
_DECIMAL_LENGTH_MAX = 65
# From this many binary digits on a FLOAT is a DOUBLE.
_DOUBLE_DIGITS = 25
_CHARACTERS = frozenset(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"))
_NAMES = {
    **{
        whole + sign: (whole + sign).lower()
        for whole in ("TINYINT", "SMALLINT", "MEDIUMINT", "INT")
        for sign in ("", " UNSIGNED")
    },
    "BIGINT": "bigint", "DOUBLE": "double", "DOUBLE UNSIGNED": "double", "BOOLEAN": "boolean",
    "YEAR": "year", "DATE": "date", "TIMESTAMP": "timestamp", "TIME": "time",
    **dict.fromkeys(_CHARACTERS, "string"),
    **dict.fromkeys(("ENUM", "SET", "JSON", "UUID"), "string"),
    **dict.fromkeys(
        ("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), "binary"
    ),
}  # fmt: skip
_FILLED = (Kind.BYTE, Kind.SHORT, Kind.INTEGER, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)
_TEXTS = _CHARACTERS | {"ENUM"}


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
    versions = history.table(table)
    if not versions:
        return None
    typed = _typed(versions, handling)
    return TypeHistory(tuple(_with_later_names(versions, typed)), history.ordered)


def _declaration(column: DefinedColumn, handling: Handling) -> str | None:
    type_, length = column.type, column.length
    if type_ in _CHARACTERS and column.charset == "binary":
        return "binary"
    if type_ in ("FLOAT", "FLOAT UNSIGNED"):
        # FLOAT(7,3) has digits in decimal, FLOAT(53) in binary.
        return "double" if column.scale is None and (length or 0) >= _DOUBLE_DIGITS else "float"
    if type_ == "BIGINT UNSIGNED":
        precise = handling.bigint_unsigned_handling_mode == "precise"
        return "bigint unsigned" if precise else "unsigned_long"
    if type_ in ("DECIMAL", "DECIMAL UNSIGNED"):
        return "decimal"
    if type_ == "BIT":
        return f"bit({_BIT_LENGTH if length is None else length})"
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


def _typed(versions: Sequence[TableVersion], handling: Handling) -> list[TypeVersion]:
    found: list[TypeVersion] = []
    fills: dict[str, str] = {}
    names: dict[str, tuple[str, ...]] = {}
    for version in versions:
        if version.columns is None:
            fills, names = {}, {}
            gap = f"its columns are not known: {version.unknown}" if version.unknown else ""
            found.append(TypeVersion(version.place, gap=gap or "the table was dropped"))
            continue
        formerly = version.renamed
        names = {
            name: (formerly[name], *names.get(formerly[name], ()))
            if name in formerly
            else names.get(name, ())
            for name in version.columns.keys() - version.added
        }
        fills = {
            name: fills[formerly.get(name, name)]
            for name in version.columns
            if formerly.get(name, name) in fills and name not in version.added
        }
        typed, untyped = _columns(version.columns, handling)
        for name in version.added & typed.keys():
            fill = _fill(version.columns[name], typed[name])
            if fill is not None:
                fills[name] = fill
        columns = {name: _filled(type_, fills.get(name)) for name, type_ in typed.items()}
        known = {name: earlier for name, earlier in names.items() if earlier}
        found.append(TypeVersion(version.place, columns, untyped, formerly=known))
    return found


def _with_later_names(
    versions: Sequence[TableVersion], typed: Sequence[TypeVersion]
) -> list[TypeVersion]:
    found: list[TypeVersion] = []
    later: dict[str, tuple[str, ...]] = {}
    for at in reversed(range(len(typed))):
        found.append(replace(typed[at], later=dict(later)))
        version = versions[at]
        kept = (version.columns or {}).keys() - version.added
        steps = ((name, version.renamed.get(name)) for name in kept)
        later = {
            before or name: (*((name,) if before else ()), *later.get(name, ()))
            for name, before in steps
            if before or name in later
        }
    return found[::-1]


def _columns(
    columns: Mapping[str, DefinedColumn], handling: Handling
) -> tuple[dict[str, DeclaredType], dict[str, str]]:
    typed, untyped = {}, {}
    for name, column in columns.items():
        type_ = type_of(column, handling)
        if type_ is None:
            untyped[name] = f"{column.type} has no exact column without schemas"
        else:
            typed[name] = type_
    return typed, untyped


def _fill(column: DefinedColumn, type_: DeclaredType) -> str | None:
    """What MySQL puts into rows when it adds the column: its default, or without one and not null
    zero or an empty text. Moments are left: the present is told as 1970.
    """
    of = type_.type
    numbers = of.kind in _FILLED and column.type not in ("TIME", "YEAR")
    if not numbers and column.type not in _TEXTS:
        return None
    text = column.default
    if text is None:
        if column.optional or column.type == "ENUM":
            return None
        text = "" if of.kind is Kind.STRING else "0"
    return _as_fill(text, of)


def _as_fill(text: str, of: ColumnType) -> str | None:
    try:
        return fill_text(fill_value(text, of), of)
    except (pa.ArrowException, ValueError):
        return None


def _filled(type_: DeclaredType, fill: str | None) -> DeclaredType:
    """The type with what rows hold, as they do after a change of type too: if that kept it."""
    known = None if fill is None or type_.type.kind not in (*_FILLED, Kind.STRING) else fill
    return type_ if known is None else replace(type_, fill=_as_fill(known, type_.type))
