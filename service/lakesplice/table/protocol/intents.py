"""Intents: what a commit wants to change, and what it read to decide so.

An intent states what it rests on in values, never by "the snapshot I had": `commit.py` checks
them against the version it commits on, however many others were committed in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.formats.log.actions import Add
from lakesplice.model.address import BaseFile
from lakesplice.model.manifest import (
    DeadLetterRef,
    DeltaRef,
    Manifest,
    ParkReason,
    Pin,
    Retention,
    RunRef,
    SourceState,
    UpsertState,
)
from lakesplice.model.position import Position
from lakesplice.model.schema import TableSchema

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A base file that is written and durable but not yet visible, with Delta statistics (JSON)."""

    base: BaseFile
    stats: str


@dataclass(frozen=True, slots=True)
class Create:
    """Version 0 of a table, at the start of its source or parked at once.

    A table fed by hand has `upserts` instead of a `source`, and may start with rows.
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


@dataclass(frozen=True, slots=True)
class Adopt:
    """What others wrote becomes a table fed by hand, its files as they are.

    `files` are all of its base files, `gone` those of the log that were rewritten; `properties`
    those that the table keeps.
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
    """A batch's changes of one topic of a table; without any it still moves the offsets.

    `source_from` maps each partition that the batch touched to its first offset; `source_to` is the
    topic's state after it, all partitions included. `planned_on` is the version that was read
    before anything was written, and whose index the changes were located against; `schema_version`
    the schema they were written in; `addressed_groups` the file groups that its deltas hold changes
    for. `counts` become the commit's metrics. Where rows moved between partitions, `read` are the
    deltas that their state was read from, by path, else None; `replaced` maps a base file that such
    rows were in to its next version, in which they are deleted, with the same segments.
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

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows given by hand, located and written against the version `planned_on`.

    `read` is the position of the newest upsert at that version, `upserts` the state after this one.
    `application` names whose `transactions` of it moved on, "" if none did. Where changes were
    merged at once, `replaced` and `consumed` are as for `Splice`. The rest is as for `Ingest`. The
    generation is the one read: such a table has no driver to depose.
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

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Splice:
    """Base files rewritten with the changes that waited for them.

    `replaced` maps a source file's path to its next version, with the same segments; `consumed`
    maps a delta's path to the file groups whose changes went in. `planned_on` is the version that
    was read before anything was written; 0 counts as before everything. `schema_version` is that of
    the schema that the new files are laid out by; None if no column can have changed since.
    """

    generation: int
    replaced: Mapping[str, NewFile]
    consumed: Mapping[str, frozenset[int]]
    counts: Counts = field(default_factory=dict)
    planned_on: int = 0
    schema_version: int | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class FileMerge:
    """Base files become one: `output` has the segments of `inputs` in their order, and every row
    the address that it had. `planned_on` and `schema_version` as for `Splice`.
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
    """Base files rewritten without rows that were deleted for good.

    `outputs` have the rows that stay in new file groups, and `run` says where; None if no row
    stays. `floors` has the topics of which rows went, each with a position at or above all of
    these. `planned_on` and `schema_version` as for `Splice`.
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
    """Adjacent runs of the index, oldest first, become one; `planned_on` as for `Splice`."""

    generation: int
    inputs: tuple[str, ...]
    output: RunRef
    planned_on: int = 0


@dataclass(frozen=True, slots=True)
class Evolve:
    """The next version of the schema, decided on while `files` and `deltas` were the live ones.

    `replaced` maps a base file's path to its next version in the new layout, with the same
    segments; `planned_on` is the version that was read before any was written, None if none was.
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
        """Return the intent decided on by reading the manifest `read`."""
        deltas = frozenset(delta.file.path for delta in read.deltas)
        files = frozenset(read.files)
        return cls(generation, schema, files, deltas, dict(replaced or {}), planned_on)


@dataclass(frozen=True, slots=True)
class Redirect:
    """A new direction: park, unpark, reset of offsets, rebuilt index.

    `source`, which may be a further one, `parked` and `runs` replace the manifest's; a `source` or
    `runs` of None are unchanged, a `parked` of None means running. `planned_on` is the version
    it was decided on.
    """

    generation: int
    planned_on: int
    source: SourceState | None = None
    parked: ParkReason | None = None
    runs: tuple[RunRef, ...] | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """Dead letters of a topic taken again, or dropped: files of letters go, and of those kept some
    may come.

    `removed` names the files of letters that it read, `kept` holds what is left of them; `source`,
    if given, says what the records of `topic` turned out to be written in. The rest is as for
    `Ingest`.
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


@dataclass(frozen=True, slots=True)
class Expire:
    """Versions below `retained_from` lose files: said before the first one is deleted.

    `read` is the retention it was planned on. Files that only versions below `vacuumed` named are
    deleted. The pins named in `ended` end with it.
    """

    generation: int
    read: Retention
    retained_from: int
    vacuumed: int
    counts: Counts = field(default_factory=dict)
    ended: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ChangePins:
    """The versions that are kept under names, `pins`, become others; `read` is the retention it was
    planned on.
    """

    generation: int
    read: Retention
    pins: tuple[Pin, ...]
    operation: str
    counts: Counts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sweep:
    """Files that nothing names are about to be deleted: who writes since long must write again.

    Writers that began on a version below `writers_from` are refused from now on; None stands for
    the sweep's own version, so for all that write now.
    """

    generation: int
    writers_from: int | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """The state of an older `version`, as `manifest` has it, becomes the newest one; without
    `version` it is a new one, of a table that starts over.

    `stats` maps each base file that comes back to its Delta statistics, None where it has none.
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
    | Expire
    | ChangePins
    | Sweep
    | Restore
)
