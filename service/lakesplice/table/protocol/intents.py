"""Intents: what a commit is to change, and what it was planned on.

An intent says as values what it relies on. `commit.py` checks them on the version that the intent
is committed on, however many other commits came between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.formats.log.actions import Add
from lakesplice.model.manifest import (
    DeadLetterRef,
    DeltaRef,
    Manifest,
    Pin,
    Retention,
    RunRef,
    SourceState,
    UpsertState,
)
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.schema import TableSchema
from lakesplice.table.protocol.new_files import ChangeImages, NewFile
from lakesplice.table.protocol.shadow_intents import Backfill, Swap

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Create:
    """Version 0 of a table, at the start of its source, or parked at once.

    A table fed by hand has `upserts` instead of a `source`, and may have rows at once. A shadow
    has a `backfill`. With `change_feed` the change feed begins here.
    """

    generation: int
    schema: TableSchema = field(default_factory=TableSchema)
    source: SourceState | None = None
    parked: ParkReason | None = None
    log_retention_hours: int = 168
    upserts: UpsertState | None = None
    files: tuple[NewFile, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Counts = field(default_factory=dict)
    backfill: BackfillState | None = None
    change_feed: bool = False


@dataclass(frozen=True, slots=True)
class Adopt:
    """A table of another writer becomes a table fed by hand, and its files are kept as they are.

    `files` are all of its base files, `gone` the log's files that were rewritten, `properties` the
    table properties that are kept.
    """

    generation: int
    schema: TableSchema
    files: tuple[NewFile, ...]
    runs: tuple[RunRef, ...]
    gone: tuple[Add, ...]
    properties: Mapping[str, str]
    log_retention_hours: int
    insert_only: bool = False
    counts: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ingest:
    """The changes of a batch for one topic of a table. Without changes it still moves the offsets.

    `source_from` has the first offset of each partition in the batch, `source_to` the topic's state
    after the batch, with all partitions. `planned_on` is the version that was read before anything
    was written, in whose index the changes were located; `schema_version` is that of their schema;
    `addressed_groups` are the file groups that the deltas have changes for. `counts` become metrics
    of the commit. If rows moved between partitions, `read` are the paths of the deltas that their
    state was read from, else None; `replaced` then maps the base files that the rows left to their
    next versions, with the same segments, in which the rows are deleted. `images` are as in
    `Splice`.
    """

    generation: int
    planned_on: int
    source_from: Mapping[int, int]
    source_to: SourceState
    schema_version: int
    addressed_groups: frozenset[int] = frozenset()
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    dead_letters: tuple[DeadLetterRef, ...] = ()
    parked: ParkReason | None = None
    counts: Counts = field(default_factory=dict)
    read: frozenset[str] | None = None
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows of a table fed by hand, located and written for version `planned_on`.

    `read` is the position of the newest upsert in that version, `upserts` the state after this
    upsert. `application` is the one whose transaction it applies, "" if it has none. If its changes
    were merged into base files at once, `replaced`, `consumed` and `images` are as in `Splice`. The
    rest is as in `Ingest`. The generation is the manifest's: such a table has no driver that could
    be replaced.
    """

    generation: int
    planned_on: int
    read: int
    upserts: UpsertState
    schema_version: int
    addressed_groups: frozenset[int] = frozenset()
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    application: str = ""
    counts: Counts = field(default_factory=dict)
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    consumed: Mapping[str, frozenset[int]] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Splice:
    """Base files, rewritten with the changes that waited for them.

    `replaced` maps the path of a file to its next version, with the same segments; `consumed` maps
    the path of a delta to the file groups whose changes were applied. `planned_on` is the version
    that was read before anything was written; 0 counts as older than any. `schema_version` is that
    of the new files' layout; None if no column can have changed since.
    `images` are of all rows that the commit changes or adds; None if none were made, which only a
    table without a change feed permits.
    """

    generation: int
    replaced: Mapping[str, NewFile]
    consumed: Mapping[str, frozenset[int]]
    counts: Counts = field(default_factory=dict)
    planned_on: int = 0
    schema_version: int | None = None
    images: tuple[ChangeImages, ...] | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class FileMerge:
    """Several base files become one: `output` has the segments of `inputs` in their order, so each
    row keeps its address. `planned_on` and `schema_version` as in `Splice`.
    """

    generation: int
    inputs: tuple[str, ...]
    output: NewFile
    counts: Counts = field(default_factory=dict)
    planned_on: int = 0
    schema_version: int | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class Purge:
    """Base files, rewritten without rows that were deleted for good.

    `outputs` have the remaining rows in new file groups, `run` their entries in the index; None if
    no row remains. `floors` has, for each topic whose rows were removed, a position at or above all
    of these. `planned_on` and `schema_version` as in `Splice`.
    """

    generation: int
    inputs: tuple[str, ...]
    outputs: tuple[NewFile, ...]
    run: RunRef | None
    floors: Mapping[str, Position]
    planned_on: int
    counts: Counts = field(default_factory=dict)
    schema_version: int | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.inputs)


