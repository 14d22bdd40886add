"""A filter that is pushed down keeps the same rows as a filter over all rows, whatever their
values.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.model.change import Op
from lakesplice.model.schema import Column, TableSchema
from lakesplice.model.types import ColumnType
from lakesplice.planning.filtering.filters import Filter
from lakesplice.table.reading.table import Table
from tests.support.drawing import examples
from tests.support.every_type import EVERY_TYPE, HIGH, LOW, TYPES
from tests.support.made import MadeTable, Row
from tests.support.simulated import folder

FLOATS = (math.nan, -0.0, 0.0, 6.0, -1.5, math.inf, -math.inf)
SMALL = {
    "byte": (0, 1), "short": (0, 1), "integer": (0, 1), "float": FLOATS, "double": FLOATS,
    "string": ("a", "b", "é" * 70), "date": (dt.date(2026, 1, 1),), "binary": (b"a",),
}  # fmt: skip
POOLS = {
    name: (None, low, high, *SMALL.get(kind, ()))
    for name, kind, low, high in zip(EVERY_TYPE.names, TYPES, LOW, HIGH, strict=True)
}
KEY = EVERY_TYPE.key[0]
NAMES = [name for name in POOLS if name != KEY]
FLOATING = [name for name in NAMES if pa.types.is_floating(EVERY_TYPE.arrow.field(name).type)]
Values = Sequence[Any]
COMPARISONS = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)  # fmt: skip


def literal(name: str, value: Any) -> pa.Scalar:
    return pa.scalar(value, EVERY_TYPE.arrow.field(name).type)


def inverse(field: pc.Expression) -> pc.Expression:
    """What tells the two zeros apart."""
    return pc.divide(pc.scalar(1.0), field)


@st.composite
def leaves(draw: st.DrawFn, name: str) -> pc.Expression:
    field, kind = pc.field(name), EVERY_TYPE.arrow.field(name).type
    values = [literal(name, value) for value in POOLS[name]]
    compare, value = draw(st.sampled_from(COMPARISONS)), draw(st.sampled_from(values))
    forms = [
        compare(field, value),
        compare(field, value),
        field.is_null(),
        field.is_null(nan_is_null=pa.types.is_floating(kind)),
        field.is_valid(),
        field.isin(pa.array(draw(st.lists(st.sampled_from(POOLS[name]), max_size=3)), kind)),
    ]
    if pa.types.is_floating(kind):
        forms += [pc.is_nan(field), pc.is_finite(field), compare(inverse(field), value)]
    if pa.types.is_boolean(kind):
        forms.append(field)
    return draw(st.sampled_from(forms))


def conditions_on(name: str) -> st.SearchStrategy[pc.Expression]:
    return st.recursive(
        leaves(name),
        lambda inner: (
            inner.map(operator.invert)
            | st.tuples(inner, inner).map(lambda both: both[0] & both[1])
            | st.tuples(inner, inner).map(lambda both: both[0] | both[1])
        ),
        max_leaves=3,
    )


@st.composite
def cases(
    draw: st.DrawFn,
) -> tuple[str, Sequence[Values], Values, Sequence[pc.Expression]]:
    """One column, since the more there are the seldomer a row group's bounds decide: its values in
    files of a few rows, those that wait for the first row, and conditions on it.
    """
    name = draw(st.sampled_from((*NAMES, *FLOATING * 3)))
    value = st.sampled_from(POOLS[name])
    files = draw(st.lists(st.lists(value, min_size=1, max_size=3), min_size=1, max_size=5))
    changed = draw(st.lists(value, max_size=1))
    return name, files, changed, draw(st.lists(conditions_on(name), min_size=8, max_size=16))


def shown(rows: pa.Table) -> list[str]:
    """As text, in which NaN is itself and the two zeros differ."""
    return [repr(row) for row in sorted(rows.to_pylist(), key=lambda row: row[KEY])]


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(cases())
def test_a_filter_keeps_what_it_keeps_of_all_rows(
    case: tuple[str, Sequence[Values], Values, Sequence[pc.Expression]],
) -> None:
    name, files, changed, conditions = case
    keys = iter(range(100))
    nulls = dict.fromkeys(POOLS)
    written = [[nulls | {KEY: next(keys), name: value} for value in file] for file in files]
    with folder() as root:
        made = MadeTable(root, EVERY_TYPE)
        made.insert(*written)
        if changed:
            made.change([(Op.UPDATE, nulls | {KEY: 0, name: value}) for value in changed])
        truth: dict[str, list[Row]] = {
            "read_optimised": [row for file in written for row in file],
            "real_time": made.live(),
        }
        opened = Table(made.store)
        for view, rows in truth.items():
            whole = pa.Table.from_pylist(rows, schema=pa.schema(EVERY_TYPE.user_fields))
            for condition in conditions:
                found = opened.read(view, [KEY, name], filter=condition)
                expected = whole.filter(condition).select([KEY, name])
                assert shown(found) == shown(expected)


def test_zeros_of_both_signs_in_one_row_group_are_two_values(tmp_path: Path) -> None:
    names = {kind: name for name, kind in zip(EVERY_TYPE.names, TYPES, strict=True)}
    field = pc.field(names["double"])
    made = MadeTable(tmp_path, EVERY_TYPE)
    nulls = dict.fromkeys(POOLS)
    made.insert([nulls | {KEY: at, names["double"]: zero} for at, zero in enumerate((0.0, -0.0))])
    for condition, key in ((inverse(field) < 0, 1), (inverse(field) > 0, 0)):
        assert Table(made.store).read(filter=condition)[KEY].to_pylist() == [key]


def test_a_filter_reads_only_the_columns_that_it_refers_to() -> None:
    stored, sources = ("f", "fi", "field_ref", "na_x20_me"), ("f", "fi", "field_ref", "na me")
    types = ("long", "string", "double", "integer")
    columns = [
        Column(at, name, source, ColumnType.parse(kind), kind)
        for at, (name, source, kind) in enumerate(zip(stored, sources, types, strict=True))
    ]
    schema = TableSchema(tuple(columns), ("f",), (0, 4))
    for condition, used in (
        (pc.field("fi") == "f field_ref na me FieldPath(0)", {"fi"}),
        ((pc.field("na me") > 5) & pc.field("f").isin([1, 2]), {"na_x20_me", "f"}),
        (pc.field("fi").isin(["é" * 100, "f"]), {"fi"}),
        (pc.scalar(True), set()),
    ):
        assert Filter(condition, schema).columns == used
