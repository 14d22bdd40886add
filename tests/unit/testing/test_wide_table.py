"""The benchmarks' table: its events and its truth agree."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record, replay
from lakesplice.testing.shop import Event, WideTable


def _replayed(events: Iterable[Event], table: WideTable) -> pa.Table:
    records = [Record(e.topic, 0, offset, e.key, e.value) for offset, e in enumerate(events)]
    fields = {table.topic: [column.connect_field for column in table.spec.columns]}
    return replay(records, fields=fields)[table.topic].table()


@pytest.mark.slow
@pytest.mark.parametrize("with_schemas", [True, False])
def test_a_replay_is_the_truth(with_schemas: bool) -> None:
    table = WideTable(300, seed=5, with_schemas=with_schemas)
    events = list(table.snapshot())
    rng = np.random.default_rng(1)
    events += table.updates(rng.permutation(np.arange(1, 301))[:150])
    events += table.updates(np.array([7, 7, 8, 7]))
    assert compare(table.truth(), _replayed(events, table), ("id",)) is None


@pytest.mark.slow
def test_an_update_changes_two_columns_and_starts_from_the_row_as_it_stood() -> None:
    table = WideTable(10)
    first, second = (json.loads(e.value) for e in table.updates(np.array([3, 3])) if e.value)
    assert second["before"] == first["after"]
    changed = [name for name, value in first["before"].items() if first["after"][name] != value]
    assert changed == ["net_profit", "changed_at"]


def test_a_part_of_the_truth_is_a_slice_of_the_whole() -> None:
    table = WideTable(100, seed=2)
    assert table.truth(11, 20) == table.truth().slice(10, 10)
