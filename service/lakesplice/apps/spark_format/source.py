"""`spark.read.format("lakesplice")`: a table's rows in Spark, with their waiting changes applied.

    the driver    opens one version, divides its base files into partitions
    a task        reads the manifest of that version, its files and the deltas that wait for them

Options: `path` (what `load` is given), `view` ("real_time" or "read_optimised"), `columns` (names
separated by commas), `filter` (a condition in SQL), `version`, `as_of` (a moment in ISO 8601),
`pin`, `at_offsets` (such as `0:120,1:97`), `include_deleted`, `include_system`, and what an object
store needs beside, such as `aws_endpoint`.
Spark doesn't tell Python data sources which columns a query uses: where a table is wide, name them.
Filters aren't taken from Spark either, whose interface for them gives wrong rows
(docs/decisions/0019-reading-in-spark.md). With `changes` it gives what commits changed instead, as
a stream too (`changes.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from lakesplice.apps.requested_versions import offsets_of, requested_snapshot
from lakesplice.apps.spark_format.changes import Changes, ChangesReader, ChangesStream, version_of
from lakesplice.errors import UsageError
from lakesplice.model.manifest import FileRef, Manifest
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema
from lakesplice.planning.filtering.filters import stored_names
from lakesplice.spark.python_workers import keep_zip_directories
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import (
    Snapshot,
    manifest_ref,
    open_snapshot,
    read_manifest,
)
from lakesplice.table.reading.scan import View, matching_files
from lakesplice.table.reading.table import ReadRequest, read_request

FORMAT = "lakesplice"
# A partition is a task; small files share one.
_PARTITION_BYTES = 64 * 1024 * 1024
_OF_CHANGES = ("changes", "starting_version", "ending_version")
_WHICH = ("version", "as_of", "pin", "at_offsets")
_OF_ROWS = ("view", "filter", *_WHICH, "include_deleted", "include_system")
_OWN = frozenset(("path", "columns", *_OF_ROWS, *_OF_CHANGES))
_YES, _NO = frozenset(("true", "yes", "1")), frozenset(("false", "no", "0"))


@dataclass(frozen=True)
class _Wanted:
    """The request in the options, except for the table and its version."""

    view: str
    columns: tuple[str, ...] | None
    include_deleted: bool
    include_system: bool
    filter: str | None = None

    def request(self, schema: TableSchema) -> ReadRequest:
        """Return the request for a table with this schema; `UsageError` if it doesn't fit."""
        return read_request(
            schema,
            self.names(schema),
            self._condition(schema),
            self.view,
            include_deleted=self.include_deleted,
        )

    def _condition(self, schema: TableSchema) -> pc.Expression | None:
        if self.filter is None:
            return None
        # The grammar of SQL takes longer to import than all else together, and each query of Spark
        # starts a process or two.
        from lakesplice.planning.filtering.conditions import parsed_condition

        return parsed_condition(self.filter, _types_by_name(schema))

    def names(self, schema: TableSchema) -> tuple[str, ...]:
        """The columns to return, by the names that were asked for."""
        system = [field.name for field in SYSTEM_FIELDS] if self.include_system else []
        return (*(schema.shown if self.columns is None else self.columns), *system)


