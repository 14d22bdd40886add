"""`UpkeptTable`: the upkeep of a table fed by hand, which its program calls itself."""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.model.names import names_list
from lakesplice.planning.upkeep.clustering import CLUSTER_POLICY, ClusterPolicy
from lakesplice.planning.upkeep.file_merge import FILE_MERGE_POLICY, FileMergePolicy
from lakesplice.planning.upkeep.retention import PURGE_SECONDS, RETENTION_SECONDS
from lakesplice.table.by_hand.new_table import Tools
from lakesplice.table.by_hand.results import Clustered, Compacted, FilesMerged, Purged
from lakesplice.table.by_hand.upkeep import (
    compact_table,
    merge_small_files,
    optimize_table,
    purge_table,
    switch_change_feed,
    vacuum_table,
)
from lakesplice.table.by_hand.writer import THREADS, Writer
from lakesplice.table.protocol.ports import UNWATCHED, Progress, Store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.vacuum import Vacuumed


class UpkeptTable(Table):
    """A `Table` whose files can be maintained, unless a source feeds it: then its service does.

    Each call opens the version that it made, and continues from the versions of other writers.
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
        self._writer = Writer(self._opened, tools)

    def compact(self, *, threads: int = THREADS, progress: Progress = UNWATCHED) -> Compacted:
        """Merge all waiting changes into the base files, so that every reader sees them.

        Also merges runs of the row index if there are many, and keeps the log short. Blocks. If
        other writers commit meanwhile, it continues from their version; `RetryableError` if they
        always committed first. `UsageError` for a table that a source feeds: its service compacts
        it. `CorruptFileError` for a damaged file, `StorageError`.
        """
        return compact_table(self._writer, threads, progress)

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
        return vacuum_table(
            self._writer, retention_hours, dry_run=dry_run, readers_may_fail=readers_may_fail
        )

    def merge_files(
        self, *, policy: FileMergePolicy = FILE_MERGE_POLICY, progress: Progress = UNWATCHED
    ) -> FilesMerged:
        """Merge small base files into larger ones as long as `policy` says that there are too many.

        Rows and their waiting changes don't change. Blocks; may be called at any time.
        `RetryableError` if other writers always committed first, `UsageError` for a table that a
        source feeds: its service merges its files. `CorruptFileError` for a damaged file,
        `StorageError`.
        """
        return merge_small_files(self._writer, policy, progress)

    def optimize(
        self,
        by: str | Sequence[str] = (),
        *,
        full: bool = False,
        dry_run: bool = False,
        policy: ClusterPolicy = CLUSTER_POLICY,
        progress: Progress = UNWATCHED,
    ) -> Clustered:
        """Lay the table out by some columns, so that readers that filter by them open few files.

        Rewrites files that aren't laid out yet, in one commit or several; a second call without new
        files does nothing. The table keeps the columns: later calls needn't name them. After a call
        with others only new files are laid out by these; with `full` all are, also those that were
        laid out by the same ones at different times. Waiting changes keep waiting.

        With `dry_run` nothing changes, and a source may feed the table; the result says what the
        first commit would rewrite. Blocks; other writers may commit meanwhile. `UsageError` for
        other columns than the table's, if none are named and none are known, and for a table that a
        source feeds: `lakesplice optimize` does it there. `RetryableError` if other writers always
        committed first; `CorruptFileError`, `StorageError`.
        """
        columns = names_list(by)
        return optimize_table(self._writer, columns, policy, progress, whole=full, dry_run=dry_run)

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
        return purge_table(self._writer, older_than_hours, progress)

    def set_change_feed(self, *, on: bool) -> int:
        """Begin or end the change feed that Delta readers have of the table; return the version
        that shows it, which is then open.

        Each later version has its changes of base files: those of `compact`, and of upserts that
        are merged at once. Versions before it have no feed. If the feed is already as requested,
        nothing is done. Blocks. `UsageError` for a table that a source feeds: its setting
        `change_feed` does it; and for a table that has a column with a name that the feed needs.
        `RetryableError` if other writers always committed first, `StorageError`.
        """
        switch_change_feed(self._writer, on=on)
        return self.version
