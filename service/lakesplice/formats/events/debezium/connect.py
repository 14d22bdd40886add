"""Reads Kafka Connect's schemas, as its JSON converter writes them, as columns of row images.

A column is exact or refused: a semantic type without an exact column type parks the table, with a
workaround.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

import pyarrow as pa

from lakesplice.errors import UnsupportedError
from lakesplice.formats.events.cells.conversion import convert
from lakesplice.formats.events.ddl import DefinedColumn
from lakesplice.formats.events.ddl.added_columns import as_fill, fill_of
from lakesplice.formats.events.ddl.definitions import type_name
from lakesplice.formats.events.json_reading.payload_shape import EventShape, image_type
from lakesplice.formats.events.json_reading.strict import Flaw, find_flaw
from lakesplice.formats.events.json_reading.template import Halt
from lakesplice.formats.events.values.encoding import Cell, Encoding
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.column_values import fill_text
from lakesplice.model.parking import ParkCode
from lakesplice.model.types import DECIMAL_PRECISION_MAX, ColumnType, Primitive

_TIMESTAMP = ColumnType(Primitive.TIMESTAMP)
_DATE = ColumnType(Primitive.DATE)
_UNSIGNED = ColumnType(Primitive.DECIMAL, 20, 0)
_GEOMETRY = "io.debezium.data.geometry."
_PRECISION_MAX = 65
_DOUBLE_DIGITS = 15
_SOURCE_TYPE = "__debezium.source.column.type"
_SOURCE_LENGTH = "__debezium.source.column.length"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_ENUMERATED = {"io.debezium.data.Enum": "ENUM", "io.debezium.data.EnumSet": "SET"}
_BETWEEN_MEMBERS = re.compile(r"(?<!\\),")
# MySQL's types; types that give existing rows the same value without a default share one.
_TYPES = {
    **{(whole, ""): "INT" for whole in ("int8", "int16", "int32", "int64", "float", "double")},
    ("boolean", ""): "BIT",
    ("string", ""): "TEXT",
    ("string", "io.debezium.data.Json"): "JSON",
    ("bytes", "io.debezium.data.Bits"): "BIT",
    ("int32", "io.debezium.time.Year"): "YEAR",
    ("int32", "io.debezium.time.Time"): "TIME",
    ("int32", "org.apache.kafka.connect.data.Time"): "TIME",
    ("int64", "io.debezium.time.MicroTime"): "TIME",
    ("int64", "io.debezium.time.NanoTime"): "TIME",
}

_PRIMITIVES: dict[str, tuple[Primitive, pa.DataType]] = {
    "int8": (Primitive.BYTE, pa.int64()),
    "int16": (Primitive.SHORT, pa.int64()),
    "int32": (Primitive.INTEGER, pa.int64()),
    "int64": (Primitive.LONG, pa.int64()),
    "float": (Primitive.FLOAT, pa.float64()),
    "double": (Primitive.DOUBLE, pa.float64()),
    "boolean": (Primitive.BOOLEAN, pa.bool_()),
    "string": (Primitive.STRING, pa.string()),
    "bytes": (Primitive.BINARY, pa.string()),
}
# Types whose number means a moment. Times of day keep the number that is sent, since MySQL's TIME
# may be negative or longer than a day; all other semantic types keep the primitive type's value.
# MySQL's TIMESTAMP is a ZonedTimestamp; the numbers of type int64 are DATETIMEs.
_MOMENTS: dict[tuple[str, str], tuple[ColumnType, Encoding]] = {
    ("int32", "io.debezium.time.Date"): (_DATE, Encoding.DATE_DAYS),
    ("int32", "org.apache.kafka.connect.data.Date"): (_DATE, Encoding.DATE_DAYS),
    ("int64", "io.debezium.time.Timestamp"): (_TIMESTAMP, Encoding.TIMESTAMP_MILLIS),
    ("int64", "org.apache.kafka.connect.data.Timestamp"): (_TIMESTAMP, Encoding.TIMESTAMP_MILLIS),
    ("int64", "io.debezium.time.MicroTimestamp"): (_TIMESTAMP, Encoding.TIMESTAMP_MICROS),
    ("int64", "io.debezium.time.NanoTimestamp"): (_TIMESTAMP, Encoding.TIMESTAMP_NANOS),
    ("string", "io.debezium.time.ZonedTimestamp"): (_TIMESTAMP, Encoding.TIMESTAMP_ZONED),
}


_Members: TypeAlias = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class UnsupportedSchema:
    """Why events of a schema can't be decoded: no envelope, or types without a column type."""

    detail: str
    unsupported: bool = False

    @property
    def verdict(self) -> Flaw | Halt:
        """The verdict on a record with the schema."""
        if self.unsupported:
            return Halt(ParkCode.UNSUPPORTED, self.detail)
        return Flaw(DeadReason.NOT_AN_ENVELOPE, self.detail)


