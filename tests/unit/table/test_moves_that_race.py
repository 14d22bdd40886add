"""Rows that move between partitions while upkeep rewrites the files that they leave or enter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.storage.stores import open_sink
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.upkeep.compact import compact_files, splice_of
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.faulty_store import Call, FaultyStore
from tests.support.altered import event
from tests.support.partitioned import INT, Life, begun, found_elsewhere, rival_of, row

MOVE = event(INT, 90, row(1, 9, "b"), row(1, 1, "a"))


@pytest.fixture
def life(tmp_path: Path) -> Life:
    return begun(tmp_path)


def file_of(life: Life, partition: str) -> str:
    files = life.driver.table.manifest.files
    return next(path for path, file in files.items() if file.partition == (partition,))


def rewrite(life: Life, number: int) -> None:
    """Rewrite the file that the row is to leave, with one of the deltas that wait for it."""
    table, path = life.driver.table, file_of(life, "a")
    oldest = replace(table.manifest, deltas=table.manifest.deltas[:1])
    part = compact_files(
        life.store, oldest, [path], best_rewriter(open_sink), SeededEntropy(1_000 + number)
    )
    outcome = table.commit(splice_of(table.generation, table.version, [part]))
    assert isinstance(outcome, Committed)
    assert path not in table.manifest.files


@pytest.mark.parametrize("lost", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_a_move_that_loses_every_race_is_read_again_and_changes_nothing_until_it_wins(
    life: Life, lost: int
) -> None:
    for at in range(lost):
        life.take(event(INT, 20 + at, row(2, 3 + at, "a"), row(2, 2 + at, "a")))
    life.topic.append(0, [MOVE])
    left = [lost]

    def rewrite_first(call: Call) -> None:
        if call.method == "put_new" and "_delta_log" in call.path and left[0]:
            left[0] -= 1
            rewrite(life, left[0])
            assert (1, 1, "a") in found_elsewhere(life)
            assert (1, 9, "b") not in found_elsewhere(life)

    rival = rival_of(life, FaultyStore(life.lake, before_call=rewrite_first))
    starts, ends = rival.table.next_offsets({0: 0, 1: 0}), life.topic.ends
    outcomes = [rival.run_tasks(starts, ends)()]
    while outcomes[-1] is CommitOutcome.AGAIN:
        outcomes.append(rival.run_tasks(starts, ends)())
    assert outcomes == [*[CommitOutcome.AGAIN] * (lost // 5), CommitOutcome.DONE]
    assert left == [0]
    moved = [(1, 9, "b"), (2, 2 + lost, "a"), (3, 3, "b"), (4, 4, None)]
    assert found_elsewhere(life) == moved
    assert life.rows == [row(*values) for values in moved]


@pytest.mark.parametrize("partition", ["a", "b"])
def test_a_compaction_planned_before_a_move_restores_no_old_row(life: Life, partition: str) -> None:
    changed = {"a": event(INT, 20, row(2, 7, "a"), row(2, 2, "a")),
               "b": event(INT, 20, row(3, 7, "b"), row(3, 3, "b"))}  # fmt: skip
    life.take(changed[partition])
    splice = life.driver.plan_compaction([file_of(life, partition)])
    assert splice is not None
    life.take(MOVE)
    outcome = life.driver.table.commit(splice)
    # The file that the row left is another one by now; where it came to, its place is new.
    assert isinstance(outcome, Committed) is (partition == "b")
    moved = {1: (1, 9, "b"), 2: (2, 2, "a"), 3: (3, 3, "b"), 4: (4, 4, None)}
    moved |= {2: (2, 7, "a")} if partition == "a" else {3: (3, 7, "b")}
    for _ in range(2):
        life.driver.compact()
        assert found_elsewhere(life) == list(moved.values())
        assert life.rows == [row(*values) for values in moved.values()]
