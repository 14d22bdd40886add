"""A table as its driver holds it: the newest snapshot, and every commit to it.

If several topics feed a table, there is one such object for each topic.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.column_presence import ColumnPresences
from lakesplice.model.epochs import Epoch
from lakesplice.model.manifest import Manifest, ParkCode, ParkReason, PartitionState, SourceState
from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.known_topic import KnownTopic, known_topic
from lakesplice.planning.sources.shards import joining_problem
from lakesplice.table.ingest.fence import lives_below, with_fence
from lakesplice.table.ingest.moved_row_deletes import with_moved_rows_deleted
from lakesplice.table.ingest.reshape import reshape
from lakesplice.table.protocol.commit import NO_PARAMETERS, Committed, Conflict, commit, create
from lakesplice.table.protocol.intents import Create, Evolve, Ingest, Intent, Redirect
from lakesplice.table.protocol.layout import probe_path
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest, open_snapshot

LOG_RETENTION_HOURS = 168
_ATTEMPTS_MAX = 10


class _Newest:
    """The newest snapshot of a table, for all who hold it."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self._lock = threading.Lock()

    def hold(self, snapshot: Snapshot) -> None:
        with self._lock:
            if self.snapshot is None or snapshot.version > self.snapshot.version:
                self.snapshot = snapshot


