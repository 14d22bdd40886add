"""The manifest: a table's state at one version, as far as the log itself can't hold it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from lakesplice.errors import UsageError
from lakesplice.model.address import BaseFile
from lakesplice.model.moments import NO_MOMENT, EpochMs
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of the table: its path in the table, its size in bytes, its XXH3-128 checksum (32 hex
    digits).
    """

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class DeltaRef:
    """A live delta. `waiting` has, for each file group that isn't compacted yet, its number of
    changes here.

    `committed_ms` and `floor` are stamped by the commit: its time, and per partition the offset at
    which its batch began. While the delta is live, the read-optimised view is known to have only
    what lies before that. `topic` is the topic of these partitions, if the table has several.
    """

    file: FileRef
    rows: int
    schema_version: int
    waiting: Mapping[int, int]
    committed_ms: EpochMs = NO_MOMENT
    floor: Offsets = field(default_factory=dict)
    topic: str = ""

    @property
    def in_columns(self) -> bool:
        """Whether it is a Parquet file; those of earlier versions are Avro files."""
        return self.file.path.endswith(".parquet")


@dataclass(frozen=True, slots=True)
class RunRef:
    """A sorted run of the row index and its number of entries.

    `keys_version` is stamped by the commit: the version of the log that added the newest of its
    keys. A merge of runs adds no key, so changes that were located in the merged runs needn't be
    located again.
    """

    file: FileRef
    entries: int
    keys_version: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetterRef:
    """A file of dead letters and their number.

    The commit stamps `committed_ms` and `position`, which all of them are above; `topic` if the
    table has several. `behind` has the partitions whose last records here had no higher position
    behind them when the file was written, and the first one that was read since, None until then.
    """

    file: FileRef
    rows: int
    committed_ms: EpochMs = NO_MOMENT
    position: Position = BEFORE_ALL
    topic: str = ""
    behind: Mapping[int, Position | None] = field(default_factory=dict)

    def read_on(self, lowest: Mapping[int, Position]) -> DeadLetterRef:
        """Return it after higher positions were read: by partition the lowest of them."""
        behind = {
            at: lowest.get(at) if position is None else position
            for at, position in self.behind.items()
        }
        return replace(self, behind=behind)


@dataclass(frozen=True, slots=True)
class UpsertState:
    """The state of a table that is fed by hand, without a source.

    `position` is that of its newest upsert; `has_deleted` says whether a row was ever deleted.
    `transactions` has, per application, the highest transaction that was applied. `insert_only`:
    rows never change, and a row with a known key is skipped. Every row meets `checks`, which are
    conditions in SQL by name, and has no null in `required` columns. `cluster_by` has the columns
    by which the table is laid out unless others are named.
    """

    position: int
    has_deleted: bool = False
    transactions: Mapping[str, int] = field(default_factory=dict)
    insert_only: bool = False
    checks: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pin:
    """A version that is kept under a name, however old it is.

    `copy` is a copy of the version's manifest, `timestamp_ms` the version's time. The first vacuum
    after `ends_ms` ends the pin; 0 means never.
    """

    name: str
    version: int
    timestamp_ms: EpochMs
    copy: FileRef
    ends_ms: EpochMs = NO_MOMENT