@dataclass(frozen=True, slots=True)
class IndexMerge:
    """Adjacent index runs, oldest first, become one; `planned_on` as in `Splice`."""

    generation: int
    inputs: tuple[str, ...]
    output: RunRef
    planned_on: int = 0


@dataclass(frozen=True, slots=True)
class Evolve:
    """The next version of the schema, planned while `files` and `deltas` were the live ones.

    `replaced` maps the path of a base file to its next version in the new layout, with the same
    segments. `planned_on` is the version that was read before any was written, None if none was.
    """

    generation: int
    schema: TableSchema
    files: frozenset[str]
    deltas: frozenset[str]
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    planned_on: int | None = None

    @classmethod
    def of(
        cls,
        generation: int,
        read: Manifest,
        schema: TableSchema,
        replaced: Mapping[str, NewFile] | None = None,
        planned_on: int | None = None,
    ) -> Evolve:
        """Return the intent that was planned on the manifest `read`."""
        deltas = frozenset(delta.file.path for delta in read.deltas)
        files = frozenset(read.files)
        return cls(generation, schema, files, deltas, dict(replaced or {}), planned_on)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A decision about the table as a whole: park, unpark, reset offsets, replace the index.

    `source`, which may be a new one, `parked` and `runs` replace those of the manifest. None leaves
    `source` and `runs` unchanged, and unparks the table in `parked`. `planned_on` is the version
    that it was decided on.
    """

    generation: int
    planned_on: int
    source: SourceState | None = None
    parked: ParkReason | None = None
    runs: tuple[RunRef, ...] | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Dead letters of a topic, replayed or dropped.

    `removed` names the files that the dead letters were read from, `kept` are new files with those
    that remain. `source`, if given, has the format and the ordering that the records turned out to
    have. The rest is as in `Ingest`.
    """

    generation: int
    planned_on: int
    removed: frozenset[str]
    kept: tuple[DeadLetterRef, ...] = ()
    source: SourceState | None = None
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Counts = field(default_factory=dict)
    operation: str = "REPLAY LETTERS"
    topic: str = ""
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None


@dataclass(frozen=True, slots=True)
class SetChangeFeed:
    """The change feed for other Delta readers begins with this version, or there is none from here
    on.
    """

    generation: int
    on: bool


@dataclass(frozen=True, slots=True)
class Expire:
    """Announces that files of versions below `retained_from` will be deleted, before the first one
    is.

    `read` is the retention that it was planned on. Files that only versions below `vacuumed` name
    are deleted. The pins named in `ended` end with it.
    """

    generation: int
    read: Retention
    retained_from: int
    vacuumed: int
    counts: Counts = field(default_factory=dict)
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangePins:
    """Replaces the table's pins by `pins`; `read` is the retention that it was planned on."""

    generation: int
    read: Retention
    pins: tuple[Pin, ...]
    operation: str
    counts: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """Notes in the table's history what was found out of it; nothing else changes."""

    generation: int
    operation: str
    counts: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Announces that files which no version names will be deleted; slow writers must write again.

    Commits whose writers began on a version below `writers_from` are refused from now on. None
    stands for the version of this commit, so for all present writers.
    """

    generation: int
    writers_from: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """The state of an older `version`, in `manifest`, becomes the newest one. Without `version` it
    is a new state, of a table that starts over.

    `stats` maps each base file that comes back to its Delta statistics, None if it has none.
    """

    generation: int
    planned_on: int
    version: int | None
    manifest: Manifest
    stats: Mapping[str, str | None]


Intent = (
    Create
    | Adopt
    | Ingest
    | Upsert
    | Splice
    | FileMerge
    | Purge
    | IndexMerge
    | Evolve
    | Redirect
    | Replay
    | SetChangeFeed
    | Expire
    | ChangePins
    | Note
    | Sweep
    | Restore
    | Backfill
    | Swap
)
