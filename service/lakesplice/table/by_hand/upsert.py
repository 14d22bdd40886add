"""Upserts: rows given by hand become the next version of a table that has no source.

    hash the keys -> locate -> known rows to a delta, new ones to base files and a run -> commit

What is written rests on the version read. If another upsert comes in between, the rows are located
and written again; beside a compaction the commit holds, since addresses don't move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lakesplice.errors import ParkedTableError, UsageError
from lakesplice.model.arrays import Integers, KeyHashes, Mask, RowAddresses
from lakesplice.model.manifest import DeltaRef, Manifest, UpsertState
from lakesplice.model.names import GROUP, ROW
from lakesplice.model.schema import TableSchema
from lakesplice.planning.by_hand.hand_fed_changes import deletes, repeated_key, updates
from lakesplice.planning.intake.insert_only import first_occurrences
from lakesplice.planning.rows.keyhash import key_hash
from lakesplice.planning.rows.locate import UNKNOWN, locate
from lakesplice.table.by_hand.new_rows import NewRows, write_new_rows
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.files.tombstones import deleted_rows
from lakesplice.table.ingest.append import write_delta
from lakesplice.table.protocol.commit import Committed, commit
from lakesplice.table.protocol.intents import Upsert
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest

ATTEMPTS_MAX = 20
# Larger upserts write several deltas, each encoded, and later decoded, by a thread of its own; they
# are cut between base files where they can, since a compaction of some files reads only theirs.
CHANGES_PER_DELTA = 1 << 17
_GROUP_BITS = 23
SKIPPED = "skipped"
_THREADS = 4


@dataclass(frozen=True)
class UpsertRequest:
    """What an upsert is asked to do, in stored names and types: rows to write, keys to delete.

    `transaction` is (application, number) or None. `fills` allows new rows without all columns.
    """

    rows: pa.Table
    deleted: pa.Table
    transaction: tuple[str, int] | None = None
    fills: bool = False


@dataclass(frozen=True, slots=True)
class Upserted:
    """What an upsert did; `version` shows it.

    `repeated` if its transaction had been applied before, so that nothing was done. `deleted`
    counts rows that there were; keys that no row has are skipped. `skipped` counts rows that an
    insert-only table had, or that were given before within the call.
    """

    version: int
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    repeated: bool = False
    skipped: int = 0


@dataclass(frozen=True)
class _KeyedRows:
    """Rows or keys with their hashes."""

    rows: pa.Table
    keys: KeyHashes


@dataclass(frozen=True)
class _Found:
    """Where rows are; `live` are those that are there and not deleted."""

    addresses: RowAddresses
    live: Mask

    @property
    def known(self) -> Mask:
        known: Mask = self.addresses.group != UNKNOWN
        return known


class Upserter:
    """Upserts into one table. Keeps its index runs open; called by one thread at a time."""

    def __init__(self, store: Store, clock: Clock, entropy: Entropy) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._runs = RunCache()

    def upsert(self, snapshot: Snapshot, request: UpsertRequest) -> tuple[Snapshot, Upserted]:
        """Commit what is given and return the version that shows it.

        Blocks. `UsageError` for a table fed by a source, a key given twice and a new row without
        all columns; `ParkedTableError`; `RetryableError` if other upserts were always faster;
        `StorageError` with the effect unknown: with a transaction the call can be repeated.
        """
        only_inserts = require_fed_by_hand(snapshot.manifest).insert_only
        rows, deleted = self._keyed(
            request.rows, request.deleted, snapshot.manifest.schema, only_inserts=only_inserts
        )
        retries = Retries(self._clock, self._entropy, ATTEMPTS_MAX)
        while True:
            snapshot = latest(self._store, snapshot)
            manifest = snapshot.manifest
            upserts = require_fed_by_hand(manifest)
            if is_repeated(upserts, request.transaction):
                return snapshot, Upserted(snapshot.version, repeated=True)
            if manifest.parked is not None:
                raise ParkedTableError("the table is parked", reason=manifest.parked.detail)
            intent = self._write(snapshot, request, rows, deleted)
            if not (intent.counts.keys() - {SKIPPED}) and not intent.application:
                return snapshot, _upserted(snapshot.version, intent.counts)
            outcome = commit(
                self._store, snapshot, intent, clock=self._clock, entropy=self._entropy
            )
            if isinstance(outcome, Committed):
                done = outcome.snapshot
                return done, _upserted(done.version, intent.counts)
            retries.require_another(
                "other upserts committed first every time; try again later", last=outcome.detail
            )

    def _keyed(
        self, rows: pa.Table, deleted: pa.Table, schema: TableSchema, *, only_inserts: bool
    ) -> tuple[_KeyedRows, _KeyedRows]:
        with ThreadPoolExecutor(_THREADS) as pool:
            pieces = list(pool.map(lambda keys: key_hash(keys, schema), _slices(rows, schema)))
            pieces += list(pool.map(lambda keys: key_hash(keys, schema), _slices(deleted, schema)))
        none = np.empty(0, np.uint64)
        hashes = KeyHashes(
            np.concatenate([none, *(piece.high for piece in pieces)]),
            np.concatenate([none, *(piece.low for piece in pieces)]),
        )
        if only_inserts:
            first = first_occurrences(hashes)
            kept = _KeyedRows(rows.take(pa.array(first)), hashes.only(first))
            return kept, _KeyedRows(deleted, KeyHashes(none, none))
        twice = repeated_key(hashes)
        if twice is not None:
            keys = pa.concat_tables([t.select(list(schema.key)) for t in (rows, deleted)])
            raise UsageError(
                "a key is given twice; keep the row you mean", key=keys.slice(twice, 1).to_pylist()
            )
        count = rows.num_rows
        return (
            _KeyedRows(rows, hashes.only(slice(0, count))),
            _KeyedRows(deleted, hashes.only(slice(count, None))),
        )

    def _write(
        self, snapshot: Snapshot, request: UpsertRequest, rows: _KeyedRows, deleted: _KeyedRows
    ) -> Upsert:
        manifest = snapshot.manifest
        upserts = require_fed_by_hand(manifest)
        position, now = snapshot.version + 1, now_scalar(self._clock)
        at, gone = self._found(manifest, rows), self._found(manifest, deleted)
        skipped = 0
        if upserts.insert_only:
            rows, at = _unknown(rows, at)
            skipped = request.rows.num_rows - len(rows.keys.high)
        if not request.fills:
            _require_whole(rows.rows, at, manifest.schema)
        deltas = self._write_deltas(
            schema=manifest.schema,
            rows=rows,
            at=at,
            deleted=deleted,
            gone=gone,
            position=position,
            now=now,
        )
        new = NewRows()
        if len(at.known) and not at.known.all():
            inserts = rows.rows.filter(pa.array(~at.known)) if at.known.any() else rows.rows
            new = write_new_rows(
                self._store, [inserts], position, now, manifest.schema, self._entropy
            )
        counts = {
            "inserted": int(np.count_nonzero(~at.live)),
            "updated": int(np.count_nonzero(at.live)),
            "deleted": int(np.count_nonzero(gone.live)),
            SKIPPED: skipped,
        }
        state = replace(upserts, position=position)
        if counts["deleted"]:
            state = replace(state, has_deleted=True)
        application = ""
        if request.transaction is not None:
            application, number = request.transaction
            transactions = {**state.transactions, application: number}
            state = replace(state, transactions=transactions)
        return Upsert(
            generation=manifest.generation,
            planned_on=snapshot.version,
            read=upserts.position,
            upserts=state,
            schema_version=manifest.schema.version,
            addressed_groups=frozenset(group for delta in deltas for group in delta.waiting),
            files=new.files,
            deltas=deltas,
            runs=new.runs,
            application=application,
            counts={name: count for name, count in counts.items() if count},
        )

    def _found(self, manifest: Manifest, with_keys: _KeyedRows) -> _Found:
        runs = self._runs.open_runs(self._store, manifest.runs)
        live = np.array(sorted(manifest.groups), np.int64)
        found = locate(runs, with_keys.keys, live)
        known = found.group != UNKNOWN
        upserts = manifest.upserts
        if upserts is not None and upserts.has_deleted and known.any():
            known &= ~deleted_rows(self._store, manifest, *found)
        return _Found(found, known)

    def _write_deltas(
        self, schema: TableSchema, rows: _KeyedRows, at: _Found, deleted: _KeyedRows, gone: _Found,
        position: int, now: pa.Scalar,
    ) -> tuple[DeltaRef, ...]:  # fmt: skip
        written: list[Callable[[], pa.Table]] = []
        known = at.known
        if known.any():
            kept = rows.rows if known.all() else rows.rows.filter(pa.array(known))
            there = at.addresses.only(known)
            written += _pieces(updates(kept, ~at.live[known], there, position, now, schema))
        if gone.live.any():
            keys = deleted.rows.filter(pa.array(gone.live))
            there = gone.addresses.only(gone.live)
            written += _pieces(deletes(keys, there, position, now, schema))
        with ThreadPoolExecutor(_THREADS) as pool:
            write = lambda piece: write_delta(self._store, piece(), schema, self._entropy)  # noqa: E731
            return tuple(pool.map(write, written))


def _unknown(rows: _KeyedRows, at: _Found) -> tuple[_KeyedRows, _Found]:
    """Return the rows whose key no row has, deleted ones included."""
    unknown = ~at.known
    kept = _KeyedRows(rows.rows.filter(pa.array(unknown)), rows.keys.only(unknown))
    return kept, _Found(at.addresses.only(unknown), at.live[unknown])


def _upserted(version: int, counts: Mapping[str, int]) -> Upserted:
    count = counts.get
    return Upserted(
        version,
        count("inserted", 0),
        count("updated", 0),
        count("deleted", 0),
        skipped=count(SKIPPED, 0),
    )


def require_fed_by_hand(manifest: Manifest) -> UpsertState:
    """Return the table's state of upserts; `UsageError` if a source feeds it."""
    if manifest.upserts is None:
        raise UsageError(
            "the table is fed by a source; change its rows there",
            topic=next(iter(manifest.sources), None),
        )
    return manifest.upserts