@dataclass(frozen=True, slots=True)
class Retention:
    """Which older versions are whole, and what a vacuum has to know about those before them.

    `retained_from` is the oldest version none of whose files may be deleted. Files that only
    versions below `vacuumed` named are deleted. `restores` are the versions from `retained_from` on
    that restored an older one. `swept` is the version of the newest sweep for orphans and
    `swept_ms` its time; a commit is refused if its writer began on a version below `writers_from`.
    The versions of `pins`, each with another name, are whole, too.
    """

    retained_from: int = 0
    vacuumed: int = 0
    restores: tuple[int, ...] = ()
    writers_from: int = 0
    swept: int = 0
    swept_ms: EpochMs = NO_MOMENT
    pins: tuple[Pin, ...] = ()

    def pin(self, name: str) -> Pin | None:
        """Return the pin of a name, if there is one."""
        return next((pin for pin in self.pins if pin.name == name), None)


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The change feed for other Delta readers, which begins with the version `since`.

    `files` hold the images of the rows that this version's commit changed in base files.
    """

    since: int
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasedRef:
    """The file that remembers erased keys, their number, and the highest of their positions."""

    file: FileRef
    keys: int
    highest: Position


@dataclass(frozen=True, slots=True)
class Manifest:
    """A table's own state at one version.

    `files` maps a base file's path to it. `runs` and `deltas` are ordered oldest first; of two runs
    that hold one key the newer wins. `generation` is that of the driver that wrote the manifest. A
    table has `sources`, by topic and in the order in which they came, or it is fed by hand and has
    `upserts`, never both. If there are several sources, each has a shard of the rows: the values of
    its `shard` differ from the others' and are in the key, so that all changes of a key come from
    one source. Positions of two sources can't be compared. `parked` is set if the whole table is
    parked. A shadow, and no other table, has a `backfill`. `feed` is None if the table has no
    change feed. `erased` is None until a row was erased that a topic may bring again; it outlives
    resets and restores.
    """

    generation: int
    schema: TableSchema = TableSchema()
    sources: Mapping[str, SourceState] = field(default_factory=dict)
    files: Mapping[str, BaseFile] = field(default_factory=dict)
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    dead_letters: tuple[DeadLetterRef, ...] = ()
    parked: ParkReason | None = None
    upserts: UpsertState | None = None
    retention: Retention = Retention()
    backfill: BackfillState | None = None
    feed: ChangeFeed | None = None
    erased: ErasedRef | None = None

    @property
    def source(self) -> SourceState | None:
        """The only source, None if there is none; `UsageError` for a table of several topics."""
        if self.is_merged:
            raise UsageError("the table has several topics; say which", topics=list(self.sources))
        return next(iter(self.sources.values()), None)

    @property
    def is_merged(self) -> bool:
        """Whether several topics feed the table."""
        return len(self.sources) > 1

    @property
    def purge_floor(self) -> Position:
        """The purge floor of the only source."""
        return BEFORE_ALL if self.source is None else self.source.purge_floor

    @property
    def is_fed_by_hand(self) -> bool:
        """Whether programs write the table, and no topic feeds it."""
        return self.upserts is not None

    @property
    def ordering(self) -> Ordering:
        """What the positions of the table's rows are; one table never mixes two orderings."""
        if self.is_fed_by_hand:
            return Ordering.COMMIT
        return self.met_ordering or Ordering.BINLOG

    @property
    def met_ordering(self) -> Ordering | None:
        """What the positions of its sources are; None until one of them had a change."""
        return next((one.ordering for one in self.sources.values() if one.ordering), None)

    @property
    def parkings(self) -> tuple[ParkReason, ...]:
        """Why the table or some of its topics are parked."""
        reasons = (self.parked, *(source.parked for source in self.sources.values()))
        return tuple(reason for reason in reasons if reason is not None)

    def deltas_of(self, topic: str) -> tuple[DeltaRef, ...]:
        """Return the deltas with changes of a topic."""
        return tuple(delta for delta in self.deltas if delta.topic in ("", topic))

    def letters_of(self, topic: str) -> tuple[DeadLetterRef, ...]:
        """Return the files with dead letters of a topic."""
        return tuple(ref for ref in self.dead_letters if ref.topic in ("", topic))

    def parked_for(self, topic: str) -> ParkReason | None:
        """Return why the table takes nothing from a topic; None if it does."""
        source = self.sources.get(topic)
        return self.parked or (None if source is None else source.parked)

    def with_source(self, source: SourceState) -> Manifest:
        """Return the manifest with the new state of a source, or with a further source.

        With a further source, what was stamped while there was only one, and its parking, become
        the first source's.
        """
        after = replace(self, sources={**self.sources, source.topic: source})
        if self.is_merged or not after.is_merged:
            return after
        (first,) = self.sources.values()
        newest = max((run.keys_version for run in self.runs), default=0)
        alone = None
        if self.parked is not None and self.parked.is_of_topic:
            alone = replace(self.parked, topic=first.topic)
        known = {**after.sources, first.topic: replace(first, keys_version=newest, parked=alone)}
        return replace(
            after,
            sources=known,
            parked=None if alone else self.parked,
            deltas=tuple(replace(delta, topic=first.topic) for delta in self.deltas),
            dead_letters=tuple(replace(ref, topic=first.topic) for ref in self.dead_letters),
        )

    @property
    def groups(self) -> frozenset[int]:
        """The live file groups."""
        return frozenset(s.group for file in self.files.values() for s in file.segments)

    @property
    def stored_rows(self) -> int:
        """How many rows the base files have, tombstones among them."""
        return sum(file.rows for file in self.files.values())

    def waiting_in(self, file: BaseFile) -> tuple[DeltaRef, ...]:
        """The deltas, oldest first, that hold changes for `file`."""
        groups = {segment.group for segment in file.segments}
        return tuple(delta for delta in self.deltas if not groups.isdisjoint(delta.waiting))

    def waiting_for(self, groups: Collection[int]) -> dict[str, dict[int, int]]:
        """Return, for each delta with changes for some file groups, their number per group."""
        found = {}
        for delta in self.deltas:
            mine = {group: delta.waiting[group] for group in delta.waiting if group in groups}
            if mine:
                found[delta.file.path] = mine
        return found
