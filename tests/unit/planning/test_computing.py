"""Expressions of computed columns: their syntax, types and results."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakesplice.errors import ConfigurationError
from lakesplice.model.types import ColumnType
from lakesplice.planning.shape.computing.evaluation import evaluate, type_of
from lakesplice.planning.shape.computing.expression import (
    CHARACTERS_MAX,
    Call,
    Name,
    columns_of,
    parse,
)
from lakesplice.planning.shape.computing.functions import FUNCTIONS

AT = datetime(2024, 2, 29, 23, 4, 5, 60_007, UTC)
EARLY = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
VALUES: dict[str, tuple[str, list[Any]]] = {
    "id": ("long", [17, -17, None]),
    "n": ("integer", [5, -5, None]),
    "tiny": ("byte", [127, -128, None]),
    "flag": ("boolean", [True, False, None]),
    "price": ("decimal(9,2)", [Decimal("1.50"), Decimal("-0.05"), None]),
    "rate": ("double", [0.5, -1.0, None]),
    "name": ("string", [" Ünï ", "abcdef", None]),
    "day": ("date", [date(2024, 2, 29), date(1969, 12, 31), None]),
    "at": ("timestamp", [AT, EARLY, None]),
    "raw": ("binary", [b"\xff", b"", None]),
    "odd name": ("long", [1, 2, None]),
}
COLUMNS = {name: ColumnType.parse(kind) for name, (kind, _) in VALUES.items()}
IMAGE = pa.table(
    {name: pa.array(values, COLUMNS[name].arrow) for name, (_, values) in VALUES.items()}
)


def computed(text: str) -> tuple[str, list[Any]]:
    expression = parse(text)
    kind = type_of(expression, COLUMNS)
    assert kind is not None
    values = evaluate(expression, COLUMNS, IMAGE)
    assert values.type == kind.arrow
    return kind.name, values.to_pylist()


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("year(at)", "integer", [2024, 1969, None]),
        ("month(day)", "integer", [2, 12, None]),
        ("day(at)", "integer", [29, 31, None]),
        ("hour(at)", "integer", [23, 23, None]),
        ("minute(at)", "integer", [4, 59, None]),
        ("second(at)", "integer", [5, 59, None]),
        ("date_format(day, 'yyyy/MM')", "string", ["2024/02", "1969/12", None]),
        (
            "date_format(at, \"dd.MM.yyyy'T'HH:mm:ss.SSSSSS\")",
            "string",
            ["29.02.2024T23:04:05.060007", "31.12.1969T23:59:59.999999", None],
        ),
        ("date_format(at, 'SSS')", "string", ["060", "999", None]),
        ("date_format(at, '''o''''clock''')", "string", ["o'clock", "o'clock", None]),
        ("substring(name, 1)", "string", ["Ünï ", "bcdef", None]),
        ("substring(name, 1, 3)", "string", ["Ün", "bc", None]),
        ("substring(name, 90)", "string", ["", "", None]),
        ("substring(name, 2, 2)", "string", ["", "", None]),
        ("truncate(id, 10)", "long", [10, -20, None]),
        ("truncate(name, 2)", "string", [" Ü", "ab", None]),
        ("upper(name)", "string", [" ÜNÏ ", "ABCDEF", None]),
        ("lower(trim(name))", "string", ["ünï", "abcdef", None]),
        ("concat(name, '-', \"x\")", "string", [" Ünï -x", "abcdef-x", None]),
        ("coalesce(name, 'none')", "string", [" Ünï ", "abcdef", "none"]),
        ("coalesce(n, id, 0)", "long", [5, -5, 0]),
        ("coalesce(cast(n, integer), cast(id, integer))", "integer", [5, -5, None]),
        ("'eu'", "string", ["eu", "eu", "eu"]),
        ("7", "long", [7, 7, 7]),
        ("id", "long", [17, -17, None]),
        ("`odd name`", "long", [1, 2, None]),
        ("CAST(id, string)", "string", ["17", "-17", None]),
        ("cast(price, string)", "string", ["1.50", "-0.05", None]),
        ("cast(flag, string)", "string", ["true", "false", None]),
        ("cast(flag, byte)", "byte", [1, 0, None]),
        ("cast(id, byte)", "byte", [17, -17, None]),
        ("cast(truncate(id, 1000), byte)", "byte", [0, None, None]),
        ("cast(price, long)", "long", [None, None, None]),
        ("cast(price, decimal(5,1))", "decimal(5,1)", [Decimal("1.5"), None, None]),
        ("cast(id, decimal(4,2))", "decimal(4,2)", [Decimal(17), Decimal(-17), None]),
        ("cast(id, decimal(3,2))", "decimal(3,2)", [None, None, None]),
        ("cast(price, double)", "double", [1.5, -0.05, None]),
        ("cast(day, timestamp)", "timestamp",
         [datetime(2024, 2, 29, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC), None]),
        ("cast(at, date)", "date", [date(2024, 2, 29), date(1969, 12, 31), None]),
        ("cast(at, string)", "string",
         ["2024-02-29 23:04:05.060007", "1969-12-31 23:59:59.999999", None]),
        ("cast(name, string)", "string", [" Ünï ", "abcdef", None]),
        ("cast(name, long)", "long", [None, None, None]),
    ],
)  # fmt: skip
def test_an_expression_comes_to_its_values(text: str, kind: str, values: list[Any]) -> None:
    assert computed(text) == (kind, values)


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("long", {"9223372036854775807": 2**63 - 1, "9223372036854775808": None, "+007": 7,
                  "-0": 0, "1.0": 1, "1.": 1, ".0": 0, "1.5": None, "1e3": None, " 1": None,
                  "": None, "٣": None, "1\n": None}),
        ("byte", {"-128": -128, "128": None, "999": None}),
        ("decimal(4,2)", {"12.3": Decimal("12.30"), "12.340": Decimal("12.34"), "12.345": None,
                          "123": None, "0012": Decimal("12.00"), ".5": Decimal("0.50")}),
        ("decimal(2,2)", {"0.25": Decimal("0.25"), "1.25": None, "0": Decimal("0.00")}),
        ("double", {"1e3": 1000.0, "-.5": -0.5, "1e999": None, "nan": None, "0.1": 0.1}),
        ("date", {"2024-02-29": date(2024, 2, 29), "2023-02-29": None, "2024-13-01": None,
                  "2024-00-10": None, "2024-1-1": None, "2024-01-01 00:00:00": None}),
        ("timestamp", {"2024-02-29T23:04:05.06": datetime(2024, 2, 29, 23, 4, 5, 60_000, UTC),
                       "1969-12-31 23:59:59": datetime(1969, 12, 31, 23, 59, 59, 0, UTC),
                       "2024-02-29 24:00:00": None, "2024-02-29 23:60:00": None,
                       "2024-02-29": None, "2024-02-29 23:04:05.1234567": None}),
    ],
)  # fmt: skip
def test_a_text_is_read_exactly_or_not_at_all(kind: str, texts: dict[str, Any]) -> None:
    image = pa.table({"t": pa.array([*texts, None])})
    columns = {"t": ColumnType.parse("string")}
    found = evaluate(parse(f"cast(t, {kind})"), columns, image)
    assert dict(zip(texts, found.to_pylist(), strict=False)) == texts
    assert not found[len(texts)].is_valid


def test_a_truncation_that_leaves_the_range_is_null() -> None:
    image = pa.table({"v": pa.array([-(2**63), -(2**63) + 1, 2**63 - 1], pa.int64())})
    found = evaluate(parse("truncate(v, 10)"), {"v": ColumnType.parse("long")}, image)
    assert found.to_pylist() == [None, None, 2**63 - 8]


@pytest.mark.parametrize(
    "text",
    ["", "f(", "f(a", "f(a,)", "f(a b)", "a b", "(a)", ",", "'open", "a-b", "1.5", "``", "f((a))",
     "٣",
     "(" * 50, "upper(" * 30 + "a" + ")" * 30, "a" * (CHARACTERS_MAX + 1)],
)  # fmt: skip
def test_a_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("upcase(name)", "known: year"),
        ("year()", "takes a date"),
        ("year(at, at)", "takes a date"),
        ("year('2024')", "takes a date"),
        ("concat(name)", "takes a text"),
        ("concat(name, 7)", "takes a text"),
        ("substring(name, -1)", "number from 0"),
        ("substring(name, 3, 2)", "end before its start"),
        ("substring(name, id)", "number from 0"),
        ("truncate(id, 0)", "number from 1"),
        ("date_format(at, 'yy')", "yyyy"),
        ("date_format(at, name)", "pattern in quotes"),
        ("date_format(at, '''open')", "not closed"),
        ("cast(id, bigint)", "known: boolean"),
        ("cast(id, 'long')", "a type"),
        ("cast(id, decimal(50,2))", "38 digits"),
        ("coalesce(1, 'a')", "in common"),
        ("upper(truncate(upper(7), 2))", "takes a text"),
    ],
)
def test_errors_that_do_not_depend_on_columns_are_reported_without_them(
    text: str, why: str
) -> None:
    with pytest.raises(ConfigurationError, match=why):
        type_of(parse(text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("year(name)", "takes a date"),
        ("hour(day)", "takes a timestamp"),
        ("date_format(day, 'yyyy HH')", "no time"),
        ("upper(id)", "takes a text"),
        ("truncate(price, 10)", "whole number or a text"),
        ("cast(rate, long)", "no such cast"),
        ("cast(raw, string)", "no such cast"),
        ("coalesce(id, name)", "in common"),
        ("coalesce(nobody, 1)", "no such column"),
    ],
)
def test_errors_that_depend_on_columns_are_reported_with_them(text: str, why: str) -> None:
    type_of(parse(text))
    with pytest.raises(ConfigurationError, match=why):
        type_of(parse(text), COLUMNS)


def test_an_expression_has_one_spelling() -> None:
    for text in ("concat( name,'it''s' )", 'CONCAT(name, "it\'s")'):
        assert str(parse(text)) == "concat(name, 'it''s')"
    assert str(parse("coalesce(`odd name`,-1)")) == "coalesce(`odd name`, -1)"


def test_an_expression_names_the_columns_it_needs_and_no_types() -> None:
    text = "concat(name, cast(coalesce(id, n), decimal(12,2)), 'a')"
    assert sorted(columns_of(parse(text))) == ["id", "n", "name"]


def test_a_column_may_be_called_like_a_function() -> None:
    assert parse("year(year)") == Call("year", (Name("year"),))


def test_every_function_is_documented() -> None:
    from tests.support.machine import ROOT

    text = (ROOT / "docs" / "shaping.md").read_text()
    assert not [name for name in FUNCTIONS if f"`{name}(" not in text]