def is_repeated(upserts: UpsertState, transaction: tuple[str, int] | None) -> bool:
    """Whether a transaction of this number or a higher one of its application was applied."""
    if transaction is None:
        return False
    application, number = transaction
    applied = upserts.transactions.get(application)
    return applied is not None and number <= applied


def now_scalar(clock: Clock) -> pa.Scalar:
    """Return the clock's time as `_source_ts` holds it."""
    return pa.scalar(clock.now_ms() * 1000, pa.timestamp("us", tz="UTC"))


def _slices(table: pa.Table, schema: TableSchema) -> Iterator[pa.Table]:
    keys = table.select(list(schema.key))
    for start in range(0, table.num_rows, CHANGES_PER_DELTA):
        yield keys.slice(start, CHANGES_PER_DELTA)


def _require_whole(rows: pa.Table, at: _Found, schema: TableSchema) -> None:
    absent = [name for name in schema.names if name not in rows.column_names]
    if not absent or at.live.all():
        return
    first = int(np.argmin(at.live))
    raise UsageError(
        "new rows need all columns; give them, or fill_new_rows=True to store null in the others",
        rows=int(np.count_nonzero(~at.live)),
        key=rows.select(list(schema.key)).slice(first, 1).to_pylist(),
        absent=absent,
    )


