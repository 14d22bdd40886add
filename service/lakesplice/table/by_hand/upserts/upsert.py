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
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from lakesplice.errors import ParkedTableError
from lakesplice.model.arrays import KeyHashes, Mask, RowAddresses
from lakesplice.model.manifest import DeltaRef, Manifest
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import near_keys, widened
from lakesplice.planning.by_hand.merge_choice import MergeReason, merge_reason
from lakesplice.planning.rows.locate import UNKNOWN
from lakesplice.table.by_hand.upserts.delta_pieces import pieces
from lakesplice.table.by_hand.upserts.direct_merge import in_full, merge_changes
from lakesplice.table.by_hand.upserts.located_rows import (
    FoundRows,
    KeyedRows,
    keyed_rows,
    located_deletes,
    located_updates,
    require_whole,
    unknown_rows,
)
from lakesplice.table.by_hand.upserts.new_rows import NewRows, write_new_rows
from lakesplice.table.by_hand.upserts.row_constraints import require_constraints
from lakesplice.table.by_hand.upserts.upsert_request import (
    Upserted,
    UpsertRequest,
    is_repeated,
    next_state,
    now_scalar,
    require_fed_by_hand,
)
from lakesplice.table.files.change_images import ImageWriter
from lakesplice.table.files.index_runs import RunCache, located
from lakesplice.table.files.tombstones import deleted_rows
from lakesplice.table.ingest.append import write_delta
from lakesplice.table.protocol.commit import Committed, commit
from lakesplice.table.protocol.intents import Splice, Upsert
from lakesplice.table.protocol.new_files import ChangeImages
from lakesplice.table.protocol.ports import Clock, Entropy, Rewriter, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.reading.table import Table

