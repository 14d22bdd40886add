"""Which files are laid out next, and how large new files are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Cube, Segment
from lakesplice.planning.upkeep.clustering import (
    FILE_BYTES_MAX,
    FILE_SIZES,
    ClusterPolicy,
    file_bytes,
    plan_clustering,
)
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge

BY = (1, 2)
POLICY = ClusterPolicy(rows_max=1_000, bytes_max=1_000)


def file(
    name: str, size: int, cube: int | None = None, *, by: tuple[int, ...] = BY, partition: str = "a"
) -> BaseFile:
    of = None if cube is None else Cube(by, cube)
    return BaseFile(name, size, (Segment(1, size),), partition=(partition,), cube=of)


def names(files: tuple[BaseFile, ...] | None) -> list[str]:
    return [one.path for one in files or ()]


def test_a_table_without_new_files_is_left() -> None:
    assert plan_clustering([], BY) is None
    assert plan_clustering([file("a", 10, 1), file("b", 10, 2)], BY) is None


def test_files_of_other_columns_are_new() -> None:
    files = [file("a", 10, 1), file("b", 10, 1, by=(2, 1)), file("c", 10, 1, by=(1,))]
    assert names(plan_clustering(files, BY, POLICY)) == ["b", "c", "a"]


def test_small_cubes_are_taken_in_whole_and_large_ones_left() -> None:
    files = [file("new", 10), *(file(f"small{at}", 9, 1) for at in range(2)), file("big", 100, 2)]
    assert names(plan_clustering(files, BY, POLICY)) == ["new", "small0", "small1"]
    assert names(plan_clustering([*files, file("more", 30)], BY, POLICY))[-1] == "big"


def test_the_partition_with_most_new_bytes_comes_first_and_alone() -> None:
    files = [file("a", 10), file("b", 20, partition="b"), file("c", 5, 1)]
    assert names(plan_clustering(files, BY, POLICY)) == ["b"]


def test_more_files_than_fit_are_taken_by_the_lowest_value_of_the_first_column() -> None:
    files = [file(name, 400) for name in "abcd"]
    starts = {"a": 7, "b": 3, "c": 1}
    assert names(plan_clustering(files, BY, POLICY, starts)) == ["c", "b"]
    assert names(plan_clustering([file("huge", 5_000)], BY, POLICY)) == ["huge"]


@given(
    st.lists(st.tuples(st.integers(1, 900), st.none() | st.integers(1, 3)), max_size=20),
)
def test_each_step_leaves_fewer_new_files_until_there_are_none(
    sizes: list[tuple[int, int | None]],
) -> None:
    files = {str(at): file(str(at), size, cube) for at, (size, cube) in enumerate(sizes)}
    number = 10
    while (chosen := plan_clustering(files.values(), BY, POLICY)) is not None:
        assert len(chosen) == 1 or sum(one.bytes for one in chosen) <= POLICY.bytes_max
        new = [one for one in files.values() if one.cube is None]
        number += 1
        for one in chosen:
            files[one.path] = replace(one, cube=Cube(BY, number))
        assert sum(one.cube is None for one in files.values()) < len(new)


def test_merges_of_files_leave_cubes_alone() -> None:
    files = [file(str(at), 10, 1) for at in range(20)]
    assert plan_file_merge(files, FileMergePolicy(files_max=2)) is None


def test_files_grow_with_the_table() -> None:
    sizes = [file_bytes(size) for most, _ in FILE_SIZES for size in (most, most + 1)]
    assert sizes == sorted(sizes)
    assert sizes[0] == FILE_SIZES[0][1]
    assert file_bytes(1 << 50) == FILE_BYTES_MAX
