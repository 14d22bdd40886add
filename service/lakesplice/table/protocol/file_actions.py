"""The add and remove actions of base files in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakesplice.formats.log.actions import Add, Remove
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.new_files import NewFile


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


def partition_values(schema: TableSchema, file: BaseFile) -> Mapping[str, str | None]:
    """Return the value that a file's rows have in each partition column, by name."""
    return dict(zip(schema.partitioned_by, file.partition, strict=True))
