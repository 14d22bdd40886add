"""`HandFedTable`: a table that can be read and, unless a source feeds it, written."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lakesplice.errors import StorageError, UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.planning.by_hand.hand_fed_changes import checked_transaction
from lakesplice.planning.rows.index_merge import plan_merge
from lakesplice.planning.rows.row_images import require_feedable
from lakesplice.planning.upkeep.compaction import tasks, work
from lakesplice.planning.upkeep.file_merge import (
    FILE_MERGE_POLICY,
    FileMergePolicy,
    plan_file_merge,
)
from lakesplice.planning.upkeep.retention import PURGE_SECONDS, RETENTION_SECONDS
from lakesplice.table.by_hand.input_rows import Rows, all_rows, table_of
from lakesplice.table.by_hand.new_table import LOG_RETENTION_HOURS, Tools
from lakesplice.table.by_hand.results import Compacted, FilesMerged, Purged, compacted_by
from lakesplice.table.by_hand.schema_merge import schema_merge
from lakesplice.table.by_hand.upsert import Upserter
from lakesplice.table.by_hand.upsert_request import Upserted, UpsertRequest, require_fed_by_hand
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.protocol.commit import Committed, Conflict, commit
from lakesplice.table.protocol.intents import IndexMerge, Intent, SetChangeFeed, Splice
from lakesplice.table.protocol.ports import UNWATCHED, Progress, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Moment, Table, requested_version
from lakesplice.table.upkeep import compact
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.file_merge import file_merge, merge_base_files
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.table.upkeep.purge import PurgeRules, purge
from lakesplice.table.upkeep.restore import restore
from lakesplice.table.upkeep.vacuum import (
    Vacuumed,
    plan_vacuum,
    require_hours,
    require_safe_retention,
    vacuum,
)

ATTEMPTS_MAX = 20
THREADS = 2
# Each file gets a thread as long as there are threads.
_TASK_BYTES = 1
_CHECKPOINT_EVERY = 20
_OVERTAKEN = "other writers committed first every time; try again later"


class HandFedTable(Table):
    """A `Table` that can also be written, unless a source feeds it.

    Each call that writes opens the version that it made. Other threads, processes and machines may
    call the same table at the same time; one object is used by one thread at a time.
    """

    def __init__(
        self,
        store: Store,
        tools: Tools,
        version: int | None = None,
        *,
        snapshot: Snapshot | None = None,
    ) -> None:
        super().__init__(store, version, snapshot=snapshot)
        self._tools = tools
        self._upserter = Upserter(store, tools.clock, tools.entropy, tools.rewriter, THREADS)
        self._log = Maintenance(
            store,
            tools.keeper,
            tools.clock,
            checkpoint_every=_CHECKPOINT_EVERY,
            retention_seconds=LOG_RETENTION_HOURS * 3600,
            expiry=Expiry(store, self._make),
        )

    @property
    def transactions(self) -> Mapping[str, int]:
        """Per application the highest transaction that the open version has; see `upsert`."""
        return dict(require_fed_by_hand(self.snapshot.manifest).transactions)

    def upsert(
        self,
        changes: Rows | None = None,
        *,
        delete: Rows | None = None,
        transaction: tuple[str, int] | None = None,
        fill_new_rows: bool = False,
        merge: bool | None = None,
        merge_schema: bool = False,
    ) -> Upserted:
        """Write whole or partial rows by key, and delete rows by key, in one commit.

        `changes` has the key and any other columns, by stored or source names. Rows with a known
        key get these values and keep their others; rows with a new key are inserted. A new row
        needs every column, or `fill_new_rows`, which stores null in columns that `changes` lacks.
        `delete` has the keys to delete; its other columns are ignored, and so are keys that no row
        has. An insert-only table accepts new rows only: rows with a known key, and all but the
        first with a new key, are skipped and counted, and `delete` is refused.

        `transaction` is (application, number) with rising numbers. If the number isn't above the
        application's last one, the call does nothing; so a call whose outcome is unknown can be
        repeated.

        With `merge_schema` the table first gets columns that it lacks, and wider types where those
        of `changes` are wider, in a commit of its own.

        The real-time view shows the result at once. The read-optimised view shows new rows at once,
        and the rest after `compact`. With `merge` every reader sees all of it at once: the base
        files of the rows are rewritten with it, and with the changes that waited for them, unless
        no value in a file changes. If `merge` isn't given, this is also done when there are many
        rows, so close together that waiting would save nothing; the history has the reason.

        Blocks; `changes` is in memory. If other writers commit meanwhile, the rows may be located
        and written again, at most 20 times; then `RetryableError`, and nothing was changed.
        `UsageError` if a key is given twice or is null, a column or its values don't fit, or a
        source feeds the table; `ParkedTableError`; `StorageError` with the effect unknown.
        """
        if require_fed_by_hand(self.snapshot.manifest).insert_only and delete is not None:
            raise UsageError("the table is insert-only, so its rows can't be deleted")
        rows, gone = (None if given is None else table_of(given) for given in (changes, delete))
        named = checked_transaction(transaction)
        if merge_schema and rows is not None:
            self._merge_schema(rows)

        def requested(snapshot: Snapshot) -> UpsertRequest:
            schema = snapshot.manifest.schema
            written, deleted = all_rows(rows, schema, ()), all_rows(gone, schema, schema.key)
            return UpsertRequest((written,), deleted, fill_new_rows, merge)

        self._snapshot, done = self._upserter.edit(self.snapshot, requested, named)
        if done.merged:
            self._upkeep()
        return done

    def compact(self, *, threads: int = THREADS, progress: Progress = UNWATCHED) -> Compacted:
        """Merge all waiting changes into the base files, so that every reader sees them.

        Also merges runs of the row index if there are many, and keeps the log short. Blocks. If
        other writers commit meanwhile, it continues from their version; `RetryableError` if they
        always committed first. `UsageError` for a table that a source feeds: its service compacts
        it. `CorruptFileError` for a damaged file, `StorageError`.
        """
        _require_threads(threads)
        total = Compacted(self.version)
        retries = self._retries()
        while True:
            self.refresh()
            manifest = self.snapshot.manifest
            require_fed_by_hand(manifest)
            if not manifest.deltas:
                self._upkeep()
                return total
            splice = self._splice(manifest, threads, progress)
            if self._commit(splice):
                total = compacted_by(self.version, splice)
                self._upkeep()
                return total
            retries.require_another(_OVERTAKEN)

    def vacuum(
        self,
        *,
        retention_hours: float = RETENTION_SECONDS / 3600,
        dry_run: bool = False,
        readers_may_fail: bool = False,
    ) -> Vacuumed:
        """Delete the files that only versions replaced more than `retention_hours` ago name, and
        files older than that, and than a day, that no version ever named.

        Those versions can't be read any more. With `dry_run` nothing changes, and a source may feed
        the table. Blocks; lists the table. Present writers may have to write again. `UsageError`
        for a retention below an hour, unless `readers_may_fail` accepts that a reader of such a
        version fails, and for a table that a source feeds: its service vacuums it. `RetryableError`
        if another vacuum runs, `StorageError`; then call it again.
        """
        require_hours(retention_hours)
        seconds = retention_hours * 3600
        require_safe_retention(seconds, readers_may_fail=readers_may_fail)
        self.refresh()
        now_ms = self._tools.clock.now_ms()
        if dry_run:
            return plan_vacuum(self._store, self.snapshot, now_ms, seconds)
        require_fed_by_hand(self.snapshot.manifest)
        return vacuum(self._store, self.snapshot, self._make, now_ms, seconds)

    def restore(self, version: int | None = None, *, as_of: Moment | None = None) -> int:
        """Give the table the rows, schema and state of an older version, in one commit.

        `version` or `as_of` choose it, as for `read`. Returns the new version, which is then open;
        the versions between them stay. Transactions since then count as not applied. Blocks.
        `VersionNotFoundError` if the version is past its retention. `UsageError` for the newest
        version, and for a table that a source feeds: `lakesplice restore` restores it while its
        service is stopped. `RetryableError`, `StorageError`.
        """
        self.refresh()
        require_fed_by_hand(self.snapshot.manifest)
        wanted = requested_version(self._store, version, as_of)
        if wanted is None:
            raise UsageError("say which version to restore: give a version, or a time")
        self._snapshot = restore(
            self._store, self.snapshot, wanted, self._make, retries=self._retries()
        )
        return self.version

    def merge_files(
        self, *, policy: FileMergePolicy = FILE_MERGE_POLICY, progress: Progress = UNWATCHED
    ) -> FilesMerged:
        """Merge small base files into larger ones as long as `policy` says that there are too many.

        Rows and their waiting changes don't change. Blocks; may be called at any time.
        `RetryableError` if other writers always committed first, `UsageError` for a table that a
        source feeds: its service merges its files. `CorruptFileError` for a damaged file,
        `StorageError`.
        """
        retries, files = self._retries(), 0
        while True:
            self.refresh()
            manifest = self.snapshot.manifest
            require_fed_by_hand(manifest)
            chosen = plan_file_merge(manifest.files.values(), policy)
            if chosen is None:
                return FilesMerged(self.version, files)
            paths = [file.path for file in chosen]
            size = sum(file.bytes for file in chosen)
            progress.expect(size)
            entropy, open_sink = self._tools.entropy, self._tools.open_sink
            inputs, output = merge_base_files(self._store, manifest, paths, entropy, open_sink)
            intent = file_merge(manifest.generation, self.version, inputs, output, manifest)
            progress.advance(size)
            if self._commit(intent):
                files += len(inputs)
            else:
                retries.require_another(_OVERTAKEN)

    def purge(
        self,
        *,
        older_than_hours: float = PURGE_SECONDS / 3600,
        progress: Progress = UNWATCHED,
    ) -> Purged:
        """Rewrite base files without the rows that were deleted longer ago than that.

        Older versions keep these rows until a vacuum. Files for which changes wait are left as they
        are: call `compact` first. Blocks; reads the state of every row. `RetryableError` if other
        writers always committed first, `UsageError` for a table that a source feeds: its service
        purges it. `CorruptFileError`, `StorageError`.
        """
        require_hours(older_than_hours)
        rules = PurgeRules.older_than(older_than_hours * 3600, self._tools.clock.now_ms())
        retries, files, rows = self._retries(), 0, 0
        while True:
            manifest = self.refresh().snapshot.manifest
            require_fed_by_hand(manifest)
            number, entropy = manifest.generation, self._tools.entropy
            intent = purge(
                self._store, manifest, rules, self.version, number, entropy, progress=progress
            )
            if intent is None:
                return Purged(self.version, files, rows)
            if self._commit(intent):
                files, rows = files + len(intent.inputs), rows + intent.counts["rows"]
            else:
                retries.require_another(_OVERTAKEN)

    def set_change_feed(self, *, on: bool) -> int:
        """Begin or end the change feed that Delta readers have of the table; return the version
        that shows it, which is then open.

        Each later version has its changes of base files: those of `compact`, and of upserts that
        are merged at once. Versions before it have no feed. If the feed is already as requested,
        nothing is done. Blocks. `UsageError` for a table that a source feeds: its setting
        `change_feed` does it; and for a table that has a column with a name that the feed needs.
        `RetryableError` if other writers always committed first, `StorageError`.
        """
        retries = self._retries()
        while True:
            manifest = self.refresh().snapshot.manifest
            require_fed_by_hand(manifest)
            if (manifest.feed is not None) == on:
                return self.version
            if on:
                require_feedable(manifest.schema)
            if self._commit(SetChangeFeed(manifest.generation, on)):
                return self.version
            retries.require_another(_OVERTAKEN)

    def _splice(self, manifest: Manifest, threads: int, progress: Progress) -> Splice:
        shares = tasks(work(manifest), _TASK_BYTES, max(1, threads))
        progress.expect(sum(manifest.files[path].bytes for paths in shares for path in paths))

        def rewritten(paths: tuple[str, ...]) -> compact.Compacted:
            tools = self._tools
            return compact.compact_files(
                self._store, manifest, paths, tools.rewriter, tools.entropy, progress=progress
            )

        with ThreadPoolExecutor(max(1, threads)) as pool:
            parts = list(pool.map(rewritten, shares))
        return compact.splice_of(manifest.generation, self.version, parts)

    def _upkeep(self) -> None:
        self._merge_runs()
        # A checkpoint only saves time; if this one failed, the next compaction writes one.
        with suppress(StorageError):
            self._log.care(self.snapshot)

    def _merge_schema(self, rows: Rows) -> None:
        retries, given = self._retries(), table_of(rows).schema
        while intent := schema_merge(self._store, self.refresh().snapshot, given, self._tools):
            if self._commit(intent):
                return
            retries.require_another(_OVERTAKEN)

    def _merge_runs(self) -> None:
        manifest = self.snapshot.manifest
        places = plan_merge([run.entries for run in manifest.runs])
        if places is None:
            return
        inputs = manifest.runs[places.start : places.stop]
        output = write_merged(self._store, inputs, RunCache(), self._tools.entropy)
        paths = tuple(run.file.path for run in inputs)
        # If another writer committed first, the next compaction merges the runs.
        self._commit(IndexMerge(manifest.generation, paths, output, self.version))

    def _retries(self) -> Retries:
        return Retries(self._tools.clock, self._tools.entropy, ATTEMPTS_MAX)

    def _commit(self, intent: Intent) -> bool:
        return isinstance(self._make(intent), Committed)

    def _make(self, intent: Intent) -> Committed | Conflict:
        tools = self._tools
        outcome = commit(
            self._store, self.snapshot, intent, clock=tools.clock, entropy=tools.entropy
        )
        if isinstance(outcome, Committed):
            self._snapshot = outcome.snapshot
        return outcome


def _require_threads(given: object) -> None:
    if not isinstance(given, int) or given < 1:
        raise UsageError("give a number of threads, 1 or more", threads=given)
