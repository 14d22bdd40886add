"""Merges, purges and restores of tables with partition columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.errors import CorruptFileError, UsageError
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Redirect
from lakesplice.table.protocol.layout import commit_path
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import rebuild
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import SeededEntropy
from tests.support.altered import event
from tests.support.partitioned import ALL, INT, Life, begun, elsewhere, row, sound


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return begun(tmp_path)


@pytest.mark.slow
def test_small_files_are_merged_within_their_partition(life: Life) -> None:
    for at in range(20, 26):
        life.take(event(INT, at, row(at, at, "ab"[at % 2])))
    expected = life.rows
    while life.driver.merge_files(2) is not None:
        pass
    assert life.partitions == [("a",), ("b",), (None,)]
    assert life.rows == expected


@pytest.mark.slow
def test_rows_that_are_laid_out_stay_in_their_partition_and_are_found_where_they_went(
    life: Life,
) -> None:
    life.take(*(event(INT, 20 + at, row(at, at, "a")) for at in range(5, 9)))
    life.take(event(INT, 30, row(1, 5, "b"), row(1, 1, "a")))
    clustering, table = life.driver.clustering(("n",)), life.driver.table
    assert table.snapshot is not None
    planned = clustering.plan(table.snapshot, 1)
    life.take(event(INT, 40, row(5, 6, "b"), row(5, 5, "a")))
    assert planned is not None
    assert isinstance(table.commit(planned), Conflict)
    while life.driver.cluster(("n",)) is not None:
        assert sound(life)
    assert life.partitions == [("a",), ("b",), (None,)]
    # Of both the former partition has a deleted row, which must not be found again.
    life.take(*(event(INT, 50 + at, row(at, 7, "b"), row(at, 6, "b")) for at in (1, 5)))
    assert [life.rows[at] for at in (0, 4)] == [row(1, 7, "b"), row(5, 7, "b")]
    life.driver.compact()
    assert sound(life)
    assert elsewhere(life, "a") == [2, 6, 7, 8]
    assert elsewhere(life, "b") == [1, 3, 5]


def test_partition_columns_order_nothing(life: Life) -> None:
    with pytest.raises(UsageError, match="partition"):
        life.driver.cluster(("name",))


@pytest.mark.slow
def test_a_purge_leaves_the_index_where_rows_moved_to(life: Life) -> None:
    life.take(event(INT, 20, None, row(2, 2, "a")))
    life.take(event(INT, 25, row(1, 5, "b"), row(1, 1, "a")))
    life.driver.compact()
    assert sound(life)
    # Of two deleted rows of a file the one goes, and the place that row 1 has left stays.
    life.take(event(INT, 22, row(9, 9, "z")), partition=1)
    assert isinstance(life.driver.purge(ALL), Committed)
    assert life.driver.purge(ALL) is None
    assert sound(life)
    life.take(event(INT, 40, row(1, 6, "b"), row(1, 5, "b")))
    assert life.rows == [row(1, 6, "b"), row(3, 3, "b"), row(4, 4, None), row(9, 9, "z")]


@pytest.mark.slow
def test_a_deleted_row_that_a_purge_keeps_is_found_by_what_is_older(life: Life) -> None:
    life.take(event(INT, 20, None, row(1, 1, "a")), event(INT, 40, None, row(2, 2, "a")))
    life.driver.compact()
    # The other partition has come to 22, so the row deleted at 20 may go, and that at 40 not yet.
    life.take(event(INT, 22, row(9, 9, "z")), partition=1)
    assert isinstance(life.driver.purge(ALL), Committed)
    life.take(event(INT, 30, row(2, 7, "a"), row(2, 2, "a")), partition=1)
    assert life.rows == [row(3, 3, "b"), row(4, 4, None), row(9, 9, "z")]
    assert sound(life)


@pytest.mark.slow
def test_a_purged_row_does_not_come_back_to_a_place_that_it_had_left(life: Life) -> None:
    life.take(event(INT, 20, row(1, 5, "b"), row(1, 1, "a")))
    life.take(event(INT, 25, row(1, 6, "b"), row(1, 5, "b")), event(INT, 30, None, row(1, 6, "b")))
    life.take(event(INT, 40, row(8, 8, "z")))
    life.take(event(INT, 41, row(9, 9, "z")), partition=1)
    life.driver.compact()
    # What waits for a file keeps it from being purged, and so the place that row 1 had left.
    life.take(event(INT, 42, row(2, 3, "a"), row(2, 2, "a")))
    assert isinstance(life.driver.purge(ALL), Committed)
    expected = life.rows
    assert sound(life)
    table = life.driver.table
    assert table.snapshot is not None
    run = rebuild(life.store, table.snapshot, SeededEntropy(9))
    source = replace(
        table.source, partitions={0: PartitionState(Offset(0)), 1: PartitionState(Offset(0))}
    )
    again = Redirect(table.generation, table.version, source, runs=(run,))
    assert isinstance(table.commit(again), Committed)
    assert sound(life)
    for last in range(1, 10):
        ends = {0: min(Offset(last), life.topic.ends[0]), 1: life.topic.ends[1]}
        assert getattr(life.driver.batch(ends), "name", None) == "DONE"
        assert life.rows == expected
    life.take(event(INT, 50, row(1, 7, "a")))
    assert life.rows[0] == row(1, 7, "a")
    assert sound(life)


@pytest.mark.slow
def test_an_older_version_comes_back_with_its_partitions(life: Life) -> None:
    version, before = life.driver.table.version, life.rows
    life.take(event(INT, 20, row(1, 5, "b"), row(1, 1, "a")))
    life.driver.compact()
    table = life.driver.table
    assert table.snapshot is not None
    restore(life.store, table.snapshot, version, table.commit, retries=table.retries())
    assert life.rows == before
    assert elsewhere(life, "a") == [1, 2]
    life.drive()
    assert getattr(life.driver.batch(), "name", None) == "DONE"
    assert life.rows[0] == row(1, 5, "b")


def test_a_log_that_names_other_partitions_than_the_manifest_is_noticed(life: Life) -> None:
    path = life.root / commit_path(life.driver.table.version)
    text = path.read_text()
    assert '"partitionValues":{"name":"b"}' in text
    path.write_text(text.replace('{"name":"b"}', '{"name":"c"}'))
    with pytest.raises(CorruptFileError, match="partitions"):
        Table(life.store)
