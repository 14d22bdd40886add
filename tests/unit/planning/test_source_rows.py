"""How a column is read from a source database, and which columns can't be read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakesplice.model.types import ColumnType
from lakesplice.planning.source_rows.canonical_texts import (
    canonical_text_problem,
    canonical_texts,
)
from lakesplice.planning.source_rows.columns import (
    DatabaseColumn,
    ReadColumn,
    Unreadable,
    read_column,
)
from lakesplice.planning.source_rows.key_ranges import KeyRange, key_columns, range_sql
from lakesplice.planning.source_rows.values import text_type, values_of


def _read(ddl: str, to: str, source_type: str = "") -> ReadColumn | Unreadable:
    return read_column(DatabaseColumn("c", ddl), ColumnType.parse(to), source_type)


@pytest.mark.parametrize(
    ("ddl", "to", "source_type", "says"),
    [
        ("uuid", "string", "", "values of a UUID that differ"),
        ("json", "string", "", "different texts of a JSON column"),
        ("vector(3)", "binary", "", "can't be read as the binary"),
        ("inet6", "string", "", "can't be read as the string"),
        ("tinyint(1)", "boolean", "", "can't be read as the boolean"),
        ("datetime(6)", "string", "", "can't be read as the string"),
        ("varchar(9)", "integer", "", "can't be read as the integer"),
        ("datetime(6)", "timestamp", "int64:org.apache.kafka.connect.data.Timestamp", "cuts"),
        ("time(4)", "integer", "int32:io.debezium.time.Time", "cuts"),
        ("a ( type", "string", "", "isn't known"),
    ],
)
def test_a_column_that_streaming_would_store_differently_is_refused(
    ddl: str, to: str, source_type: str, says: str
) -> None:
    found = _read(ddl, to, source_type)
    assert isinstance(found, Unreadable)
    assert says in found.reason


@pytest.mark.parametrize(
    ("ddl", "to", "source_type", "text", "value"),
    [
        ("time(3)", "integer", "int32:io.debezium.time.Time", "-250000", -250),
        (
            "time(6)",
            "long",
            "int64:io.debezium.time.NanoTime",
            "3020398250001",
            3020398250001000,
        ),
        ("time(6)", "long", "int64:io.debezium.time.MicroTime", "-1500000", -1500000),
        ("decimal(12,2)", "string", "string", "-0.10", "-0.10"),
        ("decimal(12,2)", "double", "double", "0.10", 0.1),
        (
            "decimal(12,10)",
            "double",
            "bytes:Decimal(12,10) as double",
            "-0.0082522782",
            -0.0082522782,
        ),
        ("bigint unsigned", "decimal(20,0)", "", "18446744073709551615", 2**64 - 1),
        ("float", "float", "", "00000020CAC0F33F", 1.2345677614212036),
        ("bit(12)", "binary", "", "2748", b"\xbc\x0a"),
        ("bit(1)", "boolean", "", "1", True),
    ],
)
def test_a_text_becomes_what_streaming_makes_of_the_value(
    ddl: str, to: str, source_type: str, text: str, value: object
) -> None:
    column = _read(ddl, to, source_type)
    assert isinstance(column, ReadColumn)
    texts = pa.array([text, None], pa.string()).cast(text_type(column))
    read = values_of(column, texts)
    assert not read.flaws
    assert read.values.to_pylist() == [value, None]
    assert read.values.type == ColumnType.parse(to).arrow


@pytest.mark.parametrize(
    ("ddl", "to", "text"),
    [
        ("int", "byte", "300"),
        ("date", "date", "-719163"),
        ("decimal(12,2)", "decimal(4,2)", "123.45"),
        ("double", "double", "00"),
        ("blob", "binary", "0g"),
    ],
)
def test_a_text_that_is_no_value_of_its_type_is_an_error_and_never_null(
    ddl: str, to: str, text: str
) -> None:
    column = _read(ddl, to)
    assert isinstance(column, ReadColumn)
    raw = pa.array([text], pa.string()).cast(text_type(column))
    read = values_of(column, raw)
    assert read.values.to_pylist() == [None]
    assert any(mask.all() for mask, _ in read.flaws)


def test_a_range_of_a_key_compares_column_by_column_with_constants_of_the_column_s_charset() -> (
    None
):
    columns = {
        "a": DatabaseColumn("a", "int"),
        "b`": DatabaseColumn("b`", "varchar(9)", "latin1", "latin1_swedish_ci"),
    }
    key = key_columns(["a", "b`"], columns)
    assert not isinstance(key, Unreadable)
    text = "_latin1 X'e4' collate latin1_swedish_ci"
    assert range_sql(key, KeyRange(("7", "E4"), None)) == (
        f"(`a`>=7 and (`a`>7 or (`a`=7 and `b```>{text})))"
    )
    assert range_sql(key, KeyRange(None, ("7", "E4"))) == (
        f"(`a`<=7 and (`a`<7 or (`a`=7 and `b```<={text})))"
    )
    assert range_sql(key, KeyRange()) == "1"


def test_a_key_without_an_order_of_exact_constants_is_refused() -> None:
    found = key_columns(["f"], {"f": DatabaseColumn("f", "double")})
    assert isinstance(found, Unreadable)
    assert "no order" in found.reason


def test_a_number_has_all_its_digits_and_no_exponent_as_the_server_writes_it() -> None:
    column = _read("decimal(20,10)", "decimal(20,10)")
    assert isinstance(column, ReadColumn)
    texts = ["0.0000000000", "-0.0000000001", "9999999999.0000000001", None]
    values = values_of(column, pa.array(texts, pa.string())).values
    assert canonical_texts(column, values).to_pylist() == texts
    assert canonical_text_problem(column) == ""
    narrower = _read("decimal(20,10)", "decimal(20,8)")
    assert isinstance(narrower, ReadColumn)
    assert "different numbers of digits" in canonical_text_problem(narrower)
