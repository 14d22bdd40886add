"""Which files are laid out next, and how large new files are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lakesplice.model.address import BaseFile, Cube, Segment
from lakesplice.planning.upkeep.clustering import (
    ClusterPolicy,
    plan_clustering,
    usual_columns,
    waits_for_clustering,
)
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge
from lakesplice.planning.upkeep.file_sizes import FILE_BYTES_MAX, FILE_SIZES, file_bytes

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


def test_cubes_of_other_columns_are_left_unless_the_whole_table_is_laid_out() -> None:
    files = [file("a", 10, 1), file("b", 10, 1, by=(2, 1)), file("c", 10, 1, by=(1,))]
    assert plan_clustering(files, BY, POLICY) is None
    assert names(plan_clustering([*files, file("d", 9)], BY, POLICY)) == ["d", "a"]
    assert names(plan_clustering(files, BY, POLICY, made=())) == ["a", "b", "c"]
    assert names(plan_clustering(files, BY, POLICY, made=[Cube(BY, 1)])) == ["b", "c", "a"]
    assert plan_clustering(files[:1], BY, POLICY, made=[Cube(BY, 1)]) is None


def test_files_are_laid_out_together_up_to_the_most_rows_and_bytes_and_no_further() -> None:
    assert names(plan_clustering([file("a", 500), file("b", 500)], BY, POLICY)) == ["a", "b"]
    assert names(plan_clustering([file("a", 500), file("b", 501)], BY, POLICY)) == ["a"]


def test_a_tables_usual_columns_are_those_of_most_bytes() -> None:
    files = [file("a", 10, 1), file("b", 7, 2, by=(3,)), file("c", 7, 3, by=(3,)), file("d", 90)]
    assert usual_columns(files) == (3,)
    assert usual_columns(files[3:]) == ()


def test_a_table_waits_for_clustering_once_a_share_of_it_and_a_whole_file_is_new() -> None:
    policy = ClusterPolicy(bytes_max=1_000, file_bytes=100)
    old = file("old", 5_000, 1)
    assert not waits_for_clustering([file("new", 99)], policy)
    assert waits_for_clustering([file("new", 100)], policy)
    assert not waits_for_clustering([old, file("new", 550)], policy)
    assert waits_for_clustering([old, file("new", 560)], policy)
    assert waits_for_clustering([file("other", 90_000, 1, by=(9,)), file("new", 1_000)], policy)
    assert not waits_for_clustering([old, file("other", 900, 1, by=(9,))], policy)


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
    st.booleans(),
)
def test_each_step_leaves_fewer_new_files_until_there_are_none(
    sizes: list[tuple[int, int | None]],
    whole: bool,  # hypothesis passes it by place
) -> None:
    files = {str(at): file(str(at), size, cube) for at, (size, cube) in enumerate(sizes)}
    number, made = 10, set[Cube]() if whole else None

    def new_files() -> int:
        cubes = [one.cube for one in files.values()]
        return sum(cube is None or (made is not None and cube not in made) for cube in cubes)

    while (chosen := plan_clustering(files.values(), BY, POLICY, None, made)) is not None:
        assert len(chosen) == 1 or sum(one.bytes for one in chosen) <= POLICY.bytes_max
        before = new_files()
        cube = Cube(BY, number := number + 1)
        for one in chosen:
            files[one.path] = replace(one, cube=cube)
        if made is not None:
            made.add(cube)
        assert new_files() < before
    assert new_files() == 0


def test_merges_of_files_leave_cubes_alone() -> None:
    files = [file(str(at), 10, 1) for at in range(20)]
    assert plan_file_merge(files, FileMergePolicy(files_max=2)) is None


def test_files_grow_with_the_table() -> None:
    sizes = [file_bytes(size) for most, _ in FILE_SIZES for size in (most, most + 1)]
    assert sizes == sorted(sizes)
    assert sizes[0] == FILE_SIZES[0][1]
    assert file_bytes(1 << 50) == FILE_BYTES_MAX
