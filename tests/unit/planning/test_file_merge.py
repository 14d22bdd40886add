"""Which small files are merged, and how often a row is rewritten."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Segment
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge

SMALL, TARGET = 1_000, 5_000
POLICY = FileMergePolicy(small_bytes=SMALL, files_max=4, target_bytes=TARGET)


def files(*sizes: int) -> list[BaseFile]:
    return [BaseFile(f"base/{at}", size, (Segment(at, 1),)) for at, size in enumerate(sizes)]


def test_a_few_small_files_are_not_merged() -> None:
    assert plan_file_merge(files(10, 10, 10, 2_000, 3_000), POLICY) is None


def test_the_smallest_are_merged_and_larger_ones_left_until_they_are_matched() -> None:
    chosen = plan_file_merge(files(900, 10, 2_000, 12, 11), POLICY)
    assert chosen is not None
    assert [file.bytes for file in chosen] == [10, 11, 12]


@given(st.lists(st.integers(1, 3_000), max_size=40))
def test_chosen_files_are_small_and_together_within_the_target(sizes: list[int]) -> None:
    chosen = plan_file_merge(files(*sizes), POLICY)
    small = sum(size < SMALL for size in sizes)
    assert (chosen is None) == (small < POLICY.files_max)
    if chosen is not None:
        assert len(chosen) >= 2
        assert all(file.bytes < SMALL for file in chosen)
        assert sum(file.bytes for file in chosen) <= TARGET


def test_a_thousand_new_files_are_written_again_a_few_times_each() -> None:
    table: list[BaseFile] = []
    written, most = 0, 0
    for at in range(1_000):
        table.append(BaseFile(f"base/{at}", 10, (Segment(at, 1),)))
        while chosen := plan_file_merge(table, POLICY):
            size = sum(file.bytes for file in chosen)
            written += size
            table = [file for file in table if file not in chosen]
            table.append(BaseFile(f"base/{at}m", size, (Segment(at, 1),)))
        most = max(most, sum(file.bytes < SMALL for file in table))
    assert most < POLICY.files_max
    assert written <= 8 * 10_000


def test_files_of_several_partitions_stay_apart() -> None:
    table = [
        BaseFile(f"base/{at}", 10, (Segment(at, 1),), partition=("ab"[at > 2],)) for at in range(7)
    ]
    chosen = plan_file_merge(table, POLICY)
    assert chosen is not None
    assert {file.partition for file in chosen} == {("b",)}
    assert plan_file_merge(table[:6], POLICY) is None


def test_what_is_small_and_how_large_files_become_follow_from_the_tables_size() -> None:
    mib = 2**20
    assert FileMergePolicy().sizes(0) == (8 * mib, 32 * mib)
    assert FileMergePolicy().sizes(100 * 1024 * mib) == (32 * mib, 128 * mib)
    assert FileMergePolicy().sizes(1 << 50) == (256 * mib, 1024 * mib)
    assert FileMergePolicy(target_bytes=mib).sizes(1 << 50) == (mib // 4, mib)
    assert FileMergePolicy(small_bytes=32 * mib).sizes(0) == (32 * mib, 128 * mib)
    assert FileMergePolicy(small_bytes=0).sizes(0) == (0, 32 * mib)


def test_more_files_count_as_small_in_a_larger_table() -> None:
    sizes, policy = [20 * 2**20] * 4, FileMergePolicy(files_max=4)
    assert plan_file_merge(files(*sizes), policy) is None
    assert len(plan_file_merge(files(*sizes, *[2**30] * 100), policy) or ()) == 4
