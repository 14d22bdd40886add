"""Existing rows have the same value in an added column as in a real MariaDB."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pymysql
import pytest

from lakesplice.formats.events.ddl import SchemaChange, history_of, read_schema_change
from lakesplice.formats.events.debezium.avro_schema import AvroShape, shape_of_row
from lakesplice.formats.events.debezium.connect import cell_of, with_fill
from lakesplice.formats.events.debezium.ddl_types import ConverterSettings, types_of
from lakesplice.formats.events.maxwell import ddl_types as maxwell
from lakesplice.formats.events.values.decode_context import SchemaText
from lakesplice.model.column_values import fill_value
from lakesplice.model.names import TableName
from lakesplice.model.types import ColumnType
from tests.support.column_types import Typed, every_type
from tests.support.schema_changes import connect_record
from tests.support.sent_types import connect, decimal
from tests.support.sources import SourceServer

_TABLE = TableName("shop", "items")
# A zero date is no value that a column here holds, and MariaDB refuses JSON without a default.
_WITHOUT = ("date", "datetime", "timestamp", "json")
_DATA, _TIME = "io.debezium.data.", "io.debezium.time."
_DEFAULTS = [
    ("tinyint", "'-7'"), ("bigint unsigned", "18446744073709551615"), ("decimal(38,10)", "1.5"),
    ("decimal(5,5)", ".5"), ("double", "-1.5"), ("char(10)", "'x '"),
    ("enum('new','ü','c d')", "'c d'"), ("set('a','b','c')", "'a,c'"),
    ("time(6)", "'-838:59:58.25'"), ("time(0)", "'00:00:01'"), ("year", "2024"),
    ("date", "'2024-02-29'"),
    ("datetime(6)", "'2024-02-29 23:59:59.5'"), ("datetime(0)", "'1969-12-31 00:00:00'"),
    ("binary(16)", "'ab'"), ("varbinary(20)", "'ab'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def cursor(mariadb: SourceServer) -> Iterator[pymysql.cursors.Cursor]:
    with mariadb.connect() as connection, connection.cursor() as cursor:
        cursor.execute("create database added_columns")
        cursor.execute("use added_columns")
        yield cursor


def _added(cursor: pymysql.cursors.Cursor, columns: list[tuple[Typed, str]]) -> dict[str, Any]:
    """Return what the row that is there holds in added columns; each has what follows its type."""
    added = ", ".join(f"add v{at} {c.ddl} {rest}" for at, (c, rest) in enumerate(columns))
    cursor.execute("create or replace table items (id int primary key)")
    cursor.execute("insert into items values (1)")
    cursor.execute(f"alter table items {added}")
    cursor.execute("select * from items")
    (_, *values) = cursor.fetchone() or ()
    return {
        f"{column.name} {rest}": None if value is None else column.as_stored(value)
        for (column, rest), value in zip(columns, values, strict=True)
    }


def _told(column: Typed, rest: str) -> list[tuple[str | None, ColumnType]]:
    """Return what Debezium's and Maxwell's records say that rows hold in an added column."""
    statements = ("create table items (id int)", f"alter table items add v {column.ddl} {rest}")
    read = [
        read_schema_change(connect_record(sql, pos=100 * (at + 1), changes=None))
        for at, sql in enumerate(statements)
    ]
    history = history_of(change for change in read if isinstance(change, SchemaChange))
    of_connector = types_of(
        history, _TABLE, ConverterSettings(bigint_unsigned_handling_mode="precise")
    )
    found = []
    for types in (of_connector, maxwell.types_of(history, _TABLE)):
        assert types is not None
        found.append((types.versions[-1].columns["v"].fill, types.versions[-1].columns["v"].type))
    return found


def _value(fill: str | None, of: ColumnType) -> Any:
    return None if fill is None else fill_value(fill, of).as_py()


def test_columns_of_every_type_are_filled_with_the_default_in_the_sources_statement(
    cursor: pymysql.cursors.Cursor,
) -> None:
    types = every_type()
    columns = [(c, "not null") for c in types if not c.ddl.startswith(_WITHOUT)]
    columns += [(c, "null") for c in types]
    by_ddl = {column.ddl: column for column in types}
    columns += [(by_ddl[ddl], f"default {default}") for ddl, default in _DEFAULTS]
    columns += [(by_ddl[ddl], f"not null default {default}") for ddl, default in _DEFAULTS]
    truth = _added(cursor, columns)
    told = {f"{c.name} {rest}": _told(c, rest) for c, rest in columns}
    for at in (0, 1):
        assert {name: _value(*found[at]) for name, found in told.items()} == truth


def _schema(column: Typed) -> dict[str, Any]:
    """The field's schema as the connector sends it, with the source's type where it counts."""
    ddl, length = column.ddl.partition("(")[0], column.ddl.partition("(")[2].partition(")")[0]
    source = {
        "__debezium.source.column.type": ddl.upper(),
        "__debezium.source.column.length": length,
    }
    if column.stored in (pa.int16(), pa.int32(), pa.int64()) and ddl not in ("time", "year"):
        return connect(f"int{column.stored.bit_width}")
    if pa.types.is_decimal(column.stored):
        return decimal(column.stored.precision, column.stored.scale)
    special = {
        "time": connect("int64", _TIME + "MicroTime"),
        "year": connect("int32", _TIME + "Year"),
        "float": connect("float"),
        "double": connect("double"),
        "enum": connect("string", _DATA + "Enum", allowed="new,ü,c d"),
        "set": connect("string", _DATA + "EnumSet", allowed="a,b,c"),
        "bit": connect("bytes", _DATA + "Bits", length=length),
    }
    if column.ddl == "bit(1)":
        return connect("boolean")
    return special.get(ddl) or connect(
        "bytes" if pa.types.is_binary(column.stored) else "string", **source
    )


def test_columns_of_every_type_are_filled_with_the_default_in_the_events_schema(
    cursor: pymysql.cursors.Cursor,
) -> None:
    columns = [(c, "not null") for c in every_type() if not c.ddl.startswith(_WITHOUT)]
    truth = _added(cursor, columns)
    held = {}
    for column, rest in columns:
        field = json.loads(json.dumps({**_schema(column), "optional": False}))
        cell = with_fill(cell_of("v", field), field)
        held[f"{column.name} {rest}"] = _value(cell.fill, cell.type)
    assert held == truth


@pytest.mark.parametrize(
    ("field", "fill"),
    [
        (connect("string", _DATA + "Json"), "null"),  # MySQL reads the empty document so
        (connect("bytes"), None),  # BINARY(n) or not
        (connect("string", _DATA + "Enum", allowed="a\\,b,c"), "a,b"),
        (connect("string", _DATA + "Enum", allowed=",c"), ""),
        (connect("int32", _TIME + "Date"), None),
        (decimal(65, 3), "0.000"),
    ],
)
def test_what_no_mariadb_says(field: dict[str, Any], fill: str | None) -> None:
    assert with_fill(cell_of("v", field), {**field, "optional": False}).fill == fill
    assert with_fill(cell_of("v", field), {**field, "optional": True}).fill is None


def test_added_columns_have_the_same_values_in_avro_as_in_json() -> None:
    bits = {"type": "bytes", "connect.name": _DATA + "Bits", "connect.parameters": {"length": "9"}}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
    types: list[Any] = [
        bits,
        price,
        "string",
        ["null", "int"],
        {"type": "int", "connect.default": 7},
    ]
    types.append({**price, "connect.default": "\u0001\u00f4"})
    fields = [{"name": f"v{at}", "type": type_} for at, type_ in enumerate(types)]
    shape = shape_of_row(SchemaText(json.dumps({"type": "record", "name": "r", "fields": fields})))
    assert isinstance(shape, AvroShape)
    assert [c.fill for c in shape.event.cells] == ["AAA=", "0.00", "", None, "7", "5.00"]