class DriverTable:
    """Ingest and compaction of one driver commit here, from several threads.

    `snapshot` is None while the table is unborn; it then starts at `source` once it is born, and a
    topic that comes to it later at its own. All methods that commit block and raise what
    `lakesplice.table.protocol.commit.commit` does. Snapshots have all rows of the source unless
    `whole_snapshots` is set to False. `beside` holds the same table for another topic.
    """

    def __init__(
        self,
        store: Store,
        source: SourceState,
        generation: int,
        clock: Clock,
        entropy: Entropy,
        *,
        log_retention_hours: int = LOG_RETENTION_HOURS,
        beside: DriverTable | None = None,
    ) -> None:
        self.store = store
        self.generation = generation
        self._newest: _Newest = _Newest(_open(store)) if beside is None else beside._newest  # noqa: SLF001
        self.whole_snapshots = True
        self._unborn_source = source
        self._clock = clock
        self._entropy = entropy
        self._log_retention_hours = log_retention_hours

    def require_writable(self) -> None:
        """Write a file where the table's commits are, and delete it; `StorageError` if that fails.

        Blocks. Readers of the log skip a name that begins with an underscore, as this one does.
        """
        path = probe_path(self._entropy)
        self.store.put_new(path, b"")
        self.store.delete(path)

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest version that is known here."""
        return self._newest.snapshot

    @property
    def manifest(self) -> Manifest:
        """The present manifest; that of an unborn table is empty but for its source."""
        if self.snapshot is None:
            return Manifest(0, sources={self._unborn_source.topic: self._unborn_source})
        return self.snapshot.manifest

    @property
    def version(self) -> int:
        """The present version; 0 for an unborn table, whose first one that is."""
        return 0 if self.snapshot is None else self.snapshot.version

    @property
    def source(self) -> SourceState:
        """Where the table stands in its topic; in the one that it is for, if that is another."""
        manifest, unborn = self.manifest, self._unborn_source
        known = manifest.sources.get(unborn.topic)
        if known is None and joining_problem(manifest, unborn):
            known = next(iter(manifest.sources.values()))
        return known or unborn

    @property
    def schema(self) -> TableSchema:
        """The present schema; empty while the table has no columns."""
        return self.manifest.schema

    @property
    def parked(self) -> ParkReason | None:
        """Why the table is parked, or None; one fed by hand takes nothing from a source."""
        if self.manifest.upserts is not None:
            detail = "the table is fed by hand; exclude its topic, or give the table another folder"
            return ParkReason(ParkCode.FED_BY_HAND, detail, self.source.topic)
        return self.manifest.with_source(self.source).parked_for(self.source.topic)

    def states(self, partitions: Iterable[int]) -> dict[int, PartitionState]:
        """Return how far the table is in each partition; one added since its birth starts at 0."""
        known = self.source.partitions
        return {at: known.get(at, PartitionState(0)) for at in partitions}

    def known(self, partitions: Iterable[int]) -> KnownTopic:
        """Return what is known of the topic, of which `partitions` are some or all."""
        whole = self.whole_snapshots
        return known_topic(self.manifest, self.source, partitions, whole_snapshots=whole)

    def next_offsets(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return where the table stands in each partition, as `states` has it."""
        return {at: state.next_offset for at, state in self.states(partitions).items()}

    def commit(
        self, intent: Intent, parameters: Mapping[str, str] = NO_PARAMETERS
    ) -> Committed | Conflict:
        """Commit and keep the new snapshot; after a conflict, the one that won the race.

        `parameters` is written into the history; it says nothing about a table's creation.
        """
        if isinstance(intent, Create):
            outcome = create(self.store, intent, clock=self._clock, entropy=self._entropy)
        else:
            known = self.snapshot or open_snapshot(self.store)
            outcome = commit(
                self.store,
                known,
                intent,
                clock=self._clock,
                entropy=self._entropy,
                parameters=parameters,
            )
        if isinstance(outcome, Committed):
            self._hold(outcome.snapshot)
        elif self.snapshot is not None:
            self._hold(latest(self.store, self.snapshot))
        return outcome

    def retries(self, attempts_max: int = _ATTEMPTS_MAX) -> Retries:
        """Return the attempts at something that another writer of the table may prevent."""
        return Retries(self._clock, self._entropy, attempts_max)

    def be_born(self, schema: TableSchema, parked: ParkReason | None = None) -> None:
        """Make version 0, at the start of the source, or take up what another driver made; let the
        source be one of the table's. `UsageError` if it can't be.
        """
        if self.snapshot is None:
            source, hours = self._unborn_source, self._log_retention_hours
            intent = Create(self.generation, schema, source, parked, hours)
            if isinstance(self.commit(intent), Conflict):
                self._hold(open_snapshot(self.store))
        retries = self.retries()
        while self._is_further():
            if problem := joining_problem(self.manifest, self._unborn_source):
                raise UsageError(problem, topic=self._unborn_source.topic)
            joined = self.manifest.with_source(self._unborn_source)
            joining = Redirect(self.generation, self.version, self._unborn_source, joined.parked)
            if isinstance(self.commit(joining), Conflict):
                retries.require_another(
                    "other writers committed first every time, so the topic wasn't added to the"
                    " table",
                    topic=self._unborn_source.topic,
                )

    def evolve(self, schema: TableSchema) -> Committed | Conflict:
        """Make `schema`, which extends the present one, the table's schema.

        Base files whose columns change their type are rewritten before it.
        """
        planned_on, read = self.version, self.manifest
        replaced = reshape(self.store, read, schema, self._entropy)
        began = planned_on if replaced else None
        return self.commit(Evolve.of(self.generation, read, schema, replaced, began))

    def record_presences(self, presences: ColumnPresences) -> Committed | Conflict:
        """Record what is known of the columns of the source."""
        source = replace(self.source, presences=presences)
        return self.commit(Redirect(self.generation, self.version, source))

    def fenced(self, intent: Ingest) -> Ingest:
        """Return an ingest with what its fence deletes, if it raises it; see `with_fence`."""
        return with_fence(self.store, self.manifest, intent, self._clock.now_ms(), self._entropy)

    def with_moved_rows_deleted(self, intent: Ingest, vacated: Collection[int]) -> Ingest:
        """Return an ingest that deletes moved rows from the base files they were in, of the file
        groups `vacated`.

        Blocks: rewrites these files as they are now. A conflict of `FILES` says that one of them
        was replaced meanwhile; call it again with the first intent. Raises as `compact_files`.
        """
        replaced = with_moved_rows_deleted(
            self.store, self.manifest, intent.deltas, vacated, self._entropy
        )
        return replace(intent, replaced=replaced)

    def lives_below(self, place: Position) -> bool:
        """Return whether any row of the source lives at or below a position."""
        fenced = replace(self.source, fence=place)
        return self.snapshot is not None and lives_below(self.store, self.manifest, fenced)

    def raise_fence(self, place: Position) -> int:
        """Delete the source's rows at or below a position, in a commit of its own; return how
        many went. Nothing is committed if the fence is there already.

        No batch of the source may be running: its rows would be written by the fence before.
        """
        retries = self.retries()
        while True:
            if self.snapshot is None or self.source.fence >= place:
                return 0
            source = replace(self.source, fence=place)
            intent = self.fenced(
                Ingest(self.generation, self.version, {}, source, self.schema.version)
            )
            if isinstance(self.commit(intent), Committed):
                return int(intent.counts.get("fenced", 0))
            retries.require_another(
                "other writers committed first every time, so the rows before a TRUNCATE, DROP"
                " or snapshot weren't deleted",
                topic=self.source.topic,
            )

    def record_epoch(self, epoch: Epoch) -> Committed | Conflict:
        """Record that an epoch is open for all partitions of the source."""
        source = replace(self.source, epochs=(*self.source.epochs, epoch))
        return self.commit(Redirect(self.generation, self.version, source))

    def park(self, reason: ParkReason) -> None:
        """Park the table at its offsets; a parked table is unchanged.

        `RetryableError` if other writers were always faster: then it isn't parked.
        """
        if self.snapshot is None:
            self.be_born(TableSchema(), reason)
        retries = self.retries()
        while self.snapshot is not None and self.parked is None:
            if isinstance(self.commit(self._parking(reason)), Committed):
                return
            retries.require_another(
                "other writers committed first every time, so the table is not parked yet; the next"
                " batch tries again",
                topic=self.source.topic,
                reason=reason.code,
            )

    def _parking(self, reason: ParkReason) -> Redirect:
        """Return what parks the table, or this topic of several."""
        source = self.source
        after = self.manifest.with_source(source)
        if not after.is_merged or not reason.is_of_topic:
            return Redirect(self.generation, self.version, parked=reason)
        parked = replace(source, parked=replace(reason, topic=source.topic))
        return Redirect(self.generation, self.version, parked, after.parked)

    def _is_further(self) -> bool:
        """Whether the table has others' sources and not this one."""
        manifest = self.manifest
        return bool(manifest.sources) and self._unborn_source.topic not in manifest.sources

    def _hold(self, snapshot: Snapshot) -> None:
        self._newest.hold(snapshot)


def _open(store: Store) -> Snapshot | None:
    try:
        return open_snapshot(store)
    except TableNotFoundError:
        return None
