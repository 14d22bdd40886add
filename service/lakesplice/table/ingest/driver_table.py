"""A table as its driver sees it: the newest snapshot, and every commit to it.

If several topics feed a table, there is one object for each topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.formats.events.values.fences import Fence
from lakesplice.model.manifest import DeadLetterRef, Manifest
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.source_state import Emptied, PartitionState, SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake.known_topic import KnownTopic, known_topic
from lakesplice.planning.rows.row_images import is_feedable, require_feedable
from lakesplice.planning.sources.late_order import LateChange
from lakesplice.planning.sources.shards import joining_problem
from lakesplice.planning.upkeep.retention import LOG_RETENTION_HOURS
from lakesplice.table.ingest.dead_letter_groups import (
    letters_read_again,
    narrowed_files,
)
from lakesplice.table.ingest.fence import (
    lives_below,
    with_end_of_snapshot,
    with_ends,
    with_fence,
)
from lakesplice.table.ingest.moved_row_deletes import with_moved_rows_deleted
from lakesplice.table.ingest.newest_table import NewestTable
from lakesplice.table.ingest.reshape import reshape
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Create, Evolve, Ingest, Redirect, SetChangeFeed
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot


class DriverTable(NewestTable):
    """A table that one driver writes: its ingest and compaction commit here, from several threads.

    `snapshot` is None until the table is created. `source` is the state from which a new table
    starts, and a topic that is added to a table later. Methods that commit block, and raise what
    `lakesplice.table.protocol.commit.commit` does. `whole_snapshots=False` says that snapshots of
    the source don't have all of its rows, `begins_with_feed=True` that a new table has a change
    feed from its first version on. `beside` is the object of the same table for another topic,
    `known` as in `NewestTable`.
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
        known: Snapshot | None = None,
    ) -> None:
        super().__init__(store, generation, clock, entropy, beside, known)
        self.whole_snapshots = True
        self.begins_with_feed = False
        self._initial_source = source
        self._empty = Manifest(0)
        self._log_retention_hours = log_retention_hours

    @property
    def manifest(self) -> Manifest:
        """The present manifest. Before the table is created it is empty except for its source."""
        if self.snapshot is not None:
            return self.snapshot.manifest
        initial, empty = self._initial_source, self._empty
        if empty.sources.get(initial.topic) is not initial:
            self._empty = empty = Manifest(0, sources={initial.topic: initial})
        return empty

    @property
    def source(self) -> SourceState:
        """The state of this object's topic: in the table if the topic feeds it, else the one to
        start with.
        """
        manifest, initial = self.manifest, self._initial_source
        known = manifest.sources.get(initial.topic)
        if known is None and joining_problem(manifest, initial):
            known = next(iter(manifest.sources.values()))
        return known or initial

    @property
    def schema(self) -> TableSchema:
        """The present schema; empty while the table has no columns."""
        return self.manifest.schema

    @property
    def parked(self) -> ParkReason | None:
        """Why the table is parked, or None. A table fed by hand counts as parked for a topic."""
        if self.manifest.is_fed_by_hand:
            detail = "the table is fed by hand; exclude its topic, or give the table another folder"
            return ParkReason(ParkCode.FED_BY_HAND, detail, self.source.topic)
        manifest, source = self.manifest, self.source
        # The service asks this of hundreds of tables every second.
        if manifest.sources.get(source.topic) is not source:
            manifest = manifest.with_source(source)
        return manifest.parked_for(source.topic)

    def states(self, partitions: Iterable[int]) -> dict[int, PartitionState]:
        """Return the state of each partition; one that the table doesn't know yet starts at offset
        0.
        """
        known = self.source.partitions
        return {at: known.get(at, PartitionState(Offset(0))) for at in partitions}

    def known(self, partitions: Iterable[int]) -> KnownTopic:
        """Return what is known of the topic; `partitions` are some or all of its partitions.

        Reads the dead letters of partitions that are read again.
        """
        return known_topic(
            self.manifest,
            self.source,
            partitions,
            whole_snapshots=self.whole_snapshots,
            letters=letters_read_again(self.store, self.manifest, self.source),
        )

    def narrowed_letters(
        self,
        new: Sequence[DeadLetterRef],
        applied: Mapping[int, Sequence[LateChange]],
        lowest: Mapping[int, Position],
    ) -> dict[str, DeadLetterRef]:
        """Return what replaces files of the topic's dead letters, old and `new` ones, after records
        that were returned to were applied, by partition. `lowest` has the positions behind them.
        """
        topic, old = self.source.topic, self.manifest.letters_of(self.source.topic)
        return {
            **narrowed_files(self.store, self._entropy, old, topic, applied),
            **narrowed_files(self.store, self._entropy, new, topic, applied, lowest),
        }

    def next_offsets(self, partitions: Iterable[int]) -> dict[int, Offset]:
        """Return the next offset of each partition, as in `states`."""
        return {at: state.next_offset for at, state in self.states(partitions).items()}

    def create_or_open(self, schema: TableSchema, parked: ParkReason | None = None) -> None:
        """Create the table as version 0 at the start of the source, or open it if another driver
        created it, and make the topic one of its sources. `UsageError` if the topic can't be one.
        """
        if self.snapshot is None:
            source, hours = self._initial_source, self._log_retention_hours
            feed = self.begins_with_feed and is_feedable(schema)
            intent = Create(self.generation, schema, source, parked, hours, change_feed=feed)
            if isinstance(self.commit(intent), Conflict):
                self.keep_newest(open_snapshot(self.store))
        topic = self._initial_source.topic
        self.commit_with_retries(self._joining, "the topic wasn't added to the table", topic=topic)

    def evolve(self, schema: TableSchema) -> Committed | Conflict:
        """Make `schema`, which extends the present schema, the table's schema.

        If columns change their type, the base files that have them are rewritten before the commit.
        """
        planned_on, read = self.version, self.manifest
        replaced = reshape(self.store, read, schema, self._entropy)
        began = planned_on if replaced else None
        return self.commit(Evolve.of(self.generation, read, schema, replaced, began))

    def record_presences(self, presences: ColumnPresences) -> Committed | Conflict:
        """Record what is known of the columns of the topic's shard."""
        source = replace(self.source, presences=presences)
        return self.commit(Redirect(self.generation, self.version, source))

    def fenced(self, intent: Ingest) -> Ingest:
        """Return an ingest together with the deletes of its fence, if it raises the fence; see
        `with_fence`. In a history table it gets the end of its whole snapshot, if it has one.
        """
        if intent.whole_snapshot is not None:
            snapshot = intent.whole_snapshot
            return with_end_of_snapshot(self.store, self.manifest, intent, snapshot, self._entropy)
        return with_fence(self.store, self.manifest, intent, self._clock.now_ms(), self._entropy)

    def with_moved_rows_deleted(self, intent: Ingest, vacated: Collection[int]) -> Ingest:
        """Return an ingest that also deletes moved rows from the base files of the file groups
        `vacated`.

        Blocks: rewrites the present base files of these groups. If the commit ends in a conflict of
        `FILES`, one of them was replaced meanwhile; call this again with the first intent. Raises
        as `compact_files`.
        """
        left = with_moved_rows_deleted(
            self.store, self.manifest, intent.deltas, vacated, self._entropy, intent.files
        )
        return replace(intent, replaced=left.replaced, images=left.images)

    def lives_below(self, place: Position) -> bool:
        """Return whether the source has a row at or below a position."""
        fenced = replace(self.source, fence=place)
        return self.snapshot is not None and lives_below(self.store, self.manifest, fenced)

    def raise_fence(self, fence: Fence, earlier: Sequence[Fence] = ()) -> int:
        """Delete the source's rows at or below a position in a commit of its own, and return their
        number; a history table gets the row that ends them, and one for each `earlier` fence.
        Commit nothing if the fence is already there.

        No batch of the source may be running: the rows that it writes would still be there.
        """

        def plan() -> Ingest | None:
            if self.snapshot is None or self.source.fence >= fence.position:
                return None
            source, version = replace(self.source, fence=fence.position), self.schema.version
            intent = Ingest(self.generation, self.version, {}, source, version)
            if self.schema.keeps_versions:
                ends = (*earlier, fence)
                return with_ends(self.store, self.manifest, intent, ends, self._entropy)
            return self.fenced(intent)

        what = "the rows before a TRUNCATE, DROP or snapshot weren't deleted"
        done = self.commit_with_retries(plan, what, topic=self.source.topic)
        return 0 if done is None else int(done.counts.get("fenced", 0))

    def set_change_feed(self, *, on: bool) -> None:
        """Begin or end the change feed for Delta readers; nothing is done where it is so already.

        `UsageError` if the table has a column that the feed needs the name of.
        """

        def plan() -> SetChangeFeed | None:
            if self.snapshot is None or (self.manifest.feed is not None) == on:
                return None
            if on:
                require_feedable(self.schema)
            return SetChangeFeed(self.generation, on)

        self.commit_with_retries(plan, "the change feed wasn't switched", on=on)

    def record_epoch(self, epoch: Epoch) -> Committed | Conflict:
        """Record that an epoch begins for all partitions of the source."""
        source = replace(self.source, epochs=(*self.source.epochs, epoch))
        return self.commit(Redirect(self.generation, self.version, source))

    def record_emptied(self, emptied: Emptied) -> Committed | Conflict:
        """Record which changes are from before a TRUNCATE."""
        source = replace(self.source, emptied=emptied)
        return self.commit(Redirect(self.generation, self.version, source))

    def continue_at(self, direct: Callable[[SourceState], SourceState], why: str) -> None:
        """Change the source's state by `direct`, so that the table continues from there; `why` is
        written into the history.

        A table that doesn't exist yet will begin there. `RetryableError` if other writers were
        always faster. No batch of the source may be running.
        """
        if self.snapshot is None:
            self._initial_source = direct(self.source)
            return

        def plan() -> Redirect:
            source, parked = direct(self.source), self.manifest.parked
            return Redirect(self.generation, self.version, source, parked)

        what, topic = "the table doesn't continue yet", self.source.topic
        self.commit_with_retries(plan, what, {"why": why}, topic=topic)

    def park(self, reason: ParkReason) -> None:
        """Park the table at its present offsets. A table that is parked already is unchanged.

        `RetryableError` if other writers always committed first: then the table isn't parked.
        """
        if self.snapshot is None:
            self.create_or_open(TableSchema(), reason)

        def plan() -> Redirect | None:
            running = self.snapshot is not None and self.parked is None
            return self._parking(reason) if running else None

        what = "the table is not parked yet; the next batch tries again"
        self.commit_with_retries(plan, what, topic=self.source.topic, reason=reason.code)

    def _joining(self) -> Redirect | None:
        """Return the change that makes the topic one of the table's sources; None if it is one."""
        if not self._is_further():
            return None
        if problem := joining_problem(self.manifest, self._initial_source):
            raise UsageError(problem, topic=self._initial_source.topic)
        joined = self.manifest.with_source(self._initial_source)
        return Redirect(self.generation, self.version, self._initial_source, joined.parked)

    def _parking(self, reason: ParkReason) -> Redirect:
        """Return the change that parks the table, or only this topic if the table has several."""
        source = self.source
        after = self.manifest.with_source(source)
        if not after.is_merged or not reason.is_of_topic:
            return Redirect(self.generation, self.version, parked=reason)
        parked = replace(source, parked=replace(reason, topic=source.topic))
        return Redirect(self.generation, self.version, parked, after.parked)

    def _is_further(self) -> bool:
        """Whether the table has sources, and this topic is not one of them yet."""
        manifest = self.manifest
        return bool(manifest.sources) and self._initial_source.topic not in manifest.sources