ATTEMPTS_MAX = 20
SKIPPED = "skipped"
_THREADS = 4
Located: TypeAlias = tuple[KeyedRows, FoundRows]


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

    def edit(
        self,
        snapshot: Snapshot,
        requested: Callable[[Snapshot], UpsertRequest],
        transaction: tuple[str, int] | None = None,
    ) -> tuple[Snapshot, Upserted]:
        """Commit what is requested of a version, and return the version that has it.

        A request holds for one version alone: if another upsert commits first, it is made again. It
        isn't made if the transaction, (application, number), was applied before.

        Blocks. `UsageError` for a table fed by a source, a key given twice, and a new row without
        all columns; `ParkedTableError`; `RetryableError` if other upserts always committed first;
        `StorageError` with the effect unknown: with a transaction the call can be repeated.
        """
        retries = Retries(self._clock, self._entropy, ATTEMPTS_MAX)
        while True:
            snapshot = latest(self._store, snapshot)
            manifest = snapshot.manifest
            upserts = require_fed_by_hand(manifest)
            if is_repeated(upserts, transaction):
                return snapshot, Upserted(snapshot.version, repeated=True)
            request = requested(snapshot)
            rows, deleted = keyed_rows(
                request.rows, request.deleted, manifest.schema, only_inserts=upserts.insert_only
            )
            if manifest.parked is not None:
                raise ParkedTableError("the table is parked", reason=manifest.parked.detail)
            intent, reason = self._write(snapshot, request, rows, deleted, transaction)
            if not (intent.counts.keys() - {SKIPPED}) and not intent.application:
                return snapshot, _upserted(snapshot.version, intent.counts)
            outcome = commit(
                self._store,
                snapshot,
                intent,
                clock=self._clock,
                entropy=self._entropy,
                parameters=_parameters(request, reason),
            )
            if isinstance(outcome, Committed):
                done = outcome.snapshot
                merged = reason is not None
                return done, replace(_upserted(done.version, intent.counts), merged=merged)
            retries.require_another(
                "other upserts committed first every time; try again later", last=outcome.detail
            )

    def _write(
        self,
        snapshot: Snapshot,
        request: UpsertRequest,
        given: Sequence[KeyedRows],
        deleted: KeyedRows,
        transaction: tuple[str, int] | None,
    ) -> tuple[Upsert, MergeReason | None]:
        manifest = snapshot.manifest
        upserts = require_fed_by_hand(manifest)
        position, now = snapshot.version + 1, now_scalar(self._clock)
        pairs = [(rows, self._located(manifest, rows.keys)) for rows in given]
        gone = self._located(manifest, deleted.keys)
        skipped = 0
        if upserts.insert_only:
            pairs = [unknown_rows(*pair) for pair in pairs]
            skipped = sum(table.num_rows for table in request.rows) - _count(pairs)
        if not request.fills:
            for rows, at in pairs:
                require_whole(rows.rows, at, manifest.schema)
        require_constraints(pairs, upserts, manifest.schema, partial(self._near, snapshot))
        located = located_deletes(deleted, gone, position, now, manifest.schema)
        for rows, at in reversed(pairs):
            located = located_updates(rows, at, position, now, manifest.schema) + located
        reason = _reason(request.merge, located)
        deltas, merged = self._write_known(snapshot, located, at_once=reason is not None)
        new = self._write_new(pairs, position, now, manifest.schema)
        counts = _counts(pairs, gone, skipped)
        has_deletes = "deleted" in counts
        intent = Upsert(
            generation=manifest.generation,
            planned_on=snapshot.version,
            read=upserts.position,
            upserts=next_state(upserts, position, transaction, has_deletes=has_deletes),
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
            operation=request.operation,
        )
        return intent, reason

    def _write_known(
        self, snapshot: Snapshot, located: Sequence[pa.Table], *, at_once: bool
    ) -> tuple[tuple[DeltaRef, ...], Splice]:
        """Write changes of known rows to deltas or, if `at_once`, into their base files."""
        if at_once:
            return (), self._merged(snapshot, located)
        manifest = snapshot.manifest
        nothing_merged = Splice(manifest.generation, {}, {})
        return self._write_deltas(located, manifest.schema), nothing_merged

    def _near(self, snapshot: Snapshot, columns: Sequence[str], keys: pa.Table) -> pa.Table:
        """Read columns of all rows that have one of the keys, and maybe of others."""
        near = near_keys(keys, snapshot.manifest.schema)
        return Table(self._store, snapshot=snapshot).read(columns=columns, filter=near)

    def _write_new(
        self, pairs: Sequence[Located], position: int, now: pa.Scalar, schema: TableSchema
    ) -> NewRows:
        inserts = [
            rows.rows.filter(pa.array(~at.known)) if at.known.any() else rows.rows
            for rows, at in pairs
            if not at.known.all()
        ]
        if len(inserts) > 1:  # they may lack different columns
            inserts = [widened(rows, schema) for rows in inserts]
        if not inserts:
            return NewRows()
        return write_new_rows(self._store, inserts, position, now, schema, self._entropy)

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

    def live(self, snapshot: Snapshot, keys: KeyHashes) -> Mask:
        """Mark the keys whose row exists, and isn't deleted, in a version."""
        return self._located(snapshot.manifest, keys).live

    def _located(self, manifest: Manifest, keys: KeyHashes) -> FoundRows:
        found = located(self._store, manifest, keys, self._runs)
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


def _parameters(request: UpsertRequest, reason: MergeReason | None) -> dict[str, str]:
    return dict(request.parameters) if reason is None else {**request.parameters, "merge": reason}


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


def _count(pairs: Sequence[Located]) -> int:
    return sum(rows.rows.num_rows for rows, _ in pairs)


def _counts(pairs: Sequence[Located], deleted: FoundRows, skipped: int) -> dict[str, int]:
    updated = sum(int(np.count_nonzero(at.live)) for _, at in pairs)
    counts = {
        "inserted": _count(pairs) - updated,
        "updated": updated,
        "deleted": int(np.count_nonzero(deleted.live)),
        SKIPPED: skipped,
    }
    return {name: count for name, count in counts.items() if count}
