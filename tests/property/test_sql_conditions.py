"""A condition written in SQL selects the rows that it selects in DuckDB, or it is refused.

Others' SQL engines have more than ours. So these texts have parts that ours lacks too: such a part
must be refused, never left out.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.errors import UsageError
from lakesplice.planning.filtering.conditions import parsed_condition
from lakesplice.planning.filtering.expressions import edit_condition, evaluated
from tests.support.drawing import examples

ROWS = pa.table(
    {
        "s": pa.array(["", "a", "ab", "b_", "A%", None, " a", "é"]),
        "n": pa.array([0, 1, -1, None, 7, 2**31 - 1, 3, 1], pa.int32()),
        "d": pa.array(
            [None, *map(Decimal, ["0.00", "1.50", "-1.50", "7.00", "0.01", "3.00", "1.00"])]
        ),
        "b": pa.array([True, False, None, True, False, True, None, False]),
        "day": pa.array([date(2024, 1, 1), None, *[date(2024, 2, day) for day in range(1, 7)]]),
    }
)
_LITERALS = {
    "s": ("''", "'a'", "'ab'", "'A%'", "NULL"),
    "n": ("0", "1", "-1", "7", "1.5", "NULL"),
    "d": ("0", "1.5", "-1.50", "7", "0.014", "NULL"),
    "day": ("DATE '2024-01-01'", "DATE '2024-02-03'"),
}
_PATTERNS = ("'a%'", "'%'", "'_'", "''", "'%b%'")
_NAMES = st.sampled_from(sorted(_LITERALS))
_LOGICAL = ("AND", "OR")


@st.composite
def leaves(draw: st.DrawFn) -> str:
    """A condition that edits have; filters have some of these."""
    name = draw(_NAMES)
    one, other, third = (draw(st.sampled_from(_LITERALS[name])) for _ in range(3))
    negated = draw(st.sampled_from(("", "NOT ")))
    forms = (
        f"{name} {draw(st.sampled_from(('=', '<>', '<', '<=', '>', '>=')))} {one}",
        f"{name} {negated}IN ({one}, {other})",
        f"{name} {negated}BETWEEN {one} AND {other}",
        f"{name} IS {negated}NULL",
        f"{name} IS {negated}DISTINCT FROM {one}",
        f"s {negated}LIKE {draw(st.sampled_from(_PATTERNS))}",
        f"b IS {negated}TRUE",
        f"{negated}b",
        f"coalesce({name}, {one}) = {third}",
        f"CASE WHEN {name} = {one} THEN b ELSE n > 0 END",
        f"n % 2 = 1 AND {name} = {one}",
    )
    return draw(st.sampled_from(forms))


@st.composite
def foreign_leaves(draw: st.DrawFn) -> str:
    """A condition that only DuckDB, or nobody, has."""
    negated, pattern = draw(st.sampled_from(("", "NOT "))), draw(st.sampled_from(_PATTERNS))
    low, high = (draw(st.sampled_from(_LITERALS["n"])) for _ in range(2))
    forms = (
        f"n {negated}BETWEEN SYMMETRIC {low} AND {high}",
        f"s {negated}ILIKE {pattern}",
        f"s {negated}LIKE {pattern} ESCAPE '/'",
        f"s {negated}LIKE ANY ('a%', 'b%')",
        f"n {negated}IN (SELECT 1)",
        f"n = ANY ({low})",
        "s COLLATE nocase = 'A'",
        "trim(BOTH 'a' FROM s) = 'b'",
        "trim(s, 'a') = 'b'",
        "round(d, 1, 1) = 1.5",
        "concat_ws(',', s, 'x') = 'a,x'",
        "TRY_CAST(s AS INT) IS NULL",
        "floor(day TO MONTH) = day",
        "substring(s, -1) = 'b'",
        "length(s, 1) = 1",
    )
    return draw(st.sampled_from(forms))


def composed(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaf,
        lambda inner: (
            inner.map(lambda one: f"NOT ({one})")
            | st.tuples(inner, st.sampled_from(_LOGICAL), inner).map(
                lambda both: f"({both[0]}) {both[1]} ({both[2]})"
            )
        ),
        max_leaves=3,
    )


def selected(text: str) -> list[list[bool]]:
    """Which rows the text selects as a filter and as an edit's condition, if it isn't refused."""
    found = []
    for translate in (parsed_condition, edit_condition):
        try:
            condition = translate(text, ROWS.schema)
        except UsageError:
            continue
        found.append([bool(value) for value in evaluated([condition], ROWS)[0].to_pylist()])
    return found


def of_duckdb(engine: duckdb.DuckDBPyConnection, text: str) -> list[bool]:
    rows = engine.execute(f"SELECT coalesce({text}, false) FROM rows").fetchall()
    return [value for (value,) in rows]


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.register("rows", ROWS)
    return connection


@pytest.mark.slow
@settings(max_examples=examples(200))
@given(composed(leaves()))
def test_a_condition_selects_what_it_selects_in_duckdb(
    engine: duckdb.DuckDBPyConnection, text: str
) -> None:
    found = selected(text)
    assert found, "an edit has all of these"
    assert found == [of_duckdb(engine, text)] * len(found)


@settings(max_examples=examples(60))
@given(foreign_leaves())
def test_a_part_that_is_not_supported_is_refused_and_never_left_out(
    engine: duckdb.DuckDBPyConnection, text: str
) -> None:
    for found in selected(text):
        assert found == of_duckdb(engine, text)


@pytest.mark.parametrize(
    "text",
    [
        "n BETWEEN SYMMETRIC 5 AND 1",
        "round(d, 1, 1) = 1.5",
        "floor(day TO DAY) = day",
        "trim(BOTH 'a' FROM s) = ''",
        "CAST(s AS INT DEFAULT 5 ON CONVERSION ERROR) = 5",
        "TRY_CAST(s AS INT) = 5",
        "concat_ws(',', s, s) = ''",
    ],
)
def test_a_part_that_nobody_reads_is_refused_and_named(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        edit_condition(text, ROWS.schema)
    assert re.search("isn't supported|isn't a SQL condition", str(refused.value))