def _pieces(located: pa.Table) -> list[Callable[[], pa.Table]]:
    """Cut changes, in the order of their addresses, into deltas of some `CHANGES_PER_DELTA` or
    more: between file groups, and within one that has many.
    """
    group, row = (located.column(name).to_numpy() for name in (GROUP, ROW))
    order = _address_order(group, row)
    starts = np.flatnonzero(np.diff(group[order], prepend=-1)).tolist()
    cuts = [0]
    for start, end in pairwise([*starts, len(order)]):
        if start - cuts[-1] >= CHANGES_PER_DELTA:
            cuts.append(start)
        count = (end - start) // CHANGES_PER_DELTA
        if count > 1:
            cuts += [] if cuts[-1] == start else [start]
            cuts += [start + (end - start) * part // count for part in range(1, count)]
    return [
        partial(located.take, pa.array(order[start:end]))
        for start, end in pairwise([*cuts, len(order)])
    ]


def _address_order(group: Integers, row: Integers) -> Integers:
    """The order by group and row, by one number that has both where they fit into it."""
    number = group - group.min()
    if number.max() >> _GROUP_BITS or row.max() >> (63 - _GROUP_BITS):
        return np.lexsort((row, group))
    return np.argsort(number << (63 - _GROUP_BITS) | row)