@lru_cache(maxsize=1024)
def shape_of_schema(text: str) -> EventShape | UnsupportedSchema:
    """Read the `schema` member of an event; `text` is its JSON, the same for all events of a
    version.
    """
    return _shape(text, _envelope_shape)


@lru_cache(maxsize=1024)
def shape_of_row(text: str, beside: Callable[[str], bool]) -> EventShape | UnsupportedSchema:
    """Read the `schema` member of an event that is a row; `beside` says which members aren't
    columns of it.
    """
    return _shape(text, lambda members: _row_shape(members, beside))


def _shape(
    text: str, of_members: Callable[[_Members], EventShape | UnsupportedSchema]
) -> EventShape | UnsupportedSchema:
    try:
        return of_members(_fields(json.loads(text)))
    except UnsupportedError as error:
        return UnsupportedSchema(str(error), unsupported=True)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        return UnsupportedSchema(f"its schema is no Connect schema: {error!r}")


def _envelope_shape(members: _Members) -> EventShape | UnsupportedSchema:
    if not {"before", "after", "source", "op"} <= members.keys():
        return UnsupportedSchema("its schema has no before, after, source and op")
    columns = _fields(members["after"])
    cells = tuple(cell_of(name, field) for name, field in columns.items())
    if cells != tuple(cell_of(name, field) for name, field in _fields(members["before"]).items()):
        return UnsupportedSchema("before and after have different schemas", unsupported=True)
    cells = tuple(with_fill(cell, columns[cell.name]) for cell in cells)
    images = image_type(cells)
    types = [
        pa.field(name, images if name in ("before", "after") else _json_type(name, field))
        for name, field in members.items()
    ]
    return EventShape(cells, pa.struct(types))


def _row_shape(members: _Members, beside: Callable[[str], bool]) -> EventShape:
    cells = tuple(
        with_fill(cell_of(name, field), field)
        for name, field in members.items()
        if not beside(name)
    )
    columns = {cell.name: cell.json_type for cell in cells}
    types = [
        pa.field(name, columns.get(name) or _json_type(name, field))
        for name, field in members.items()
    ]
    return EventShape(cells, pa.struct(types))


