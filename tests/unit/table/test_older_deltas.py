"""Tables whose deltas an earlier version wrote, in Avro, are read, written to and compacted."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from tests.support.by_hand import (
    WHOLE,
    given,
    goods_store,
    opened,
    require_rows,
    require_sound_index,
    row,
    three_goods,
)
from tests.support.older_tables import format_number, give_deltas_in_avro
from tests.support.simulated import Source, driver_of, require_finished, require_true, rows_of


def test_a_table_by_hand_continues_after_an_upgrade(tmp_path: Path) -> None:
    store = goods_store(tmp_path)
    root = tmp_path / "lake" / "shop" / "goods"
    table = three_goods(store)
    table.upsert(given([row(1, n=2)], ["id", "n"]))
    table.upsert(given([row(2, name=None), row(4)], WHOLE))
    truth = {1: row(1, n=2), 2: row(2, None), 3: row(3, "c", 7), 4: row(4)}
    assert (format_number(root), give_deltas_in_avro(root), format_number(root)) == (12, 2, 2)

    table = opened(store)
    require_rows(table, truth)
    table.upsert(given([row(3, "d")], ["id", "name"]))
    assert format_number(root) == 12
    truth[3] = row(3, "d", 7)
    require_rows(opened(store), truth)
    table.compact()
    assert format_number(root) == 2, "an earlier version reads it again"
    require_rows(table, truth)
    require_sound_index(store, table)
    del truth[4]
    truth |= {2: row(2, "b"), 3: row(3, "c", 7)}
    require_rows(Table(store, 1), truth)


@pytest.mark.slow
def test_a_table_of_a_topic_continues_after_an_upgrade(tmp_path: Path) -> None:
    source, lake = Source(), LocalStore(tmp_path)
    driver = driver_of(source, lake)
    for key in range(6):
        source.topic.append(key % 2, source.put(key))
    driver.batch()
    source.topic.append(0, [*source.put(0), *source.put(2), *source.delete(4)])
    driver.batch()
    source.add_column("added", 5)
    source.topic.append(1, [*source.put(1), *source.put(3)])
    driver.batch()
    root = tmp_path / driver.name.path
    before = [rows_of(driver.table.store, version=version) for version in range(4)]
    assert give_deltas_in_avro(root) >= 2
    assert format_number(root) < 12

    driver = driver_of(source, lake, generation=2, seed=2)
    store = driver.table.store
    assert [rows_of(store, version=version) for version in range(4)] == before
    require_true(source, store)
    source.topic.append(0, [*source.put(0), *source.delete(2)])
    source.topic.append(1, [*source.put(1), *source.put(7)])
    driver.batch()
    kinds = {delta.in_columns for delta in open_snapshot(store).manifest.deltas}
    assert kinds == {True, False}
    require_true(source, store)
    assert rows_of(store, View.READ_OPTIMISED) != rows_of(store)
    driver.compact()
    require_finished(source, driver)
    assert format_number(root) < 12
