"""Gatherings: small base files that a compaction writes as one file, with their waiting changes.

Each batch with new rows adds a base file, so between two compactions a table gets many files of few
rows. A splice costs some 40 ms of the processor and several waits for the disk, however small its
file is. So files are gathered that a splice would encode nearly as a whole anyway: nothing is
written that wasn't to be written, only in fewer files. Files without waiting changes are left to
merges of small files (`file_merge.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakesplice.model.address import BaseFile, Partition

# One file is spliced: only several cost more than they have to.
FILES_MIN = 2
# To decode and encode so much takes as long as a splice does at least.
FILE_BYTES_MAX = 512 * 1024
# What is held in memory, before it is decoded.
GATHERED_BYTES_MAX = 8 * 1024 * 1024


def gatherings(files: Collection[BaseFile]) -> tuple[tuple[BaseFile, ...], ...]:
    """Return which of the files, all of which are to be rewritten, become one file.

    Each gathering has at least FILES_MIN files of one partition, each of at most FILE_BYTES_MAX and
    together of at most GATHERED_BYTES_MAX, in the order of `files`; no file is in two. Files of a
    cube are left out: together with others they would have wide ranges of its columns.
    """
    by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        if file.cube is None and file.bytes <= FILE_BYTES_MAX:
            by_partition.setdefault(file.partition, []).append(file)
    parts = (part for small in by_partition.values() for part in _parts(small))
    return tuple(part for part in parts if len(part) >= FILES_MIN)


def _parts(files: Collection[BaseFile]) -> Iterator[tuple[BaseFile, ...]]:
    """Divide files so that each part is small enough."""
    part: list[BaseFile] = []
    size = 0
    for file in files:
        if part and size + file.bytes > GATHERED_BYTES_MAX:
            yield tuple(part)
            part, size = [], 0
        part.append(file)
        size += file.bytes
    yield tuple(part)
