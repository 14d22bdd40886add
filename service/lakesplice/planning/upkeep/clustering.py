"""Clustering: which base files are laid out again by some columns, and how large new files are.

Files whose rows were ordered together are a cube. Files that aren't in a cube of the wanted columns
are new; without new files there is nothing to do. So a row is rewritten only with about as many
others: small cubes are taken in with new files, as small files are in merges of files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lakesplice.model.address import BaseFile, Cube, Partition

_MIB = 2**20
# Per size of a table, up to and including it: the size of its files. Larger tables: the last one.
FILE_SIZES = (
    (256 * _MIB, 8 * _MIB),
    (1024 * _MIB, 16 * _MIB),
    (8 * 1024 * _MIB, 32 * _MIB),
    (64 * 1024 * _MIB, 64 * _MIB),
)
FILE_BYTES_MAX = 128 * _MIB


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """A cube gets at most so many rows and bytes, since its order is made in memory. Its files have
    about `file_bytes`, by default as the table's size says.
    """

    rows_max: int = 1 << 23
    bytes_max: int = 2 * 1024 * _MIB
    file_bytes: int | None = None


CLUSTER_POLICY = ClusterPolicy()


def file_bytes(table_bytes: int) -> int:
    """Return the size that suits the files of a table of this size."""
    return next((size for most, size in FILE_SIZES if table_bytes <= most), FILE_BYTES_MAX)


def is_clustered(file: BaseFile, by: tuple[int, ...]) -> bool:
    """Whether a file is in a cube of the columns with these ids, in this order."""
    return file.cube is not None and file.cube.by == by


def plan_clustering(
    files: Collection[BaseFile],
    by: tuple[int, ...],
    policy: ClusterPolicy = CLUSTER_POLICY,
    starts: Mapping[str, int | float | str] | None = None,
) -> tuple[BaseFile, ...] | None:
    """Return the files to lay out together next, all of one partition; None if no file is new.

    It begins with the partition that has the most bytes in new files, and takes these in the order
    of `starts`, the lowest value that a file has in the first column, where it is known. Cubes
    follow, the smallest first, while the next one is smaller than twice what was taken so far.
    """
    by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        if not is_clustered(file, by):
            by_partition.setdefault(file.partition, []).append(file)
    if not by_partition:
        return None
    partition, new = max(by_partition.items(), key=lambda pair: (_bytes(pair[1]), _names(pair[1])))
    chosen = _first_of(_in_order(new, starts or {}), policy)
    if len(chosen) < len(new):
        return tuple(chosen)
    cubes: dict[Cube, list[BaseFile]] = {}
    for file in files:
        if file.partition == partition and file.cube is not None and file.cube.by == by:
            cubes.setdefault(file.cube, []).append(file)
    for cube in sorted(cubes.values(), key=lambda one: (_bytes(one), _names(one))):
        if _bytes(cube) >= 2 * _bytes(chosen) or not _fits([*chosen, *cube], policy):
            break
        chosen += cube
    return tuple(chosen)


def _first_of(files: list[BaseFile], policy: ClusterPolicy) -> list[BaseFile]:
    """The first files, as many as fit, and at least one."""
    chosen = files[:1]
    for file in files[1:]:
        if not _fits([*chosen, file], policy):
            break
        chosen.append(file)
    return chosen


def _fits(files: Collection[BaseFile], policy: ClusterPolicy) -> bool:
    rows = sum(file.rows for file in files)
    return rows <= policy.rows_max and _bytes(files) <= policy.bytes_max


def _in_order(
    files: Collection[BaseFile], starts: Mapping[str, int | float | str]
) -> list[BaseFile]:
    known = sorted((f for f in files if f.path in starts), key=lambda f: (starts[f.path], f.path))
    return known + sorted((f for f in files if f.path not in starts), key=lambda f: f.path)


def _bytes(files: Collection[BaseFile]) -> int:
    return sum(file.bytes for file in files)


def _names(files: Collection[BaseFile]) -> list[str]:
    return sorted(file.path for file in files)
