"""What each commit changed, in Spark: a stream of changes, or the changes between two versions.

    stream    offsets are versions: the first that was not read yet. It begins with the table as it
              is, its rows as inserts of the newest version, or with the changes of a given version
    task      reads some versions by their commits, as `Table.changes` does, or some files of a
              large one; for the table as it is, some base files

Options in addition to those of reading: `changes` ("true"), `starting_version` (a version, or
"latest": only later commits), and, unless it is a stream, `ending_version`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from lakesplice.errors import UsageError
from lakesplice.model.names import COMMIT_VERSION
from lakesplice.planning.rows.row_images import INSERT
from lakesplice.spark.python_workers import keep_zip_directories
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, latest, open_snapshot
from lakesplice.table.reading.changes import WHOLE, ChangesPart, changes_of, feed_schema
from lakesplice.table.reading.feed_files import sizes_of_changes
from lakesplice.table.reading.table import ReadRequest

_LATEST = "latest"
_VERSION, _WHOLE = "version", "whole"
# Spark turns one batch into rows while the next is decoded.
_BATCH_ROWS = 1 << 14
# A task costs Spark more than reading a small commit, and more tasks than cores gain nothing. Many
# commits make enough tasks; it isn't worth reading all their manifests to distribute them better.
_FILES_A_TASK = 4
_COMMITS_A_TASK = 4
_BYTES_A_TASK = 16 * 2**20
_WEIGHED_MAX = 64


@dataclass(frozen=True)
class Changes:
    """The table whose changes are read, and the columns."""

    store: Store
    request: ReadRequest

    @property
    def layout(self) -> pa.Schema:
        """The columns of the changes."""
        return feed_schema(self.request.layout)

    def of(self, part: _Commits, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Yield what a part's versions changed, by the schema of a snapshot."""
        keep_zip_directories()
        schema, request = snapshot.manifest.schema, self.request.stored
        for version in part.versions:
            for rows in changes_of(self.store, version, request, schema, part.share):
                named = rows.rename_columns(self.layout.names)
                yield from named.to_batches(max_chunksize=_BATCH_ROWS)


class _Commits(InputPartition):
    """The changes of some versions, one after another, or a part of one version's."""

    def __init__(self, versions: range, share: ChangesPart = WHOLE) -> None:
        super().__init__((versions, share))
        self.versions, self.share = versions, share


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
        return _parts(self._changes.store, self._versions, [self._snapshot])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's changes as Arrow batches."""
        assert isinstance(partition, _Commits)
        return self._changes.of(partition, self._snapshot)


class ChangesStream(DataSourceStreamReader):
    """The changes of each commit, as it is made."""

    def __init__(self, changes: Changes, starting: str | None) -> None:
        self._changes, self._starting = changes, starting
        self._snapshot = open_snapshot(changes.store)
        self._known = self._snapshot, self._snapshot

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return where a stream without a checkpoint begins."""
        newest = self._snapshot.version
        if self._starting is None:
            return {_VERSION: newest, _WHOLE: True}
        first = newest + 1 if self._starting == _LATEST else version_of(self._starting)
        return {_VERSION: first, _WHOLE: False}

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the version that will come next."""
        newest = latest(self._changes.store, self._snapshot)
        if newest.version > self._snapshot.version:
            self._snapshot, self._known = newest, (self._snapshot, newest)
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
        return [*parts, *_parts(self._changes.store, range(first, end[_VERSION]), self._known)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's changes as Arrow batches."""
        if isinstance(partition, _Commits):
            return self._changes.of(partition, self._snapshot)
        assert isinstance(partition, _Whole)
        return self._inserted(partition)

    def _inserted(self, part: _Whole) -> Iterator[pa.RecordBatch]:
        keep_zip_directories()
        changes = self._changes
        snapshot = open_snapshot(changes.store, part.version)
        time = pa.scalar(snapshot.timestamp_ms * 1000, pa.timestamp("us", tz="UTC"))
        version = pa.scalar(part.version, changes.layout.field(COMMIT_VERSION).type)
        for batch in changes.request.batches(changes.store, snapshot.manifest, part.paths):
            said = [
                pa.repeat(value, batch.num_rows) for value in (pa.scalar(INSERT), version, time)
            ]
            yield pa.RecordBatch.from_arrays([*said, *batch.columns], schema=changes.layout)


def _parts(store: Store, versions: range, known: Iterable[Snapshot]) -> list[_Commits]:
    sizes = [list[int]()] * len(versions)
    if 0 < len(versions) <= _WEIGHED_MAX:
        manifests = {snapshot.version: snapshot.manifest for snapshot in known}
        sizes = sizes_of_changes(store, versions, manifests)
    parts, together, weight = list[_Commits](), versions[:0], 0
    for version, files in zip(versions, sizes, strict=True):
        shares = min(len(files), -(-sum(files) // _BYTES_A_TASK))
        if together and (len(together) == _COMMITS_A_TASK or weight + sum(files) > _BYTES_A_TASK):
            parts.append(_Commits(together))
            together, weight = versions[:0], 0
        if shares > 1:
            parts += [_Commits(_only(version), ChangesPart(at, shares)) for at in range(shares)]
        else:
            together = range(together.start if together else version, version + 1)
            weight += sum(files)
    return [*parts, _Commits(together)] if together else parts


def _only(version: int) -> range:
    return range(version, version + 1)


def version_of(text: str) -> int:
    """Return a version from an option; `UsageError` if it isn't a version."""
    if not text.isdecimal():
        raise UsageError("write a version as a whole number", version=text)
    return int(text)
