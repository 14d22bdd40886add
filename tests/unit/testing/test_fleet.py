"""The fleet that benchmarks use: its heat, its sizes, and a column that comes later."""

from __future__ import annotations

from collections import Counter

from benchmarks.soak.fleet import Fleet
from lakesplice.testing.shop.columns import integer


def test_the_hottest_table_gets_its_share_of_all_changes() -> None:
    fleet = Fleet(10, 20, seed=1, hottest=0.5)
    counts = Counter(event.topic for event in fleet.changes(1_000) if event.value is not None)
    assert 450 < counts[fleet.database.topic(fleet.names[0])] < 550


def test_tables_have_the_sizes_that_were_asked_for() -> None:
    fleet = Fleet(3, [5, 1, 9], seed=1)
    assert [len(fleet.database.rows(name)) for name in fleet.names] == [5, 1, 9]


def test_rows_of_an_altered_table_have_its_new_column() -> None:
    fleet = Fleet(1, 5, seed=1)
    fleet.add_column(fleet.names[0], integer("added", default=7))
    fleet.changes(100)
    assert set(fleet.database.truth(fleet.names[0])["added"].to_pylist()) == {7}
