"""Gatherings: small base files that a compaction writes as one file, with their waiting changes.

Each batch with new rows adds a base file, so between two compactions a table gets many files of few
rows. A splice costs some 40 ms of the processor and several waits for the disk, however small its
file is. A splice of a small file encodes nearly all of it anyway. So to write several small files
as one writes no more bytes, only fewer files. Files without waiting changes are left to merges of
small files (`file_merge.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakesplice.model.address import BaseFile, Partition

# A single small file is spliced unless its caller asks for less. The service does: it has hundreds
# of them.
FILES_MIN = 2
# To decode and encode a file of this size takes as long as the splice of a tiny file.
FILE_BYTES_MAX = 512 * 1024
# Bounds the memory, since all rows of a gathering are decoded at once; `gathered.py` has the bound
# of the decoded rows.
GATHERED_BYTES_MAX = 8 * 1024 * 1024


def gatherings(
    files: Collection[BaseFile], files_min: int = FILES_MIN
) -> tuple[tuple[BaseFile, ...], ...]:
    """Group files that a compaction is to rewrite: it writes each group as one file.

    Files in no group are spliced one by one. Each group has at least `files_min` files of
    one partition, each of at most FILE_BYTES_MAX and together of at most GATHERED_BYTES_MAX, in the
    order of `files`; no file is in two groups. Files of a cube are in none: together with others
    they would have wide ranges of its columns.
    """
    by_partition: dict[Partition, list[BaseFile]] = {}
    for file in files:
        if file.cube is None and file.bytes <= FILE_BYTES_MAX:
            by_partition.setdefault(file.partition, []).append(file)
    parts = (part for small in by_partition.values() for part in _parts(small))
    return tuple(part for part in parts if len(part) >= files_min)


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
