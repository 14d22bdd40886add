"""Clustering: which base files are laid out by some columns, and when enough of them wait for it.

Files whose rows were ordered together are a cube. Files in no cube are new; without new files there
is nothing to do. So a row is rewritten only with about as many others: small cubes are taken in
with new files, as small files are in merges of files. Cubes of other columns stay as they are
unless the whole table is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lakesplice.model.address import BaseFile, Cube, Partition
from lakesplice.planning.upkeep.file_sizes import bytes_of, file_bytes

_MIB = 2**20
# The rows of one new file are in memory, some six times as large.
_FILE_BYTES_MAX = 128 * _MIB


@dataclass(frozen=True, slots=True)
class ClusterPolicy:
    """How large cubes and their files become, and when a table is due.

    A cube has at most `rows_max` rows and `bytes_max` bytes, since its rows are ordered in memory.
    Its files have about `file_bytes`; if that is None, the table's size decides. The service lays a
    table out once `new_share_min` of its bytes are in new files.
    """

    rows_max: int = 1 << 23
    bytes_max: int = 2 * 1024 * _MIB
    file_bytes: int | None = None
    new_share_min: float = 0.1

    def file_bytes_of(self, table_bytes: int) -> int:
        """Return the size of the files that are written for a table of this size."""
        return self.file_bytes or min(file_bytes(table_bytes), _FILE_BYTES_MAX)


CLUSTER_POLICY = ClusterPolicy()


class ClusterReason(StrEnum):
    """Why files are laid out: somebody asked, or enough bytes were in new files."""

    ASKED = "asked"
    DUE = "due"


def usual_columns(files: Iterable[BaseFile]) -> tuple[int, ...]:
    """Return the ids of the columns by which most bytes of a table are laid out; none if no file
    is.
    """
    sizes: dict[tuple[int, ...], int] = {}
    for file in files:
        if file.cube is not None:
            sizes[file.cube.by] = sizes.get(file.cube.by, 0) + file.bytes
    return max(sizes, key=lambda by: (sizes[by], by), default=())


def waits_for_clustering(files: Collection[BaseFile], policy: ClusterPolicy) -> bool:
    """Whether enough bytes are in new files: `new_share_min` of the table, but at least one file of
    the size that is written, and at most a cube.
    """
    table = bytes_of(files)
    enough = min(policy.new_share_min * table, policy.bytes_max)
    return bytes_of(file for file in files if file.cube is None) >= max(
        enough, policy.file_bytes_of(table)
    )


def plan_clustering(
    files: Collection[BaseFile],
    by: tuple[int, ...],
    policy: ClusterPolicy = CLUSTER_POLICY,
    starts: Mapping[str, int | float | str] | None = None,
    made: Collection[Cube] | None = None,
) -> tuple[BaseFile, ...] | None:
    """Return the files to lay out together next, all of one partition; None if no file is new.

    If `made` is given, the whole table is laid out: all files are new but those of these cubes.

    It begins with the partition that has the most bytes in new files, and takes these in the order
    of `starts`, the lowest value that a file has in the first column, where it is known. Cubes of
    the same columns follow, the smallest first, while the next one is smaller than twice what was
    taken so far.
    """
    new_by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        if file.cube is None or (made is not None and file.cube not in made):
            new_by_partition.setdefault(file.partition, []).append(file)
    if not new_by_partition:
        return None
    partition, new = max(
        new_by_partition.items(), key=lambda pair: (bytes_of(pair[1]), _names(pair[1]))
    )
    chosen = _first_of(_in_order(new, starts or {}), policy)
    if len(chosen) < len(new):
        return tuple(chosen)
    cubes: dict[Cube, list[BaseFile]] = {}
    for file in files:
        if file.partition == partition and file.cube is not None and file.cube.by == by:
            cubes.setdefault(file.cube, []).append(file)
    if made is not None:
        cubes = {cube: those for cube, those in cubes.items() if cube in made}
    for cube in sorted(cubes.values(), key=lambda one: (bytes_of(one), _names(one))):
        if bytes_of(cube) >= 2 * bytes_of(chosen) or not _fits([*chosen, *cube], policy):
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
    return rows <= policy.rows_max and bytes_of(files) <= policy.bytes_max


def _in_order(
    files: Collection[BaseFile], starts: Mapping[str, int | float | str]
) -> list[BaseFile]:
    known = sorted((f for f in files if f.path in starts), key=lambda f: (starts[f.path], f.path))
    return known + sorted((f for f in files if f.path not in starts), key=lambda f: f.path)


def _names(files: Collection[BaseFile]) -> list[str]:
    return sorted(file.path for file in files)
