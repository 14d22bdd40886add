"""Changes find their rows by key or by position, or are refused with the reason."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakesplice.errors import UnsupportedError, UsageError
from lakesplice.splicing.matching import MatchedChanges, match_by_key, match_by_position

ROWS = 1000


def source(table: pa.Table, **options: Any) -> pa.NativeFile:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return pa.BufferReader(sink.getvalue())


def numbered(rows: int = ROWS) -> pa.Table:
    at = np.arange(rows)
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("half", pa.int32()),
            pa.field("name", pa.string()),
            pa.field("must", pa.int16(), nullable=False),
        ]
    )
    names = [f"n{n}" for n in at]
    return pa.table([at[::-1], at // 2, names, np.ones(rows, np.int16)], schema=schema)


def by_key(changes: Mapping[str, Any] | pa.Table, *key: str) -> MatchedChanges:
    table = changes if isinstance(changes, pa.Table) else pa.table(dict(changes))
    return match_by_key(source(numbered()), "f.parquet", table, key)


def by_position(changes: Mapping[str, Any]) -> MatchedChanges:
    table = pa.table(dict(changes))
    return match_by_position(source(numbered()), "f.parquet", table, "at")


def test_rows_are_found_by_key_in_the_order_of_the_file() -> None:
    matched = by_key({"id": [999, 3, 5000, 998], "name": ["first", "late", "none", None]}, "id")
    edit = matched.edits.columns["name"]
    assert edit.rows.tolist() == [0, 1, 996]
    assert edit.values.to_pylist() == ["first", None, "late"]
    assert matched.unmatched == 1
    assert list(matched.edits.columns) == ["name"]


def test_a_key_of_several_columns_finds_one_row() -> None:
    matched = by_key({"half": [0, 1], "name": ["n1", "n1"], "id": [-1, -2]}, "half", "name")
    assert matched.edits.rows.tolist() == [1]
    assert matched.unmatched == 1


@given(st.sets(st.integers(-20, ROWS + 20)), st.integers(0, 2**31))
def test_every_key_finds_its_row_and_only_that(keys: set[int], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(sorted(keys)).astype(np.int64)
    matched = by_key({"id": order, "name": [f"new{key}" for key in order]}, "id")
    found = sorted(ROWS - 1 - key for key in keys if 0 <= key < ROWS)
    assert matched.edits.rows.tolist() == found
    assert matched.unmatched == len(keys) - len(found)
    values = matched.edits.columns["name"].values.to_pylist()
    assert values == [f"new{ROWS - 1 - row}" for row in found]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["b", "a", None]),
        pa.array([b"b", b"a", None], pa.binary(1)),
        pa.array([2, 1, None], pa.uint8()),
        pa.array([Decimal("1.20"), Decimal("-1.20"), None]),
        pa.array([dt.date(2020, 1, 2), dt.date(1500, 1, 1), None]),
        pa.array([2, 1, None], pa.timestamp("us", "UTC")),
        pa.array([2, 1, None], pa.time64("us")),
        pa.array([1.5, -1.5, None]),
        pa.array([True, False, None]),
        pa.array(["b", "a", None]).dictionary_encode(),
    ],
    ids=lambda keys: str(keys.type),
)
def test_keys_may_be_of_any_flat_type(keys: pa.Array) -> None:
    file = source(pa.table({"key": keys, "x": [1, 2, 3]}))
    changes = pa.table({"key": keys.take(pa.array([1])), "x": [20]})
    matched = match_by_key(file, "f.parquet", changes, ["key"])
    assert matched.edits.rows.tolist() == [1]
    assert matched.edits.columns["x"].values.to_pylist() == [20]


def test_values_are_cast_to_the_columns_they_change() -> None:
    matched = by_key(pa.table({"id": pa.array([7], pa.uint8()), "half": [12]}), "id")
    assert matched.edits.columns["half"].values.type == pa.int32()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": [1, 1], "name": ["a", "b"]}, "share a key"),
        ({"id": [1, None], "name": ["a", "b"]}, "no key"),
        ({"id": [1], "nome": ["a"]}, "the file lacks.*nome"),
        ({"name": ["a"]}, "lack a column of the key"),
        ({"id": [1]}, "have only key columns"),
        ({"id": ["x"], "name": ["a"]}, "don't fit.*id"),
        ({"id": [1], "half": [2**40]}, "don't fit.*half"),
        ({"id": [1], "must": [None]}, "can't be null.*must"),
    ],
)
def test_changes_that_do_not_fit_are_refused(changes: Mapping[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        by_key(changes, "id")


@pytest.mark.parametrize("zones", [(None, "UTC"), ("UTC", None)])
def test_a_time_fits_a_column_only_if_both_have_a_zone_or_neither(
    zones: tuple[str | None, str | None],
) -> None:
    theirs, ours = (pa.timestamp("us", zone) for zone in zones)
    file = source(pa.table({"id": [1], "at": pa.array([0], theirs)}))
    changes = pa.table({"id": [1], "at": pa.array([5], ours)})
    with pytest.raises(UsageError, match="with a zone"):
        match_by_key(file, "f.parquet", changes, ["id"])


def test_a_key_that_rows_share_is_refused_where_a_change_has_it() -> None:
    with pytest.raises(UsageError, match=r"rows of the file share a key.*5"):
        by_key({"half": [5], "name": ["a"]}, "half")


def test_rows_are_found_by_position() -> None:
    matched = by_position({"at": [ROWS - 1, 0], "name": ["late", "early"]})
    edit = matched.edits.columns["name"]
    assert edit.rows.tolist() == [0, ROWS - 1]
    assert edit.values.to_pylist() == ["early", "late"]


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ([-1], "beyond"),
        ([0, -1], "beyond"),
        ([ROWS], "beyond"),
        ([3, 3], "twice"),
        ([None], "null"),
        ([0.5], "whole"),
    ],
)
def test_positions_that_name_no_row_are_refused(positions: list[Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        by_position({"at": positions, "name": ["a"] * len(positions)})


def test_old_times_are_refused_for_files_of_the_old_calendar() -> None:
    table = pa.table({"id": [1], "day": pa.array([dt.date(2020, 1, 1)])})
    file = source(table.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""}))
    old = pa.table({"id": [1], "day": pa.array([dt.date(1500, 1, 1)])})
    with pytest.raises(UnsupportedError, match="calendar"):
        match_by_key(file, "f.parquet", old, ["id"])
    new = pa.table({"id": [1], "day": pa.array([dt.date(1600, 1, 1)])})
    assert match_by_key(file, "f.parquet", new, ["id"]).edits.rows.tolist() == [0]


def test_a_key_column_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakesplice.splicing.matching._BATCH_ROWS_MAX", 64)
    matched = by_key({"id": list(range(0, ROWS, 10)), "half": [0] * 100}, "id")
    assert matched.edits.rows.tolist() == [*range(9, ROWS, 10)]
