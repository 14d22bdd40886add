"""Compares two tables by key and names the first difference in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.names import SYSTEM_COLUMNS


class DifferenceKind(StrEnum):
    """How two tables differ; the most serious kind comes first."""

    COLUMNS = "columns"
    TYPE = "type"
    DUPLICATE_KEY = "duplicate-key"
    MISSING_ROW = "missing-row"
    EXTRA_ROW = "extra-row"
    VALUE = "value"


@dataclass(frozen=True)
class Difference:
    """The first difference; there are `count` of its kind.

    `key` is the row's key, empty if whole tables differ; `column` is empty unless the difference is
    in one column.
    """

    kind: DifferenceKind
    count: int
    expected: Any
    actual: Any
    key: tuple[Any, ...] = ()
    column: str = ""

    def __str__(self) -> str:
        where = f" at key {self.key}" if self.key else ""
        of = f" in column {self.column}" if self.column else ""
        return (
            f"{self.kind}{of}{where}: expected {self.expected!r}, got {self.actual!r}"
            f" ({self.count} of this kind)"
        )


def compare(expected: pa.Table, actual: pa.Table, key: Sequence[str]) -> Difference | None:
    """Return the first difference; None if both have the same rows, in any order.

    Columns are matched by name. System columns that only `actual` has are ignored, and so are
    Arrow's ways of storing one logical type (large strings, views, dictionaries, time units). A
    null equals a null, and a NaN equals a NaN.
    """
    own = set(actual.column_names) - set(expected.column_names)
    actual = actual.drop_columns([name for name in SYSTEM_COLUMNS if name in own])
    names = expected.column_names
    if set(names) != set(actual.column_names):
        return Difference(DifferenceKind.COLUMNS, 1, sorted(names), sorted(actual.column_names))
    columns: dict[str, pa.ChunkedArray] = {}
    for name in names:
        column = _in_type(actual[name], expected.schema.field(name).type)
        if column is None:
            types = expected.schema.field(name).type, actual.schema.field(name).type
            return Difference(DifferenceKind.TYPE, 1, str(types[0]), str(types[1]), (), name)
        columns[name] = column
    expected, actual = _sorted(expected, key), _sorted(pa.table(columns), key)
    return _keys_differ(expected, actual, key) or _values_differ(expected, actual, key)


def _sorted(table: pa.Table, key: Sequence[str]) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in key]).combine_chunks()


def _in_type(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | None:
    """The column in the wanted type if both types have the same meaning, otherwise None."""
    plain = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if plain == wanted and plain == column.type:
        return column
    return column.cast(wanted) if _logical(plain) == _logical(wanted) else None


def _logical(type_: pa.DataType) -> object:
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_):
        return pa.binary()
    if pa.types.is_decimal(type_):
        return ("decimal", type_.precision, type_.scale)
    if pa.types.is_timestamp(type_):
        return ("timestamp", type_.tz is not None)
    return type_


def _keys(table: pa.Table, key: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in key), strict=True))


def _keys_differ(expected: pa.Table, actual: pa.Table, key: Sequence[str]) -> Difference | None:
    """Find rows that one table lacks, and keys that it has twice."""
    found = _keys(actual, key)
    if len(set(found)) < len(found):
        twice = [one for one, following in pairwise(found) if one == following]
        times = found.count(twice[0])
        return Difference(DifferenceKind.DUPLICATE_KEY, len(twice), 1, times, twice[0])
    wanted = _keys(expected, key)
    if wanted == found:
        return None
    missing = _without(wanted, found)
    if missing:
        row = expected.slice(wanted.index(missing[0]), 1).to_pylist()[0]
        return Difference(DifferenceKind.MISSING_ROW, len(missing), row, None, missing[0])
    extra = _without(found, wanted)
    row = actual.slice(found.index(extra[0]), 1).to_pylist()[0]
    return Difference(DifferenceKind.EXTRA_ROW, len(extra), None, row, extra[0])


def _without(keys: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    known = set(others)
    return [key for key in keys if key not in known]


def _values_differ(expected: pa.Table, actual: pa.Table, key: Sequence[str]) -> Difference | None:
    """Find the first column, in the expected order, that differs; both tables are sorted by key."""
    for name in expected.column_names:
        rows = _unequal_rows(expected[name], actual[name])
        if rows:
            row = rows[0]
            values = expected[name][row].as_py(), actual[name][row].as_py()
            identity = tuple(expected[part][row].as_py() for part in key)
            return Difference(DifferenceKind.VALUE, len(rows), *values, identity, name)
    return None


def _unequal_rows(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> list[int]:
    if expected.equals(actual):
        return []
    differ = pc.fill_null(pc.not_equal(expected, actual), False)
    differ = pc.or_(differ, pc.xor(pc.is_null(expected), pc.is_null(actual)))
    if pa.types.is_floating(expected.type):
        both = pc.and_(pc.is_nan(expected), pc.is_nan(actual))
        differ = pc.and_(differ, pc.invert(pc.fill_null(both, False)))
    rows: list[int] = pc.indices_nonzero(differ).to_pylist()
    return rows
