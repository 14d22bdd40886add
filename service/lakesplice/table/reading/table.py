"""`Table`: a table's rows, versions and state for Python programs, as Arrow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import names_list
from lakesplice.model.schema import SYSTEM_FIELDS, TableSchema
from lakesplice.planning.filtering.filters import Filter, stored_names
from lakesplice.table.protocol.history import HistoryEntry, history, version_at
from lakesplice.table.protocol.offsets import next_offsets
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, latest, open_snapshot, within_retention
from lakesplice.table.reading.changes import changes_of, feed_schema
from lakesplice.table.reading.row_versions import needed_columns, versions_of
from lakesplice.table.reading.scan import ScanRequest, View, scan

_BATCH_ROWS = 1 << 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment: TypeAlias = datetime | str
"""A `datetime`, or a text in ISO 8601; without a time zone it is in UTC, as a table's times are."""


class OpenVersion:
    """The version of a table that is open. What reads the table and what writes it share it."""

    def __init__(self, store: Store, snapshot: Snapshot) -> None:
        self.store = store
        self.snapshot = snapshot

    def refresh(self) -> Snapshot:
        """Open the newest version, and return it."""
        self.snapshot = latest(self.store, self.snapshot)
        return self.snapshot


class Table:
    """A table at one version; the version stays the same until `refresh`.

    All methods block. They raise `TableNotFoundError`, `VersionNotFoundError`, `MissingFileError`
    and `CorruptFileError` for the state of the store, and `UsageError` for wrong arguments.
    """

    def __init__(
        self, store: Store, version: int | None = None, *, snapshot: Snapshot | None = None
    ) -> None:
        """Open the newest version, or a given one, or use a snapshot that was read already; `store`
        is the table's own folder.
        """
        self._store = store
        self._opened = OpenVersion(store, snapshot or open_snapshot(store, version))

    @property
    def version(self) -> int:
        """The version of the log that is open."""
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The user's columns by their stored names, in the order that `read` returns them."""
        schema = self.snapshot.manifest.schema
        return pa.schema([schema.arrow.field(name) for name in schema.shown])

    @property
    def offsets(self) -> Mapping[int, int]:
        """Per Kafka partition the next offset: the real-time view has every change before it.

        `UsageError` for a table of several topics; use `offsets_of`.
        """
        source = self.snapshot.manifest.source
        return {} if source is None else next_offsets(source)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that feed the table."""
        return tuple(self.snapshot.manifest.sources)

    def offsets_of(self, topic: str) -> Mapping[int, int]:
        """Per partition of a topic the next offset, as `offsets` has them for the only topic."""
        source = self.snapshot.manifest.sources.get(topic)
        if source is None:
            raise UsageError("the table has no such topic", topic=topic, topics=list(self.topics))
        return next_offsets(source)

    @property
    def snapshot(self) -> Snapshot:
        """The open version's log state and manifest."""
        return self._opened.snapshot

    def refresh(self) -> Table:
        """Open the newest version and return the table."""
        self._opened.refresh()
        return self

    def history(self) -> Iterator[HistoryEntry]:
        """Yield the retained versions, newest first."""
        return history(self._store)

    def read(
        self,
        view: str = View.REAL_TIME,
        columns: str | Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  # pyarrow's own name for it
        version: int | None = None,
        *,
        as_of: Moment | None = None,
        include_deleted: bool = False,
        include_system: bool = False,
    ) -> pa.Table:
        """Return rows as one Arrow table; the arguments are those of `scan`."""
        return self.scan(
            view,
            columns,
            filter,
            version,
            as_of=as_of,
            include_deleted=include_deleted,
            include_system=include_system,
        ).read_all()

    def scan(
        self,
        view: str = View.REAL_TIME,
        columns: str | Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  # pyarrow's own name for it
        version: int | None = None,
        *,
        as_of: Moment | None = None,
        include_deleted: bool = False,
        include_system: bool = False,
    ) -> pa.RecordBatchReader:
        """Return rows as a stream that is read while it is consumed; one row group is in memory at
        a time.

        `view` is "real_time" (waiting changes applied to the base files) or "read_optimised" (base
        files alone, as other readers of the log see them). `columns` are stored or source names, or
        one of them; by default all user columns, followed by the system columns with
        `include_system`. The fields have the names that were asked for. `filter` may use both kinds
        of names. `version` reads another version than the open one, `as_of` the version that was
        the newest at a moment: a `datetime`, or a text such as "2026-11-22T08:00:00Z"; UTC without
        a time zone. Deleted rows are returned only with `include_deleted`; of their columns only
        the key and the system columns have a meaning.
        """
        snapshot = self._snapshot_of(version, as_of)
        schema = snapshot.manifest.schema
        system = [field.name for field in SYSTEM_FIELDS] if include_system else []
        chosen = [*_chosen(schema, columns), *system]
        asked = read_request(schema, chosen, filter, view, include_deleted=include_deleted)
        batches = asked.batches(self._store, snapshot.manifest)
        kept = within_retention(self._store, snapshot, batches)
        return pa.RecordBatchReader.from_batches(asked.layout, kept)

    def read_history(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        at: Moment | None = None,
        current: bool = False,
        version: int | None = None,
        as_of: Moment | None = None,
    ) -> pa.Table:
        """Return the versions of the rows of a history table, each with `valid_from`, `valid_to`
        and `is_current` (docs/history.md).

        `columns` are as in `scan`. With `at` only versions that were valid at a moment of the
        source's time are returned, with `current` only current ones: the rows as they are at the
        source. `version` and `as_of` are as in `scan`, and say what the table knew. If the table
        has a column of the name, the three columns have an underscore before their names.
        `UsageError` if the table is no history table, or if both `at` and `current` are given.
        """
        if at is not None and current:
            raise UsageError("give a moment or ask for current versions, not both")
        snapshot = self._snapshot_of(version, as_of)
        schema = snapshot.manifest.schema
        asked = read_request(schema, _chosen(schema, columns), None, View.REAL_TIME)
        needed = read_request(schema, needed_columns(schema, asked.stored), None, View.REAL_TIME)
        batches = needed.batches(self._store, snapshot.manifest)
        kept = within_retention(self._store, snapshot, batches)
        rows = pa.Table.from_batches(kept, needed.layout)
        moment = None if at is None else moment_ms(at)
        found = versions_of(rows, schema, asked.stored, moment, current=current)
        extra = found.column_names[len(asked.stored) :]
        return found.rename_columns([*asked.layout.names, *extra])

    def changes(
        self,
        from_version: int,
        to_version: int | None = None,
        columns: str | Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Return what each version changed, in order, from one version to another, both included.

        The first columns are `_change_type` ("insert", "update_postimage" or "delete"),
        `_commit_version` and `_commit_timestamp`. Then follow `columns`, by stored or source names,
        by default all user columns, as they were after the version. Of a deleted row only the key
        has a meaning. `to_version` is the open version by default. See `table/reading/changes.py`.
        """
        schema = self.snapshot.manifest.schema
        asked = read_request(schema, _chosen(schema, columns), None, View.REAL_TIME)
        last = self.version if to_version is None else to_version
        layout = feed_schema(asked.layout)
        versions = range(from_version, last + 1)
        batches = (
            batch
            for version in versions
            for rows in changes_of(self._store, version, asked.stored, schema)
            for batch in rows.rename_columns(layout.names).to_batches(max_chunksize=_BATCH_ROWS)
        )
        return pa.RecordBatchReader.from_batches(layout, batches)

    def _snapshot_of(self, version: int | None, as_of: Moment | None) -> Snapshot:
        """Return the version that is asked for, by default the open one."""
        wanted = requested_version(self._store, version, as_of)
        return self.snapshot if wanted is None else open_snapshot(self._store, wanted)


def _chosen(schema: TableSchema, columns: str | Sequence[str] | None) -> Sequence[str]:
    return schema.shown if columns is None else names_list(columns)


@dataclass(frozen=True)
class ReadRequest:
    """What is asked of a table: the rows and stored columns to read, and the names of the result's
    columns.
    """

    request: ScanRequest
    stored: tuple[str, ...]
    layout: pa.Schema

    def batches(
        self, store: Store, manifest: Manifest, paths: Collection[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, of some base files only if `paths` names them; at least one batch, maybe
        empty.
        """
        empty = True
        for table in scan(store, manifest, self.request, paths):
            columns = [table.column(name) for name in self.stored]
            # Without columns, only the selection has the number of rows.
            rows = pa.table(columns, schema=self.layout) if columns else table.select([])
            yield from rows.to_batches(max_chunksize=_BATCH_ROWS)
            empty = False
        if empty:  # a reader of batches gets the columns in any case
            yield pa.RecordBatch.from_pylist([], schema=self.layout)


def read_request(
    schema: TableSchema,
    columns: Sequence[str],
    condition: pc.Expression | None,
    view: str,
    *,
    include_deleted: bool = False,
) -> ReadRequest:
    """Return what to read, for columns by stored or source names; `UsageError` if an argument is
    wrong.
    """
    names, asked = stored_names(schema), list(dict.fromkeys(columns))
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise UsageError("the table has no such column", columns=unknown, known=sorted(names))
    if view not in tuple(View):
        raise UsageError("unknown view", view=view, known=[kind.value for kind in View])
    stored = tuple(names[name] for name in asked)
    bound = None if condition is None else Filter(condition, schema)
    fields = [schema.arrow.field(s).with_name(n) for s, n in zip(stored, asked, strict=True)]
    request = ScanRequest(tuple(dict.fromkeys(stored)), bound, View(view), include_deleted)
    return ReadRequest(request, stored, pa.schema(fields))


def requested_version(store: Store, version: int | None, as_of: Moment | None) -> int | None:
    """Return the requested version, None if neither argument is given.

    `VersionNotFoundError` if no retained version is as old as `as_of`; `UsageError` if both are
    given or `as_of` isn't a time. Blocks on some reads of the log.
    """
    if as_of is None:
        return version
    if version is not None:
        raise UsageError("give a version or a time, not both", version=version)
    return version_at(store, moment_ms(as_of))


def moment_ms(moment: Moment) -> EpochMs:
    """Return a moment in milliseconds since 1970, in UTC if it has no time zone; raises
    `UsageError` if it isn't one.
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise UsageError(
                "that isn't a time such as 2026-11-22T08:00:00Z", as_of=moment
            ) from None
    if not isinstance(moment, datetime):
        raise UsageError("a time must be a datetime or text", as_of=moment)
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return EpochMs((zoned - _EPOCH) // timedelta(milliseconds=1))
