"""The results of calls of a table fed by hand."""

from __future__ import annotations

from dataclasses import dataclass

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


def compacted_by(version: int, splice: Splice) -> Compacted:
    """Return the result of a splice that was committed."""
    counts = splice.counts
    return Compacted(
        version,
        len(splice.replaced),
        counts["changes"],
        counts["bytes_read"],
        counts["bytes_written"],
    )
