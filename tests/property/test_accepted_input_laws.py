"""Every reader opens what a writing call accepts; a refused call changes nothing."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.errors import LakespliceError, UsageError
from lakesplice.storage.local import LocalStore
from lakesplice.table.by_hand.hand_fed_table import HandFedTable
from lakesplice.table.by_hand.new_table import create_table
from tests.support.by_hand import created, opened, rows_of, tools
from tests.support.drawing import examples
from tests.support.simulated import memory_folder

NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"]).buffers())
# Not all are in accord with the types of what they are given to: callers give anything.
ODD: list[Any] = [
    None, "", "1", "app", "\ud800", b"app", 0, 1, -1, 2**63 - 1, 2**63, 2**70, True, 1.5,
    math.nan, math.inf, -math.inf, (), [],
]  # fmt: skip
TRANSACTIONS = st.sampled_from(ODD) | st.lists(st.sampled_from(ODD), max_size=3).map(tuple)
NAMES = st.lists(
    st.sampled_from(
        [
            "",
            "na me",
            "na_x20_me",
            "_is_deleted",
            "_IS_DELETED",
            "_row",
            "a",
            "A",
            "é",
            "a\0",
            "%41",
        ]
    )
    | st.text(max_size=3).filter(lambda text: text.isprintable()),
    min_size=1,
    max_size=3,
)
COLUMNS: list[pa.Array] = [
    pa.array([1], pa.int64()),
    pa.array([2**64 - 1], pa.uint64()),
    pa.array([None], pa.null()),
    pa.array([math.nan], pa.float64()),
    pa.array([-0.0], pa.float32()),
    pa.array([math.inf], pa.float16()),
    pa.array(["text"]),
    NOT_UTF8,
    pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), NOT_UTF8),
    pa.array([b"\xff"], pa.binary(1)),
    pa.array([0], pa.time64("us")),
    pa.array([0], pa.timestamp("s")),
    pa.array([100], pa.decimal128(3, -2)),
    pa.array([0], pa.decimal128(38, 38)),
    pa.array([1], pa.decimal256(76, 0)),
    pa.array([[1]], pa.list_(pa.int8())),
]


def store() -> LocalStore:
    return LocalStore(tempfile.mkdtemp(dir=memory_folder())).within("shop/goods")


def require_opens(place: LocalStore, rows: int) -> None:
    """By our own reader, by deltalake and by Polars, each value made one of Python's."""
    mine = opened(place)
    assert len(mine.read().to_pylist()) == rows
    assert mine.read(columns=[]).num_rows == rows
    assert DeltaTable(str(place.root)).to_pyarrow_table().num_rows == rows
    assert len(pl.read_delta(str(place.root)).rows()) == rows


@settings(max_examples=examples(40))
@given(NAMES, st.lists(st.sampled_from(COLUMNS), min_size=3, max_size=3), st.integers(0, 2))
def test_columns_of_any_names_and_types(
    names: Sequence[str], columns: Sequence[pa.Array], key: int
) -> None:
    place, rows = store(), pa.Table.from_arrays(list(columns[: len(names)]), names=list(names))
    try:
        create_table(place, rows, [names[min(key, len(names) - 1)]], tools())
    except UsageError:
        assert not list(place.list("_delta_log"))
        return
    table = HandFedTable(place, tools(2))
    table.upsert(rows)  # by the names that it was created with
    table.compact()
    require_opens(place, 1)
    assert table.read(columns=list(names)).column_names == list(names)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(st.lists(TRANSACTIONS, min_size=1, max_size=8))
def test_transactions_of_any_values(transactions: Sequence[Any]) -> None:
    place = store()
    table = created(place, [{"id": 1}])
    for transaction in transactions:
        before = table.version
        try:
            table.upsert(pa.table({"id": [1], "n": [2]}), transaction=transaction)
        except UsageError:
            assert table.refresh().version == before
        assert rows_of(opened(place)).keys() == {1}
    require_opens(place, 1)


@pytest.mark.parametrize("value", ODD)
def test_options_of_any_values(value: Any, tmp_path: Path) -> None:
    place = LocalStore(tmp_path).within("shop/goods")
    table = created(place, [{"id": 1}])
    calls: list[Any] = [
        lambda: table.compact(threads=value),
        lambda: table.vacuum(retention_hours=value, readers_may_fail=True),
        lambda: table.purge(older_than_hours=value),
        lambda: table.read(as_of=value),
        lambda: table.read(version=value),
        lambda: table.read(filter=value),
        lambda: table.read(view=value),
    ]
    for call in calls:
        try:
            call()
        except LakespliceError:
            continue
    require_opens(place, 1)


def test_whole_numbers_are_decimals_where_they_fit(tmp_path: Path) -> None:
    columns = pa.schema(
        [("id", pa.int64()), ("d", pa.decimal128(10, 0)), ("e", pa.decimal128(38, 30))]
    )
    place = LocalStore(tmp_path).within("shop/goods")
    create_table(place, columns, ["id"], tools())
    table = HandFedTable(place, tools(2))
    table.upsert(pa.table({"id": [1], "d": [-(10**10) + 1], "e": [99_999_999]}))
    assert [str(row["d"]) for row in table.read().to_pylist()] == ["-9999999999"]
    for row in ({"d": 10**10, "e": 0}, {"d": 0, "e": 10**8}):
        with pytest.raises(UsageError, match="values that its type can't hold"):
            table.upsert(pa.Table.from_pylist([{"id": 1, **row}]))
