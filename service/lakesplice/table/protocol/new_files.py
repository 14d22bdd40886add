"""Files of a commit: those that are durable but in no version yet, and the log's actions for files
that come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakesplice.formats.log.actions import Add, Remove
from lakesplice.model.address import BaseFile, Partition
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file that is written and durable, but not visible yet, with Delta statistics
    (JSON).
    """

    base: BaseFile
    stats: str


@dataclass(frozen=True, slots=True)
class ChangeImages:
    """A file of row images for the change feed, durable, but not visible yet, of one partition."""

    file: FileRef
    partition: Partition = ()


def adds_of(
    schema: TableSchema,
    files: Iterable[NewFile],
    timestamp_ms: EpochMs,
    *,
    data_change: bool = True,
) -> tuple[Add, ...]:
    """Return the add actions of files that become part of a table with this schema."""
    return tuple(
        Add(
            new.base.path,
            new.base.bytes,
            timestamp_ms,
            data_change,
            new.stats,
            partition_values(schema, new.base),
        )
        for new in files
    )


def removes_of(
    before: Manifest, paths: Iterable[str], timestamp_ms: EpochMs, *, data_change: bool = True
) -> tuple[Remove, ...]:
    """Return the remove actions of files of the manifest."""
    files = (before.files[path] for path in paths)
    return tuple(
        Remove(
            file.path, file.bytes, timestamp_ms, data_change, partition_values(before.schema, file)
        )
        for file in files
    )


def adds_again(
    manifest: Manifest,
    paths: Iterable[str],
    stats: Mapping[str, str | None],
    timestamp_ms: EpochMs,
) -> tuple[Add, ...]:
    """Return the add actions of files of the manifest that were written earlier, with the
    statistics of each path.
    """
    files = (manifest.files[path] for path in paths)
    return tuple(
        Add(
            file.path,
            file.bytes,
            timestamp_ms,
            True,
            stats[file.path],
            partition_values(manifest.schema, file),
        )
        for file in files
    )


def partition_values(schema: TableSchema, file: BaseFile) -> Mapping[str, str | None]:
    """Return the value that a file's rows have in each partition column, by name."""
    return dict(zip(schema.partitioned_by, file.partition, strict=True))