class LakespliceSource(DataSource):
    """The data source, as Spark knows it by its name."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns that the options ask for, in Spark's types."""
        if self._are_changes:
            return from_arrow_schema(self._changes(open_snapshot(self._store())).layout)
        snapshot, wanted = self._opened(), self._wanted()
        return from_arrow_schema(wanted.request(snapshot.manifest.schema).layout)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002  Spark gives it
        """Return the reader of one version, by default the present newest one."""
        if self._are_changes:
            return self._reader_of_changes()
        snapshot = self._opened()
        return _Reader(self._store(), manifest_ref(snapshot), snapshot.manifest, self._wanted())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        """Return the reader of each commit's changes."""
        if not self._are_changes:
            raise UsageError(
                "a stream returns changes, with further columns; set option('changes', 'true')"
            )
        store = self._store()
        return ChangesStream(
            self._changes(open_snapshot(store)), self.options.get("starting_version")
        )

    @property
    def _are_changes(self) -> bool:
        if not _flag(self.options, "changes"):
            return False
        given = [name for name in _OF_ROWS if self.options.get(name) is not None]
        if given:
            raise UsageError("these options can't be combined with changes", options=given)
        return True

    def _changes(self, snapshot: Snapshot) -> Changes:
        return Changes(self._store(), self._wanted().request(snapshot.manifest.schema))

    def _reader_of_changes(self) -> DataSourceReader:
        snapshot = open_snapshot(self._store())
        first, last = (self.options.get(name) for name in _OF_CHANGES[1:])
        if first is None:
            raise UsageError(
                "changes need a version to begin with; set the option starting_version"
            )
        end = snapshot.version if last is None else version_of(last)
        return ChangesReader(self._changes(snapshot), version_of(first), end, snapshot)

    def _store(self) -> AnyStore:
        path = self.options.get("path")
        if not path:
            raise UsageError("give the table's path: spark.read.format('lakesplice').load(path)")
        reach = {name: value for name, value in self.options.items() if name.lower() not in _OWN}
        return open_store(path, reach)

    def _opened(self) -> Snapshot:
        store, version = self._store(), self.options.get("version")
        number = None if version is None else version_of(version)
        as_of, pin = self.options.get("as_of"), self.options.get("pin")
        offsets = self.options.get("at_offsets")
        at_offsets = None if offsets is None else offsets_of(offsets)
        return requested_snapshot(
            store, version=number, as_of=as_of, pin=pin, at_offsets=at_offsets
        )

    def _wanted(self) -> _Wanted:
        columns = self.options.get("columns")
        names = [name.strip() for name in (columns or "").split(",")]
        return _Wanted(
            self.options.get("view") or View.REAL_TIME.value,
            None if columns is None else tuple(name for name in names if name),
            _flag(self.options, "include_deleted"),
            _flag(self.options, "include_system"),
            self.options.get("filter"),
        )


class _Part(InputPartition):
    """Base files, by path, that one task reads; without any it returns no rows."""

    def __init__(self, paths: tuple[str, ...]) -> None:
        super().__init__(paths)
        self.paths = paths


class _Reader(DataSourceReader):
    """Reads one version of a table."""

    def __init__(self, store: Store, manifest: FileRef, content: Manifest, wanted: _Wanted) -> None:
        self._store, self._manifest, self._wanted = store, manifest, wanted
        request = wanted.request(content.schema).request
        self._parts = _parts(content, matching_files(content, request, content.files))

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the table, one task each."""
        return [_Part(paths) for paths in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's rows as Arrow batches."""
        assert isinstance(partition, _Part)
        keep_zip_directories()
        manifest = read_manifest(self._store, self._manifest)
        request = self._wanted.request(manifest.schema)
        return request.batches(self._store, manifest, partition.paths)


def _types_by_name(schema: TableSchema) -> pa.Schema:
    """The types of the columns, by every name that a reader may use."""
    types = schema.arrow
    return pa.schema([types.field(s).with_name(n) for n, s in stored_names(schema).items()])


def _parts(manifest: Manifest, left: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The base files that remain, in the order of their names, with small ones grouped."""
    parts, together, size = [], list[str](), 0
    for path in sorted(left):
        together.append(path)
        size += manifest.files[path].bytes
        if size >= _PARTITION_BYTES:
            parts.append(tuple(together))
            together, size = [], 0
    return (*parts, tuple(together)) if together or not parts else tuple(parts)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = (options.get(name) or "false").lower()
    if text not in _YES | _NO:
        raise UsageError("write this option as true or false", option=name, given=text)
    return text in _YES
