"""The results of calls of a table fed by hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from lakesplice.model.address import BaseFile
from lakesplice.table.protocol.intents import Splice


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of a compaction; `version` contains it. All numbers are 0 if nothing waited."""

    version: int
    files: int = 0
    changes: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class FilesMerged:
    """How many base files a merge replaced; `version` has the result."""

    version: int
    files: int = 0


@dataclass(frozen=True, slots=True)
class Purged:
    """How many deleted rows a purge removed for good, from how many base files; `version` has the
    result.
    """

    version: int
    files: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Clustered:
    """What was laid out by columns, or would be: base files and their rows and bytes, the files
    that were written, and waiting changes that were carried to new addresses; `version` has the
    result.
    """

    version: int
    files: int = 0
    files_written: int = 0
    rows: int = 0
    carried: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def with_more(self, version: int, counts: Mapping[str, int]) -> Clustered:
        """Return the sum with the counts of a further commit."""
        sums = {name: getattr(self, name) + count for name, count in counts.items()}
        return replace(self, version=version, **sums)


def compacted_by(version: int, splice: Splice) -> Compacted:
    """Return the result of a splice that was committed."""
    counts = splice.counts
    return Compacted(
        version,
        splice.files_written,
        counts["changes"],
        counts["bytes_read"],
        counts["bytes_written"],
    )


def planned(version: int, files: Collection[BaseFile]) -> Clustered:
    """Return what would be laid out again."""
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    return Clustered(version, len(files), rows=rows, bytes_read=size)
