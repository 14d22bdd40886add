"""A row whose partition column changes moves in one commit, which no reader sees twice."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.table import Table
from lakesplice.testing.faulty_store import Call, Crash, Fault, FaultyStore, How
from tests.support.altered import event
from tests.support.partitioned import (
    INT,
    MORE,
    WITHOUT_N,
    Life,
    begun,
    elsewhere,
    found_elsewhere,
    rival_of,
    row,
)


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return begun(tmp_path)


@pytest.mark.slow
def test_a_row_that_moves_leaves_its_old_place_in_the_commit_that_brings_the_new_one(
    life: Life,
) -> None:
    before = life.driver.table.version
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    assert life.driver.table.version == before + 1
    expected = [row(1, 9, "b"), row(2, 2, "a"), row(3, 3, "b"), row(4, 4, None)]
    assert life.rows == expected
    assert life.merged == expected
    assert elsewhere(life, "a") == [2]
    assert elsewhere(life, "b") == [1, 3]
    places = Table(life.store).read(include_deleted=True, include_system=True).to_pylist()
    positions = {place["_position_offset"] for place in places if place["id"] == 1}
    assert len(positions) == 1
    assert sorted(place["_is_deleted"] for place in places if place["id"] == 1) == [False, True]


@pytest.mark.slow
def test_a_row_that_moves_is_there_once_for_other_engines_before_any_compaction(
    life: Life,
) -> None:
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    assert found_elsewhere(life) == [(1, 9, "b"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)]
    life.take(event(INT, 30, row(1, 9, "a"), row(1, 9, "b")))
    assert found_elsewhere(life) == [(1, 9, "a"), (2, 2, "a"), (3, 3, "b"), (4, 4, None)]


def test_a_move_rewrites_the_file_it_leaves_once_and_its_compaction_doesnt(life: Life) -> None:
    files = set(life.driver.table.manifest.files)
    life.take(event(INT, 20, row(1, 9, "b"), row(1, 1, "a")))
    then = life.driver.table.manifest
    assert len(files - set(then.files)) == 1
    life.driver.compact()
    now = life.driver.table.manifest
    assert now.files == then.files
    assert not now.deltas


@pytest.mark.slow
def test_a_batch_that_dies_at_any_write_shows_moved_rows_before_or_after_and_never_twice(
    tmp_path: Path,
) -> None:
    before = [(1, 1, "a"), (2, 2, "a"), (3, 3, "b")]
    after = [(1, 9, "b"), (2, 2, "a"), (3, 8, "a")]
    for number in count():
        life = Life(tmp_path / str(number))
        life.take(*(event(INT, 10 + at, row(at, at, "_aab"[at])) for at in (1, 2, 3)))
        moves = [event(INT, 20, row(1, 9, "b"), row(1, 1, "a"))]
        moves.append(event(INT, 21, row(3, 8, "a"), row(3, 3, "b")))
        life.topic.append(0, moves)
        writes = [0]

        def nth(call: Call, number: int = number, writes: list[int] = writes) -> bool:
            writes[0] += call.method in ("put_new", "writer")
            return call.method in ("put_new", "writer") and writes[0] == number + 1

        died = False
        try:
            rival_of(life, FaultyStore(life.lake, [Fault(nth, How.CRASH_AFTER)])).batch()
        except Crash:
            died = True
        assert found_elsewhere(life) in (before, after)
        life.drive()
        assert life.driver.batch() is CommitOutcome.DONE
        assert found_elsewhere(life) == after
        if not died:
            assert number > 5
            return


@pytest.mark.slow
def test_a_move_whose_file_is_compacted_meanwhile_rewrites_the_newer_one(
    life: Life,
) -> None:
    life.take(event(INT, 20, row(2, 7, "a"), row(2, 2, "a")))
    life.topic.append(0, [event(INT, 30, row(1, 9, "b"), row(1, 1, "a"))])
    left = [1]

    def compact_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and left[0]:
            left[0] -= 1
            life.driver.compact()

    assert (
        rival_of(life, FaultyStore(life.lake, before_call=compact_first)).batch()
        is CommitOutcome.DONE
    )
    assert left == [0]
    assert found_elsewhere(life) == [(1, 9, "b"), (2, 7, "a"), (3, 3, "b"), (4, 4, None)]
    assert life.rows == [row(1, 9, "b"), row(2, 7, "a"), row(3, 3, "b"), row(4, 4, None)]


@pytest.mark.slow
def test_a_change_older_than_its_row_does_not_move_it(life: Life) -> None:
    life.take(event(INT, 30, row(1, 3, "b"), row(1, 2, "a")))
    files = life.partitions
    life.take(event(INT, 20, row(1, 2, "c"), row(1, 1, "a")), partition=1)
    life.take(event(INT, 30, row(1, 3, "b"), row(1, 2, "a")), partition=1)
    assert life.rows[0] == row(1, 3, "b")
    # A change that waits counts as much as one that is in its file.
    life.take(event(INT, 50, row(2, 5, "a"), row(2, 2, "a")))
    life.take(event(INT, 40, row(2, 4, "c"), row(2, 2, "a")), partition=1)
    assert life.rows[1] == row(2, 5, "a")
    assert life.partitions == files
    assert life.merged == life.rows


@pytest.mark.slow
def test_a_row_moves_back_is_deleted_there_and_comes_again_elsewhere(life: Life) -> None:
    life.take(event(INT, 20, row(1, 1, "b"), row(1, 1, "a")))
    life.take(event(INT, 30, row(1, 1, "a"), row(1, 1, "b")))
    assert life.rows[0] == row(1, 1, "a")
    life.take(event(INT, 40, None, row(1, 1, "a")))
    assert [found["id"] for found in life.rows] == [2, 3, 4]
    life.take(event(INT, 35, row(1, 7, "c"), row(1, 1, "a")), partition=1)
    assert [found["id"] for found in life.rows] == [2, 3, 4]
    life.take(event(INT, 50, row(1, 8, "d")))
    assert life.rows[0] == row(1, 8, "d")
    assert life.merged == life.rows


@pytest.mark.slow
def test_several_moves_of_a_row_in_one_batch_are_one(life: Life) -> None:
    life.take(
        event(INT, 20, row(1, 1, "b"), row(1, 1, "a")),
        event(INT, 21, row(1, 1, "c"), row(1, 1, "b")),
        event(INT, 22, row(1, 2, "d"), row(1, 1, "c")),
    )
    assert life.rows[0] == row(1, 2, "d")
    assert life.partitions == [("a",), ("b",), ("d",), (None,)]


@pytest.mark.slow
def test_an_empty_text_stays_one_to_us_and_is_null_to_the_log(life: Life) -> None:
    files = life.partitions
    life.take(event(INT, 20, row(4, 4, ""), row(4, 4, None)))
    assert life.rows[3] == row(4, 4, "")
    assert life.merged[3] == row(4, 4, "")
    assert life.partitions == files
    life.take(event(INT, 30, row(5, 5, "")))
    assert life.rows[4] == row(5, 5, "")
    assert elsewhere(life, "") == [4, 5]


@pytest.mark.slow
def test_a_move_takes_along_what_a_dropped_column_held(tmp_path: Path) -> None:
    policy = SchemaPolicy(drop_column=Behaviour.LENIENT, partition_by=("name",))
    life = Life(tmp_path, policy)
    life.take(event(INT, 10, row(1, 7, "a")))
    life.take(event(WITHOUT_N, 20, {"id": 1, "name": "b"}, {"id": 1, "name": "a"}))
    unpartitioned = Life(tmp_path / "other", SchemaPolicy(drop_column=Behaviour.LENIENT))
    unpartitioned.take(event(INT, 10, row(1, 7, "a")))
    unpartitioned.take(event(WITHOUT_N, 20, {"id": 1, "name": "b"}, {"id": 1, "name": "a"}))
    assert life.rows == unpartitioned.rows
    assert life.partitions == [("a",), ("b",)]


@pytest.mark.slow
def test_rows_move_from_files_of_before_a_column_was_added(life: Life) -> None:
    added = {**row(1, 1, "b"), "c": 5}
    life.take(event(MORE, 20, added, {**row(1, 1, "a"), "c": None}))
    assert life.rows[0] == added
    assert life.merged[0] == added


@pytest.mark.slow
def test_changes_show_a_move_as_one_update(life: Life) -> None:
    life.take(
        event(INT, 20, row(1, 9, "b"), row(1, 1, "a")),
        event(INT, 21, None, row(2, 2, "a")),
        event(INT, 22, row(6, 6, "b")),
    )
    table = Table(life.store)
    found = table.changes(table.version, table.version).read_all().to_pylist()
    told = {change["id"]: (change["_change_type"], change["n"]) for change in found}
    assert len(found) == 3
    assert told[1] == ("update_postimage", 9)
    assert told[2][0] == "delete"
    assert told[6] == ("insert", 6)
