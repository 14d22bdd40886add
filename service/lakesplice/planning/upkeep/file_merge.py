"""Decides which small base files are merged.

A reader opens every file, so a small file costs more than its rows. A merge writes rows again, so
small files are merged often and larger ones seldom, as runs of the index are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakesplice.planning.upkeep.file_sizes import SMALL_SHARE, bytes_of, merged_bytes

if TYPE_CHECKING:  # settings need the numbers alone
    from lakesplice.model.address import BaseFile, Partition


@dataclass(frozen=True, slots=True)
class FileMergePolicy:
    """Files below `small_bytes` are small. Once there are `files_max` small files, some are merged
    into a file of at most about `target_bytes`.

    If only one of the two sizes is given, the other follows from it; if none is, both follow from
    the table's size.
    """

    small_bytes: int | None = None
    files_max: int = 16
    target_bytes: int | None = None

    def sizes(self, table_bytes: int) -> tuple[int, int]:
        """Return below which size files of a table of this size are small, and the size of merged
        files.
        """
        small, target = self.small_bytes, self.target_bytes
        if target is None:
            target = merged_bytes(table_bytes)
            if small is not None:
                target = max(target, SMALL_SHARE * small)
        return target // SMALL_SHARE if small is None else small, target


FILE_MERGE_POLICY = FileMergePolicy()


def plan_file_merge(
    files: Collection[BaseFile], policy: FileMergePolicy
) -> tuple[BaseFile, ...] | None:
    """Return the files to merge next, the smallest first; None while every partition has too few
    small ones. Files of different partitions are never merged, and those of a cube only with others
    by clustering: together they would have wide ranges again.

    It begins with the smallest file and continues as long as the next one is smaller than twice the
    sum of those taken so far. So a row is rewritten only together with about as many others: about
    log2(`small_bytes` / a new file's bytes) times until its file isn't small any more.
    """
    small_bytes, target_bytes = policy.sizes(bytes_of(files))
    by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        if file.cube is None and file.bytes < small_bytes:
            by_partition.setdefault(file.partition, []).append(file)
    small = max((sorted(some, key=_size) for some in by_partition.values()), key=len, default=[])
    if len(small) < max(policy.files_max, 2):
        return None
    chosen, taken = small[:2], small[0].bytes + small[1].bytes
    for file in small[2:]:
        if file.bytes >= 2 * taken or taken + file.bytes > target_bytes:
            break
        chosen.append(file)
        taken += file.bytes
    return tuple(chosen)


def _size(file: BaseFile) -> tuple[int, str]:
    return file.bytes, file.path
