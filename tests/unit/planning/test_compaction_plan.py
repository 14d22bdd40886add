from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Segment
from lakesplice.model.manifest import DeltaRef, FileRef, Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.compaction import (
    CompactionPolicy,
    PlannedRewrite,
    Pressure,
    TableBacklog,
    backlog,
    ingest_must_wait,
    next_tables,
    pressure,
    tasks,
    touched_pages,
    work,
)

POLICY = CompactionPolicy(
    deltas_max=10,
    bytes_max=1000,
    age_seconds_max=60,
    ratio_max=0.1,
    changes_per_page_min=50,
    rows_per_page=100,
)


def delta(name: str, waiting: dict[int, int], *, rows: int, size: int, at: int) -> DeltaRef:
    return DeltaRef(FileRef(name, size, ""), rows, 1, waiting, EpochMs(at))


MANIFEST = Manifest(
    1,
    files={
        "a": BaseFile("a", 5_000, (Segment(1, 1_000),)),
        "b": BaseFile("b", 100, (Segment(2, 50), Segment(3, 50))),
        "c": BaseFile("c", 9_000, (Segment(4, 900),)),
    },
    deltas=(
        delta("d", {1: 10, 3: 10}, rows=40, size=400, at=5_000),
        delta("e", {3: 5}, rows=5, size=50, at=9_000),
    ),
)


def only(**reasons: float) -> Pressure:
    return Pressure(**({"deltas": 0, "bytes": 0, "age": 0, "ratio": 0, "pages": 0} | reasons))


def test_a_backlog_counts_what_still_waits() -> None:
    found = backlog(MANIFEST, rows_per_page=100)
    assert (found.deltas, found.changes, found.rows, found.oldest_ms) == (2, 25, 2_000, 5_000)
    assert found.bytes == 200 + 50
    assert found.pages == pytest.approx(touched_pages(1_000, 10, 100) + 1)


def test_each_reason_is_enough_alone() -> None:
    calm = TableBacklog(deltas=1, changes=1, bytes=1, rows=1_000, pages=1.0, oldest_ms=EpochMs(0))
    assert pressure(calm, POLICY, now_ms=EpochMs(1_000)).score < 1
    cases = {
        "deltas": TableBacklog(10, 1, 1, 1_000, 1.0, EpochMs(0)),
        "bytes": TableBacklog(1, 1, 1_000, 1_000, 1.0, EpochMs(0)),
        "ratio": TableBacklog(1, 100, 1, 1_000, 10.0, EpochMs(0)),
        "pages": TableBacklog(1, 60, 1, 10_000, 1.0, EpochMs(0)),
    }
    for reason, waiting in cases.items():
        found = pressure(waiting, POLICY, now_ms=EpochMs(1_000))
        assert found.score >= 1
        assert found.reason == reason
    assert pressure(calm, POLICY, now_ms=EpochMs(60_000)).reason == "age"


def test_a_table_without_waiting_changes_is_never_due() -> None:
    assert pressure(backlog(Manifest(1), 100), POLICY, now_ms=EpochMs(2**50)).score == 0


def test_a_clock_that_is_set_back_makes_no_table_due() -> None:
    assert (
        pressure(
            TableBacklog(1, 1, 1, 1_000, 1.0, EpochMs(10_000)), POLICY, now_ms=EpochMs(0)
        ).score
        < 1
    )


def test_of_due_tables_the_longest_waiting_comes_first_and_one_that_runs_not_again() -> None:
    due = {"a": only(age=1.5), "b": only(deltas=3.0), "c": only(age=0.9), "d": only(bytes=1.0)}
    assert next_tables(due, set(), cap=9) == ("a", "b", "d")
    assert next_tables(due, {"a"}, cap=2) == ("b",)
    assert next_tables(due, {"b", "x"}, cap=2) == ()


def test_work_is_the_files_with_waiting_changes_the_densest_first() -> None:
    assert work(MANIFEST) == (PlannedRewrite("b", 15, 100), PlannedRewrite("a", 10, 5_000))


def test_too_many_waiting_deltas_make_ingest_wait() -> None:
    assert not ingest_must_wait(TableBacklog(deltas=9), 10)
    assert ingest_must_wait(TableBacklog(deltas=10), 10)


@given(st.integers(1, 10**7), st.integers(0, 10**6), st.integers(1, 10_000))
def test_touched_pages_are_bounded_by_pages_and_changes(rows: int, changes: int, page: int) -> None:
    found = touched_pages(rows, changes, page)
    assert 0 <= found <= changes + 1e-6 * changes
    assert found <= -(-rows // page)


HOT = [[100_000, 100_000, 1, 1]] * 60


@example(HOT)
@given(
    st.integers(1, 6).flatmap(
        lambda tables: st.lists(
            st.lists(st.sampled_from([0, 1, 300, 100_000]), min_size=tables, max_size=tables),
            min_size=1,
            max_size=80,
        )
    )
)
def test_no_heat_of_some_tables_lets_the_deltas_of_others_grow(seconds: list[list[int]]) -> None:
    """Each second brings a delta to some tables, of so many changes, and time for one compaction.
    A due table waits for at most one turn of each other table.
    """
    tables = len(seconds[0])
    waiting: list[list[tuple[int, int]]] = [[] for _ in range(tables)]
    for second, arriving in enumerate(seconds):
        for deltas, changes in zip(waiting, arriving, strict=True):
            if changes:
                deltas.append((second * 1_000, changes))
        found = {str(at): _pressure(deltas, second * 1_000) for at, deltas in enumerate(waiting)}
        for name in next_tables(found, (), cap=1):
            waiting[int(name)].clear()
        assert max(map(len, waiting)) < POLICY.deltas_max + tables


def _pressure(deltas: list[tuple[int, int]], now_ms: int) -> Pressure:
    """That of a table of 1,000 rows."""
    changes = sum(count for _, count in deltas)
    oldest = min((at for at, _ in deltas), default=None)
    waiting = TableBacklog(
        len(deltas), changes, 0, 1_000, 10.0, None if oldest is None else EpochMs(oldest)
    )
    return pressure(waiting, POLICY, EpochMs(now_ms))


@example([0, 0, 3], 1, 3)
@given(
    st.lists(st.integers(0, 1_000), min_size=1, max_size=30),
    st.integers(1, 2_000),
    st.integers(1, 8),
)
def test_tasks_share_every_file_once_and_evenly(
    sizes: list[int], bytes_max: int, tasks_max: int
) -> None:
    files = [PlannedRewrite(f"f{at}", 1, size) for at, size in enumerate(sizes)]
    shares = tasks(files, bytes_max, tasks_max)
    assert sorted(path for share in shares for path in share) == sorted(f.path for f in files)
    assert len(shares) <= tasks_max
    assert all(shares)
    loads = [sum(sizes[int(path[1:])] for path in share) for share in shares]
    assert max(loads) - min(loads) <= max(sizes)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0, 5), min_size=1),
    st.sets(st.sampled_from("abcdef")),
    st.integers(0, 6),
)
def test_the_cap_holds_over_all_tables(ages: dict[str, float], running: set[str], cap: int) -> None:
    chosen = next_tables({name: only(age=age) for name, age in ages.items()}, running, cap)
    assert len(chosen) <= max(0, cap - len(running))
    assert not running.intersection(chosen)