def _fields(schema: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    listed = cast("list[Mapping[str, object]]", schema["fields"])
    fields = {str(field["field"]): field for field in listed}
    if schema["type"] != "struct" or len(fields) != len(listed):
        raise ValueError("a struct with each field once was expected")
    return fields


def cell_of(name: str, field: Mapping[str, object]) -> Cell:
    """Return a row's column; `UnsupportedError` if its field has no exact type."""
    primitive, semantic = str(field["type"]), field.get("name")
    if primitive == "struct" and str(semantic).startswith(_GEOMETRY):
        return _geometry(name, field)
    if primitive not in _PRIMITIVES:
        raise UnsupportedError(
            "a column's type has no exact column type; have the connector leave the column out"
            " (column.exclude.list) or send it as text or bytes",
            column=name, type=primitive, semantic=semantic,
        )  # fmt: skip
    if semantic == _DECIMAL:
        return _decimal(name, field)
    if primitive == "int64" and not semantic and _is_unsigned(field):
        # Sent as signed by the connector's default: bigint.unsigned.handling.mode=long.
        return Cell(name, _UNSIGNED, Encoding.UNSIGNED_LONG, "int64:bigint unsigned")
    source_type = f"{primitive}:{semantic}" if semantic else primitive
    if (primitive, semantic) in _MOMENTS:
        type_, encoding = _MOMENTS[primitive, str(semantic)]
        return Cell(name, type_, encoding, source_type)
    kind = _PRIMITIVES[primitive][0]
    encoding = Encoding.BASE64 if kind is Primitive.BINARY else Encoding.PLAIN
    return Cell(name, ColumnType(kind), encoding, source_type)


def _is_unsigned(field: Mapping[str, object]) -> bool:
    """Whether the source type, sent with column.propagate.source.type, is unsigned."""
    parameters = field.get("parameters")
    stated = parameters.get(_SOURCE_TYPE) if isinstance(parameters, Mapping) else None
    return str(stated).upper().startswith("BIGINT UNSIGNED")


def _geometry(name: str, field: Mapping[str, object]) -> Cell:
    members = tuple((n, _json_type(n, member)) for n, member in _fields(field).items())
    if not {"wkb", "srid"} <= dict(members).keys():
        raise UnsupportedError("a geometry without wkb and srid is not known", column=name)
    source_type = f"struct:{field['name']}"
    return Cell(name, ColumnType(Primitive.BINARY), Encoding.GEOMETRY, source_type, members)


def with_fill(cell: Cell, field: Mapping[str, object]) -> Cell:
    """Add the value that MySQL stores in existing rows when it adds the column, if the schema shows
    it.

    A moment's default may stand for the present time, which is sent as 1970.
    """
    raw = field.get("default")
    if cell.type.kind is Primitive.TIMESTAMP:
        return cell
    if raw is None:
        column = _defined(cell.name, field)
        return cell if column is None else replace(cell, fill=fill_of(column, cell.type))
    if cell.encoding is Encoding.DECIMAL_BASE64 and isinstance(raw, int | float):
        # With decimal.format=NUMERIC; more digits than a double has are not known exactly.
        exact = len(str(raw)) <= _DOUBLE_DIGITS
        return replace(cell, fill=as_fill(str(raw), cell.type)) if exact else cell
    if find_flaw(raw, cell.json_type) is not None:
        return cell
    try:
        (column_of,) = convert([(pa.array([raw], cell.json_type), cell)])
    except (pa.ArrowException, TypeError, ValueError):
        return cell
    wrong = any(bool(mask.any()) for mask, _ in column_of.flaws) or column_of.values.null_count
    return cell if wrong else replace(cell, fill=fill_text(column_of.values[0], cell.type))


def _defined(name: str, field: Mapping[str, object]) -> DefinedColumn | None:
    """Return a column without a default as MySQL would define it; None if its schema doesn't show
    whether bytes are BINARY(n), which only a sent source type does.
    """
    primitive, semantic = str(field["type"]), str(field.get("name") or "")
    parameters = field.get("parameters")
    source_type = parameters if isinstance(parameters, Mapping) else {}
    optional = field.get("optional") is not False
    if semantic == _DECIMAL:
        return DefinedColumn(
            name, "DECIMAL", scale=_number(source_type.get("scale")), optional=optional
        )
    if semantic in _ENUMERATED:
        members = _members(str(source_type.get("allowed") or ""))
        return DefinedColumn(name, _ENUMERATED[semantic], optional=optional, members=members)
    stated = type_name(str(source_type.get(_SOURCE_TYPE) or _TYPES.get((primitive, semantic), "")))
    length = _number(source_type.get("length", source_type.get(_SOURCE_LENGTH)))
    return DefinedColumn(name, stated, length, optional=optional) if stated else None


def _members(allowed: str) -> tuple[str, ...]:
    """The members of an enumeration; a comma in one has a backslash before it."""
    parts = _BETWEEN_MEMBERS.split(allowed) if allowed else ()
    return tuple(part.replace("\\,", ",") for part in parts)


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() else None


def _decimal(name: str, field: Mapping[str, object]) -> Cell:
    parameters = cast("Mapping[str, str]", field["parameters"])
    scale = int(parameters["scale"])
    # TiCDC's name for it differs from Debezium's.
    stated = parameters.get("connect.decimal.precision", parameters.get("precision"))
    precision = DECIMAL_PRECISION_MAX if stated is None else int(stated)
    if DECIMAL_PRECISION_MAX < precision <= _PRECISION_MAX and 0 <= scale <= precision:
        source_type = f"{field['type']}:{_DECIMAL}({precision},{scale})"
        return Cell(name, ColumnType(Primitive.STRING), Encoding.WIDE_DECIMAL_BASE64, source_type)
    if not 1 <= precision <= DECIMAL_PRECISION_MAX or not 0 <= scale <= precision:
        raise UnsupportedError(
            "a decimal of MySQL has 1 to 65 digits; send it as text (decimal.handling.mode=string)",
            column=name, precision=precision, scale=scale,
        )  # fmt: skip
    type_ = ColumnType(Primitive.DECIMAL, precision, scale)
    source_type = f"{field['type']}:{_DECIMAL}({precision},{scale})"
    return Cell(name, type_, Encoding.DECIMAL_BASE64, source_type)


def _json_type(name: str, field: Mapping[str, object]) -> pa.DataType:
    primitive = str(field["type"])
    if primitive == "struct":
        return pa.struct([pa.field(n, _json_type(n, f)) for n, f in _fields(field).items()])
    if primitive in _PRIMITIVES:
        return _PRIMITIVES[primitive][1]
    raise UnsupportedError(
        "the envelope has a field of a type that is not known; remove it at the connector",
        field=name, type=primitive,
    )  # fmt: skip
