"""What each commit changed, in Spark: a stream of it, or the changes between two versions.

    stream    offsets are versions: the first that was not read yet. It begins with the table as it
              is, its rows as inserts of the newest version, or with the changes of a given one
    task      reads some versions by their commits, as `Table.changes` does; of the table as it is,
              some base files

Options beside those of reading: `changes` ("true"), `starting_version` (a version, or "latest":
only what is committed from now on), and `ending_version` where it is no stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from lakesplice.errors import UsageError
from lakesplice.table.changes import (
    COMMIT_VERSION,
    INSERT,
    bytes_of_changes,
    changes_of,
    feed_schema,
)
from lakesplice.table.facade import Asked
from lakesplice.table.ports import Store
from lakesplice.table.snapshot import Snapshot, latest, open_snapshot

_LATEST = "latest"
_VERSION, _WHOLE = "version", "whole"
_BATCH_ROWS = 1 << 16
# A task costs Spark more than reading a small commit; more tasks than cores gain nothing. With many
# commits there are tasks enough, and nobody reads all their manifests to share them out better.
_FILES_A_TASK = 4
_COMMITS_A_TASK = 4
_BYTES_A_TASK = 16 * 2**20
_WEIGHED_MAX = 64


@dataclass(frozen=True)
class Changes:
    """Whose changes are asked for, and which of their columns."""

    store: Store
    asked: Asked

    @property
    def layout(self) -> pa.Schema:
        """The columns of the changes."""
        return feed_schema(self.asked.layout)

    def of(self, versions: range, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Yield what versions changed, by the schema of a snapshot."""
        schema = snapshot.manifest.schema
        for version in versions:
            for rows in changes_of(self.store, version, self.asked.stored, schema):
                named = rows.rename_columns(self.layout.names)
                yield from named.to_batches(max_chunksize=_BATCH_ROWS)


class _Commits(InputPartition):
    """The changes of some versions, one after another."""

    def __init__(self, versions: range) -> None:
        super().__init__(versions)
        self.versions = versions


class _Whole(InputPartition):
    """Some base files of a version, each of whose rows is an insert."""

    def __init__(self, version: int, paths: tuple[str, ...]) -> None:
        super().__init__((version, paths))
        self.version, self.paths = version, paths


class ChangesReader(DataSourceReader):
    """The changes of versions, from the first to the last, both included."""

    def __init__(self, changes: Changes, first: int, last: int, snapshot: Snapshot) -> None:
        self._changes, self._versions = changes, range(first, last + 1)
        self._snapshot = snapshot

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the changes, one task each."""
        return _parts(self._changes.store, self._versions)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's changes as Arrow batches."""
        assert isinstance(partition, _Commits)
        return self._changes.of(partition.versions, self._snapshot)


class ChangesStream(DataSourceStreamReader):
    """The changes of each commit, as it comes."""

    def __init__(self, changes: Changes, starting: str | None) -> None:
        self._changes, self._starting = changes, starting
        self._snapshot = open_snapshot(changes.store)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return where a stream begins that has no checkpoint yet."""
        newest = self._snapshot.version
        if self._starting is None:
            return {_VERSION: newest, _WHOLE: True}
        first = newest + 1 if self._starting == _LATEST else version_of(self._starting)
        return {_VERSION: first, _WHOLE: False}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the version that will come next."""
        self._snapshot = latest(self._changes.store, self._snapshot)
        return {_VERSION: self._snapshot.version + 1, _WHOLE: False}

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[InputPartition]:
        """Return the parts of the changes, and before them those of the table as a whole."""
        first, parts = start[_VERSION], list[InputPartition]()
        if start[_WHOLE]:
            files = sorted(open_snapshot(self._changes.store, first).manifest.files)
            parts += [
                _Whole(first, tuple(files[at : at + _FILES_A_TASK]))
                for at in range(0, len(files), _FILES_A_TASK)
            ]
            first += 1
        return [*parts, *_parts(self._changes.store, range(first, end[_VERSION]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's changes as Arrow batches."""
        if isinstance(partition, _Commits):
            return self._changes.of(partition.versions, self._snapshot)
        assert isinstance(partition, _Whole)
        return self._inserted(partition)

    def _inserted(self, part: _Whole) -> Iterator[pa.RecordBatch]:
        changes = self._changes
        snapshot = open_snapshot(changes.store, part.version)
        time = pa.scalar(snapshot.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
        version = pa.scalar(part.version, changes.layout.field(COMMIT_VERSION).type)
        for batch in changes.asked.batches(changes.store, snapshot.manifest, part.paths):
            said = [
                pa.repeat(value, batch.num_rows) for value in (pa.scalar(INSERT), version, time)
            ]
            yield pa.RecordBatch.from_arrays([*said, *batch.columns], schema=changes.layout)


def _parts(store: Store, versions: range) -> list[_Commits]:
    weights = [0] * len(versions)
    if 1 < len(versions) <= _WEIGHED_MAX:
        weights = bytes_of_changes(store, versions)
    parts, first, weight = list[_Commits](), 0, 0
    for at, more in enumerate(weights):
        if at > first and (at - first == _COMMITS_A_TASK or weight + more > _BYTES_A_TASK):
            parts.append(_Commits(versions[first:at]))
            first, weight = at, 0
        weight += more
    return [*parts, _Commits(versions[first:])] if versions else []


def version_of(text: str) -> int:
    """Return a version from an option; `UsageError` where it is none."""
    if not text.isdecimal():
        raise UsageError("a version is a number", version=text)
    return int(text)
