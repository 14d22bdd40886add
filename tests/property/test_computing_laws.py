"""What holds for every computed value: no value fails, and what is exact is exact."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.errors import ConfigurationError
from lakesplice.model.types import ColumnType
from lakesplice.planning.shape.computing.evaluation import evaluate, type_of
from lakesplice.planning.shape.computing.expression import Expression, parse
from tests.support.drawing import examples

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "byte": st.integers(-(2**7), 2**7 - 1),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
    "double": st.floats(),
    "float": st.floats(width=32),
    "decimal(9,2)": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "decimal(38,37)": st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -37))
    ),
    "string": st.one_of(
        st.text(max_size=8),
        st.from_regex(r"[+-]?[0-9.]{0,25}([eE][0-9]{1,3})?", fullmatch=True),
        st.from_regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]([0-9]{2}:){2}[0-9]{2})?", fullmatch=True),
    ),
    "binary": st.binary(max_size=4),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
}  # fmt: skip
TYPES = {kind: ColumnType.parse(kind) for kind in VALUES}
TARGETS = [*VALUES, "decimal(3,3)", "decimal(20,0)", "short"]
CALLS = [
    "year(c)", "month(c)", "day(c)", "hour(c)", "minute(c)", "second(c)", "upper(c)", "lower(c)",
    "trim(c)", "date_format(c, 'yyyyMMdd')", "date_format(c, 'HHmmss.SSSSSS')",
    "substring(c, 1, 3)", "truncate(c, 7)", "concat(c, c)", "coalesce(c, c)",
    *(f"cast(c, {to})" for to in TARGETS),
]  # fmt: skip


@st.composite
def calls(draw: st.DrawFn) -> tuple[Expression, str, list[Any]]:
    """A call that its column's type allows, and values of the column, some null."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    possible = []
    for text in CALLS:
        expression = parse(text)
        try:
            type_of(expression, {"c": TYPES[kind]})
        except ConfigurationError:
            continue
        possible.append(expression)
    values = draw(st.lists(st.none() | VALUES[kind], max_size=4))
    return draw(st.sampled_from(possible)), kind, values


def values_of(text: Expression | str, kind: str, values: list[Any]) -> list[Any]:
    expression = parse(text) if isinstance(text, str) else text
    image = pa.table({"c": pa.array(values, TYPES[kind].arrow)})
    found = evaluate(expression, {"c": TYPES[kind]}, image)
    expected = type_of(expression, {"c": TYPES[kind]})
    assert expected is not None
    assert found.type == expected.arrow
    found.validate(full=True)
    return list(found.to_pylist())


@settings(max_examples=examples(400), deadline=None)
@given(calls())
def test_no_value_fails_and_null_stays_null(case: tuple[Expression, str, list[Any]]) -> None:
    expression, kind, values = case
    found = values_of(expression, kind, values)
    assert len(found) == len(values)
    assert all(new is None for new, old in zip(found, values, strict=True) if old is None)


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(["byte", "integer", "long", "decimal(9,2)", "decimal(38,37)"]), st.data())
def test_a_number_written_and_read_again_is_the_same(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(VALUES[kind], min_size=1))
    texts = values_of("cast(c, string)", kind, values)
    assert values_of(f"cast(c, {kind})", "string", texts) == values
    assert [Decimal(text) for text in texts] == values
    assert not any("e" in text.lower() for text in texts)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES["long"] | VALUES["byte"], min_size=1))
def test_a_cast_to_fewer_bits_keeps_the_value_or_is_null(values: list[int]) -> None:
    found = values_of("cast(c, short)", "long", values)
    assert found == [value if -(2**15) <= value < 2**15 else None for value in values]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES["timestamp"], min_size=1))
def test_moments_have_the_parts_and_days_that_a_calendar_says(moments: list[datetime]) -> None:
    for name in ("year", "month", "day", "hour", "minute", "second"):
        found = values_of(f"{name}(c)", "timestamp", moments)
        assert found == [getattr(moment, name) for moment in moments]
    assert values_of("cast(c, date)", "timestamp", moments) == [one.date() for one in moments]
    texts = values_of("cast(c, string)", "timestamp", moments)
    assert texts == [f"{one.year:04}-{one:%m-%d %H:%M:%S.%f}" for one in moments]
    assert values_of("cast(c, timestamp)", "string", texts) == moments


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES["date"], min_size=1))
def test_a_date_is_read_as_it_is_written(days: list[date]) -> None:
    texts = values_of("cast(c, string)", "date", days)
    assert texts == [day.isoformat() for day in days]
    assert values_of("cast(c, date)", "string", texts) == days
    midnights = values_of("cast(c, timestamp)", "date", days)
    assert midnights == [EPOCH + timedelta(days=(day - EPOCH.date()).days) for day in days]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES["long"], min_size=1), st.integers(1, 10**18 - 1))
def test_a_truncated_number_is_a_multiple_at_or_below_it(values: list[int], width: int) -> None:
    found = values_of(f"truncate(c, {width})", "long", values)
    expected = [value - value % width for value in values]
    assert found == [value if value >= -(2**63) else None for value in expected]
