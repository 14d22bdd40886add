"""Merging small base files: which ones.

A reader opens every file, so small ones cost more than their rows; a merge writes rows again, so
small files are merged often and larger ones seldom, as with runs of the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # settings need the numbers alone
    from lakesplice.model.address import BaseFile, Partition


@dataclass(frozen=True, slots=True)
class FileMergePolicy:
    """Files below `small_bytes` are small; from `files_max` of them on some are merged, into a file
    of about `target_bytes` at most.
    """

    small_bytes: int = 32 * 2**20
    files_max: int = 16
    target_bytes: int = 128 * 2**20


FILE_MERGE_POLICY = FileMergePolicy()


def plan_file_merge(
    files: Collection[BaseFile], policy: FileMergePolicy
) -> tuple[BaseFile, ...] | None:
    """Return the files to merge next, the smallest first; None while there are too few small ones
    in every partition. Files of several partitions stay apart.

    It takes the smallest files and continues as long as the next one is smaller than twice all that
    were taken before it. So a row is written again only together with about as many others: some
    log2(`small_bytes` / a new file's bytes) times until its file is small no more.
    """
    by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        by_partition.setdefault(file.partition, []).append(file)
    most = max(by_partition.values(), key=lambda some: sum(_is_small(policy, some)), default=[])
    return _planned(most, policy)


def _is_small(policy: FileMergePolicy, files: Iterable[BaseFile]) -> Iterable[bool]:
    return (file.bytes < policy.small_bytes for file in files)


def _planned(files: Collection[BaseFile], policy: FileMergePolicy) -> tuple[BaseFile, ...] | None:
    small = sorted((file for file in files if file.bytes < policy.small_bytes), key=_size)
    if len(small) < max(policy.files_max, 2):
        return None
    chosen, taken = small[:2], small[0].bytes + small[1].bytes
    for file in small[2:]:
        if file.bytes >= 2 * taken or taken + file.bytes > policy.target_bytes:
            break
        chosen.append(file)
        taken += file.bytes
    return tuple(chosen)


def _size(file: BaseFile) -> tuple[int, str]:
    return file.bytes, file.path
