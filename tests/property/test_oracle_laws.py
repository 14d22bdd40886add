"""The shop's own rows equal the oracle's replay of its events."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakesplice.testing.compare import compare
from lakesplice.testing.oracle import Record, replay
from lakesplice.testing.shop import WIDE, Event, Shop, TableSpec, columns, small_tables
from tests.support.drawing import examples

PARTITIONS = 3
TABLES = st.sampled_from([Shop(0).tables, (WIDE,), small_tables(3)])


def _records(events: list[Event]) -> list[Record]:
    """Events as they would be read back: a partition per key, offsets within it."""
    offsets: dict[tuple[str, int], int] = {}
    records = []
    for event in events:
        place = event.topic, crc32(event.key or b"") % PARTITIONS
        offset = offsets[place] = offsets.get(place, -1) + 1
        records.append(Record(*place, offset, event.key, event.value))
    return records


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 2**32), tables=TABLES, count=st.integers(1, 400), schemas=st.booleans())
def test_a_replay_of_the_events_is_the_truth(
    seed: int, tables: Sequence[TableSpec], count: int, schemas: bool
) -> None:
    shop = Shop(seed, tables, rows=20, with_schemas=schemas)
    records = _records(shop.snapshot() + shop.step(count))
    fields = {
        topic: [column.connect_field for column in table.columns]
        for topic, table in zip(shop.topics, shop.tables, strict=True)
    }
    states = replay(records, fields=None if schemas else fields)
    for topic, table in zip(shop.topics, shop.tables, strict=True):
        if topic in states:
            assert compare(shop.truth(table.name), states[topic].table(), table.key) is None
        else:
            assert shop.truth(table.name).num_rows == 0


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(seed: int, order: Random) -> None:
    shop = Shop(seed, rows=10)
    records = _records(shop.snapshot() + shop.step(200))
    again = records + order.sample(records, len(records) // 3)
    order.shuffle(again)
    straight, shuffled = replay(records), replay(again)
    for topic, state in straight.items():
        assert compare(state.table(), shuffled[topic].table(), state.key) is None


@given(seed=st.integers(0, 1000), cut=st.integers(0, 60))
@settings(max_examples=examples(20))
def test_a_replay_up_to_offsets_is_the_replay_of_what_lies_before_them(seed: int, cut: int) -> None:
    shop = Shop(seed, rows=10)
    records = _records(shop.snapshot() + shop.step(100))
    until = {(record.topic, record.partition): cut for record in records}
    before = replay(record for record in records if record.offset < cut)
    for topic, state in replay(records, until=until).items():
        assert state == before[topic]


@pytest.mark.slow
def test_an_added_column_is_known_of_rows_that_changed_since() -> None:
    shop = Shop(1)
    records = _records(shop.snapshot())
    shop.add_column("products", columns.varchar("origin"))
    records = _records(shop.snapshot() + shop.step(500))
    state = replay(records)[shop.database.topic("products")]
    assert compare(shop.truth("products"), state.table(), ("sku",)) is None
