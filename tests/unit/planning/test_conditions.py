"""Conditions in SQL: which rows they keep, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakesplice.errors import UsageError
from lakesplice.planning.filtering.conditions import parsed_condition

MOMENT = datetime(2026, 1, 1, 12, tzinfo=UTC)
TABLE = pa.table(
    {
        "n": pa.array([1, 2, 3, None], pa.int32()),
        "big": pa.array([2**63 - 1, -(2**63), 0, None], pa.int64()),
        "d": pa.array([Decimal("1.50"), Decimal("-2.25"), None, Decimal("0")], pa.decimal128(5, 2)),
        "f": pa.array([1.5, float("nan"), None, -1.0], pa.float64()),
        "t": pa.array(["a", "a%b", None, "B_"]),
        "b": pa.array([b"\x00", b"\x0a", None, b""], pa.binary()),
        "day": pa.array([date(2026, 1, 1), date(2026, 1, 2), None, None]),
        "at": pa.array([MOMENT, None, None, None], pa.timestamp("us", "UTC")),
        "local": pa.array([MOMENT.replace(tzinfo=None), None, None, None], pa.timestamp("us")),
        "flag": pa.array([True, False, None, True]),
        "a b": pa.array([1, 2, 3, 4]),
    }
)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("n = 2", [1]),
        ("2 = n", [1]),
        ("1 < n", [1, 2]),
        ("n >= 2.5", [2]),
        ("n <> 2", [0, 2]),
        ("not n = 2", [0, 2]),
        ("n in (1, 3)", [0, 2]),
        ("n not in (1, 3)", [1]),
        ("n not in (1, null)", []),
        ("n between 2 and 3", [1, 2]),
        ("n <=> null", [3]),
        ("n <=> 1", [0]),
        ("not (n <=> 1)", [1, 2, 3]),
        ("n is distinct from 1", [1, 2, 3]),
        ("t not like 'a%'", [3]),
        ("n is not distinct from null", [3]),
        ("n is null", [3]),
        ("n is not null", [0, 1, 2]),
        ("n = null", []),
        ("n > 99999999999999999999", []),
        ("big = 9223372036854775807", [0]),
        ("big < -9223372036854775807", [1]),
        ("d > 1", [0]),
        ("d = 1.5", [0]),
        ("d > -2.255", [0, 1, 3]),
        ("d < 123456789.123456", [0, 1, 3]),
        ("f > 0", [0]),
        ("f < 1e1", [0, 3]),
        ("t = 'a'", [0]),
        ("t like 'a%'", [0, 1]),
        ("t like '_'", [0]),
        ("not t like 'a%'", [3]),
        ("b = X'0A'", [1]),
        ("day = date'2026-01-02'", [1]),
        ("day < '2026-01-02'", [0]),
        ("at = timestamp'2026-01-01 12:00:00Z'", [0]),
        ("at = '2026-01-01T13:00:00+01:00'", [0]),
        ("at >= '2026-01-01 12:00:00'", [0]),
        ("local <= '2026-01-01 12:00:00'", [0]),
        ("local <= timestamp'2026-01-01 12:00:00'", [0]),
        ("at > date'2026-01-01'", [0]),
        ("n = cast('2' as bigint)", [1]),
        ("f = 1.5f", [0]),
        ("flag", [0, 3]),
        ("not flag", [1]),
        ("flag is false", [1]),
        ("flag = true and n = 1", [0]),
        ("n = 1 or (flag and n is null)", [0, 3]),
        ("`a b` = 4", [3]),
        ("true", [0, 1, 2, 3]),
    ],
)
def test_rows_are_kept_as_in_sql(condition: str, rows: list[int]) -> None:
    numbered = TABLE.append_column("row", pa.array(range(TABLE.num_rows)))
    found = numbered.filter(parsed_condition(condition, TABLE.schema))
    assert found.column("row").to_pylist() == rows


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ("n =", "isn't a SQL condition"),
        ("", "single SQL condition"),
        ("n = 1; n = 2", "filter"),
        ("m = 1", "no such column"),
        ("t.n = 1", "compares a column, given by its name"),
        ("n = d", "can't be compared"),
        ("1 = 1", "compares a column, given by its name"),
        ("lower(t) = 'a'", "compares a column, given by its name"),
        ("n + 1 = 2", "compares a column, given by its name"),
        ("n", "must be boolean"),
        ("n = 'one'", "can't be compared"),
        ("t = 1", "can't be compared"),
        ("flag = 1", "can't be compared"),
        ("day = '2026-13-01'", "can't be compared"),
        ("local = '2026-01-01 12:00:00Z'", "can't be compared"),
        ("at < date'2026-01-01 13:00:00'", "can't be compared"),
        ("n > cast('1.5' as int)", "can't be compared"),
        ("d = cast('1.504' as decimal(5,2))", "can't be compared"),
        ("f < 1e400", "can't be compared"),
        ("n is true", "IS can be followed only by"),
        ("n like '1%'", "this kind of condition"),
        ("n in (select 1)", "this kind of condition"),
        ("drop table n", "filter"),
    ],
)
def test_a_condition_that_does_not_fit_the_columns_is_named(condition: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        parsed_condition(condition, TABLE.schema)


@pytest.mark.slow
def test_many_values_and_many_conditions_are_taken() -> None:
    others = range(10, 1_009)
    many = f"n in (1, {', '.join(map(str, others))})"
    found = TABLE.filter(parsed_condition(many, TABLE.schema))
    assert found.column("n").to_pylist() == [1]
    for word, rows in (("or", [1, 2, 3]), ("and", [])):
        text = f" {word} ".join(f"n = {at}" for at in range(1, 101))
        assert TABLE.filter(parsed_condition(text, TABLE.schema)).column("n").to_pylist() == rows


@pytest.mark.parametrize(
    ("condition", "complaint"),
    [
        ("(" * 500 + "n = 1" + ")" * 500, "nested too deeply"),
        ("not " * 2_000 + "n = 1", "nested too deeply"),
        (" or ".join(f"n = {at}" for at in range(20_000)), "too long"),
        (" or ".join(f"n = {at}" for at in range(1_001)), "too many"),
        (f"n in ({', '.join(map(str, range(10_000)))})", "too many"),
        (" or ".join([f"n in ({', '.join(map(str, range(1_100)))})"] * 2), "too many"),
        (" or ".join(["flag"] * 2_001), "too many"),
        ("reflect('java.lang.System', 'exit')", "compares a column, given by its name"),
        ("java_method('a', 'b')", "compares a column, given by its name"),
    ],
)
def test_a_text_that_is_too_long_or_no_condition_is_refused_briefly(
    condition: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint) as refused:
        parsed_condition(condition, TABLE.schema)
    assert len(str(refused.value)) < 2_000
