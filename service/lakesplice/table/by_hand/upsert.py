"""Upserts: rows from a program become the next version of a table without a source.

    hash the keys -> locate -> known rows to deltas, or into their base files at once,
                               new rows to base files and a run                        -> commit

The written files rely on the version that was read. If another upsert is committed first, the rows
are located and written again. A compaction that is committed first doesn't matter, since addresses
don't change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.arrays import RowAddresses
from lakesplice.model.manifest import DeltaRef, Manifest, UpsertState
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.merge_choice import MergeReason, merge_reason
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.table.by_hand.delta_pieces import pieces
from lakesplice.table.by_hand.direct_merge import in_full, merge_changes
from lakesplice.table.by_hand.located_rows import (
    FoundRows,
    KeyedRows,
    keyed_rows,
    located_changes,
    require_whole,
    unknown_rows,
)
from lakesplice.table.by_hand.new_rows import NewRows, write_new_rows
from lakesplice.table.files.change_images import ImageWriter
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.files.tombstones import deleted_rows
from lakesplice.table.ingest.append import write_delta
from lakesplice.table.protocol.commit import Committed, commit
from lakesplice.table.protocol.intents import Splice, Upsert
from lakesplice.table.protocol.new_files import ChangeImages
from lakesplice.table.protocol.ports import Clock, Entropy, Rewriter, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest

ATTEMPTS_MAX = 20
SKIPPED = "skipped"
_THREADS = 4


@dataclass(frozen=True)
class UpsertRequest:
    """What an upsert is asked to do, in stored names and types: rows to write, keys to delete.

    `transaction` is (application, number) or None. `fills` allows new rows without all columns.
    `merge` says whether changes of known rows are merged into base files at once; with None the
    upsert decides.
    """

    rows: pa.Table
    deleted: pa.Table
    transaction: tuple[str, int] | None = None
    fills: bool = False
    merge: bool | None = None


@dataclass(frozen=True, slots=True)
class Upserted:
    """What an upsert did; `version` has the result.

    `repeated`: its transaction had been applied before, so nothing was done. `deleted` counts the
    rows that were deleted; keys that no row has are skipped. `skipped` counts rows that an
    insert-only table already had, or that came earlier in the same call. `merged`: changes of known
    rows are in the base files already, so every reader sees them.
    """

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    repeated: bool = False
    skipped: int = 0
    merged: bool = False


class Upserter:
    """Upserts into one table. Keeps the index runs open; called by one thread at a time."""

    def __init__(
        self, store: Store, clock: Clock, entropy: Entropy, rewriter: Rewriter, threads: int
    ) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._rewriter = rewriter
        self._threads = threads
        self._runs = RunCache()

    def upsert(self, snapshot: Snapshot, request: UpsertRequest) -> tuple[Snapshot, Upserted]:
        """Commit the request and return the version that has the result.

        Blocks. `UsageError` for a table fed by a source, a key given twice, and a new row without
        all columns; `ParkedTableError`; `RetryableError` if other upserts always committed first;
        `StorageError` with the effect unknown: with a transaction the call can be repeated.
        """
        return self.edit(snapshot, lambda _: request)

    def edit(
        self, snapshot: Snapshot, requested: Callable[[Snapshot], UpsertRequest]
    ) -> tuple[Snapshot, Upserted]:
        """Commit what is requested of a version, which holds for that version alone: it is
        requested again if another upsert commits first. Otherwise as `upsert`.
        """
        retries = Retries(self._clock, self._entropy, ATTEMPTS_MAX)
        while True:
            snapshot = latest(self._store, snapshot)
            manifest = snapshot.manifest
            upserts, request = require_fed_by_hand(manifest), requested(snapshot)
            rows, deleted = keyed_rows(
                request.rows, request.deleted, manifest.schema, only_inserts=upserts.insert_only
            )
            if is_repeated(upserts, request.transaction):
                return snapshot, Upserted(snapshot.version, repeated=True)
            if manifest.parked is not None:
                raise ParkedTableError("the table is parked", reason=manifest.parked.detail)
            intent, reason = self._write(snapshot, request, rows, deleted)
            if not (intent.counts.keys() - {SKIPPED}) and not intent.application:
                return snapshot, _upserted(snapshot.version, intent.counts)
            outcome = commit(
                self._store,
                snapshot,
                intent,
                clock=self._clock,
                entropy=self._entropy,
                parameters={} if reason is None else {"merge": str(reason)},
            )
            if isinstance(outcome, Committed):
                done = outcome.snapshot
                merged = reason is not None
                return done, replace(_upserted(done.version, intent.counts), merged=merged)
            retries.require_another(
                "other upserts committed first every time; try again later", last=outcome.detail
            )

    def _write(
        self, snapshot: Snapshot, request: UpsertRequest, rows: KeyedRows, deleted: KeyedRows
    ) -> tuple[Upsert, MergeReason | None]:
        manifest = snapshot.manifest
        upserts = require_fed_by_hand(manifest)
        position, now = snapshot.version + 1, now_scalar(self._clock)
        at, gone = self._found(manifest, rows), self._found(manifest, deleted)
        skipped = 0
        if upserts.insert_only:
            rows, at = unknown_rows(rows, at)
            skipped = request.rows.num_rows - len(rows.keys.high)
        if not request.fills:
            require_whole(rows.rows, at, manifest.schema)
        located = located_changes(
            schema=manifest.schema,
            rows=rows,
            at=at,
            deleted=deleted,
            gone=gone,
            position=position,
            now=now,
        )
        reason = _reason(request.merge, located)
        deltas: tuple[DeltaRef, ...] = ()
        merged = Splice(manifest.generation, {}, {})
        if reason is None:
            deltas = self._write_deltas(located, manifest.schema)
        else:
            merged = self._merged(snapshot, located)
        new = self._write_new(rows, at, position, now, manifest.schema)
        counts = _counts(at, gone, skipped)
        transaction, has_deletes = request.transaction, "deleted" in counts
        intent = Upsert(
            generation=manifest.generation,
            planned_on=snapshot.version,
            read=upserts.position,
            upserts=_next_state(upserts, position, transaction, has_deletes=has_deletes),
            schema_version=manifest.schema.version,
            addressed_groups=frozenset(group for delta in deltas for group in delta.waiting),
            files=new.files,
            deltas=deltas,
            runs=new.runs,
            application="" if transaction is None else transaction[0],
            counts={**merged.counts, **counts},
            replaced=merged.replaced,
            consumed=merged.consumed,
            images=self._images(manifest, merged, new),
        )
        return intent, reason

    def _write_new(
        self, rows: KeyedRows, at: FoundRows, position: int, now: pa.Scalar, schema: TableSchema
    ) -> NewRows:
        if not len(at.known) or at.known.all():
            return NewRows()
        inserts = rows.rows.filter(pa.array(~at.known)) if at.known.any() else rows.rows
        return write_new_rows(self._store, [inserts], position, now, schema, self._entropy)

    def _images(
        self, manifest: Manifest, merged: Splice, new: NewRows
    ) -> tuple[ChangeImages, ...] | None:
        """Where a commit has images, readers of the feed see no other row that it adds."""
        if not merged.images or not new.files:
            return merged.images
        writer = ImageWriter(self._store, manifest.schema, self._entropy)
        for file in new.files:
            writer.added(file)
        return (*merged.images, *writer.finish())

    def _found(self, manifest: Manifest, with_keys: KeyedRows) -> FoundRows:
        runs = self._runs.open_runs(self._store, manifest.runs)
        live = np.array(sorted(manifest.groups), np.int64)
        found = locate(runs, with_keys.keys, live)
        known = found.group != UNKNOWN
        upserts = manifest.upserts
        if upserts is not None and upserts.has_deleted and known.any():
            known &= ~deleted_rows(self._store, manifest, *found)
        return FoundRows(found, known)

    def _write_deltas(
        self, located: Sequence[pa.Table], schema: TableSchema
    ) -> tuple[DeltaRef, ...]:
        write = lambda piece: write_delta(self._store, piece(), schema, self._entropy)  # noqa: E731
        with ThreadPoolExecutor(_THREADS) as pool:
            return tuple(pool.map(write, [one for changes in located for one in pieces(changes)]))

    def _merged(self, snapshot: Snapshot, located: Sequence[pa.Table]) -> Splice:
        whole = [in_full(changes, snapshot.manifest.schema) for changes in located]
        return merge_changes(
            store=self._store,
            snapshot=snapshot,
            changes=pa.concat_tables(whole),
            rewriter=self._rewriter,
            entropy=self._entropy,
            threads=self._threads,
        )


def _next_state(
    before: UpsertState, position: int, transaction: tuple[str, int] | None, *, has_deletes: bool
) -> UpsertState:
    state = replace(before, position=position, has_deleted=before.has_deleted or has_deletes)
    if transaction is None:
        return state
    application, number = transaction
    return replace(state, transactions={**state.transactions, application: number})


def _reason(asked: bool | None, located: Sequence[pa.Table]) -> MergeReason | None:
    if not located:
        return None
    group, row = (
        np.concatenate([changes.column(name).to_numpy() for changes in located])
        for name in (GROUP, ROW)
    )
    return merge_reason(asked, RowAddresses(group, row))


def _upserted(version: int, counts: Mapping[str, int]) -> Upserted:
    count = counts.get
    return Upserted(
        version,
        count("inserted", 0),
        count("updated", 0),
        count("deleted", 0),
        skipped=count(SKIPPED, 0),
    )


def _counts(at: FoundRows, deleted: FoundRows, skipped: int) -> dict[str, int]:
    counts = {
        "inserted": int(np.count_nonzero(~at.live)),
        "updated": int(np.count_nonzero(at.live)),
        "deleted": int(np.count_nonzero(deleted.live)),
        SKIPPED: skipped,
    }
    return {name: count for name, count in counts.items() if count}


def require_fed_by_hand(manifest: Manifest) -> UpsertState:
    """Return the table's upsert state; `UsageError` if a source feeds the table."""
    if manifest.upserts is None:
        raise UsageError(
            "the table is fed by a source; change its rows there",
            topic=next(iter(manifest.sources), None),
        )
    return manifest.upserts


def is_repeated(upserts: UpsertState, transaction: tuple[str, int] | None) -> bool:
    """Whether this transaction, or one of the application with a higher number, was applied
    before.
    """
    if transaction is None:
        return False
    application, number = transaction
    applied = upserts.transactions.get(application)
    return applied is not None and number <= applied


def now_scalar(clock: Clock) -> pa.Scalar:
    """Return the clock's time in the type of `_source_ts`."""
    return pa.scalar(clock.now_ms() * 1000, pa.timestamp("us", tz="UTC"))
