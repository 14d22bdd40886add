"""Commits to a table fed by hand, on the version of it that a program has open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pyarrow as pa

from lakesplice.errors import StorageError
from lakesplice.model.arrays import KeyHashes, Mask
from lakesplice.model.manifest import Manifest
from lakesplice.planning.by_hand.hand_fed_changes import checked_transaction
from lakesplice.planning.rows.index_merge import plan_merge
from lakesplice.planning.upkeep.retention import RETENTION_SECONDS
from lakesplice.table.by_hand.new_table import Tools
from lakesplice.table.by_hand.schema_merge import schema_merge
from lakesplice.table.by_hand.upserts.upsert import Upserter
from lakesplice.table.by_hand.upserts.upsert_request import (
    Upserted,
    UpsertRequest,
    is_repeated,
    require_fed_by_hand,
)
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.protocol.commit import (
    Committed,
    Conflict,
    Planned,
    commit,
    commit_with_retries,
)
from lakesplice.table.protocol.intents import Evolve, IndexMerge, Intent
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.reading.table import OpenVersion
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance

ATTEMPTS_MAX = 20
THREADS = 2
_CHECKPOINT_EVERY = 20


class Writer:
    """Writes a table fed by hand; each commit opens the version that it made.

    Used by one thread at a time. Every call that commits blocks, and raises `UsageError` for a
    table that a source feeds.
    """

    def __init__(self, opened: OpenVersion, tools: Tools) -> None:
        store = opened.store
        self.tools = tools
        self._opened = opened
        self._upserter = Upserter(store, tools.clock, tools.entropy, tools.rewriter, THREADS)
        self._log = Maintenance(
            store,
            tools.keeper,
            tools.clock,
            checkpoint_every=_CHECKPOINT_EVERY,
            retention_seconds=RETENTION_SECONDS,
            expiry=Expiry(store, self.commit),
        )

    @property
    def store(self) -> Store:
        """The table's folder."""
        return self._opened.store

    @property
    def snapshot(self) -> Snapshot:
        """The open version."""
        return self._opened.snapshot

    @property
    def version(self) -> int:
        """The number of the open version."""
        return self.snapshot.version

    def open(self, snapshot: Snapshot) -> None:
        """Make a newer version the open one."""
        self._opened.snapshot = snapshot

    def refresh(self) -> Snapshot:
        """Open the newest version, and return it; a source may feed the table."""
        return self._opened.refresh()

    def newest(self) -> Manifest:
        """Open the newest version, and return its manifest."""
        manifest = self.refresh().manifest
        require_fed_by_hand(manifest)
        return manifest

    def commit(self, intent: Intent) -> Committed | Conflict:
        """Commit on the open version."""
        tools = self.tools
        outcome = commit(
            self.store, self.snapshot, intent, clock=tools.clock, entropy=tools.entropy
        )
        if isinstance(outcome, Committed):
            self.open(outcome.snapshot)
        return outcome

    def commit_with_retries(self, plan: Callable[[Manifest], Planned | None]) -> Planned | None:
        """See `lakesplice.table.protocol.commit.commit_with_retries`; `plan` is called with the
        newest version, which is then open.
        """
        return commit_with_retries(lambda: plan(self.newest()), self.commit, self.retries())

    def retries(self) -> Retries:
        """Return a counter of attempts that other writers may prevent."""
        return Retries(self.tools.clock, self.tools.entropy, ATTEMPTS_MAX)

    def change_rows(
        self,
        requested: Callable[[Snapshot], UpsertRequest],
        transaction: tuple[str, int] | None,
    ) -> Upserted:
        """Commit what is requested of a version; see `Upserter.edit`."""
        named = checked_transaction(transaction)
        snapshot, done = self._upserter.edit(self.snapshot, requested, named)
        self.open(snapshot)
        if done.merged:
            self.tidy()
        return done

    def live(self, snapshot: Snapshot, keys: KeyHashes) -> Mask:
        """Mark the keys whose row exists, and isn't deleted, in a version."""
        return self._upserter.live(snapshot, keys)

    def extend_schema(self, given: pa.Schema, transaction: tuple[str, int] | None) -> None:
        """Give the table columns that it lacks, and wider types, in a commit of its own, unless the
        transaction was applied before. `UsageError` if the transaction is invalid.
        """
        named = checked_transaction(transaction)

        def planned(manifest: Manifest) -> Evolve | None:
            if is_repeated(require_fed_by_hand(manifest), named):
                return None
            return schema_merge(self.store, self.snapshot, given, self.tools)

        self.commit_with_retries(planned)

    def tidy(self) -> None:
        """Merge runs of the row index if there are many, and keep the log short."""
        self._merge_runs()
        # A checkpoint only saves time; if this one failed, the next compaction writes one.
        with suppress(StorageError):
            self._log.care(self.snapshot)

    def _merge_runs(self) -> None:
        manifest = self.snapshot.manifest
        places = plan_merge([run.entries for run in manifest.runs])
        if places is None:
            return
        inputs = manifest.runs[places.start : places.stop]
        output = write_merged(self.store, inputs, RunCache(), self.tools.entropy)
        paths = tuple(run.file.path for run in inputs)
        # If another writer committed first, the next compaction merges the runs.
        self.commit(IndexMerge(manifest.generation, paths, output, self.version))
