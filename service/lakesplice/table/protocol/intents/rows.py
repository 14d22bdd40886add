"""Intents that bring rows into a table: a batch, an upsert, replayed dead letters, a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.manifest import DeadLetterRef, DeltaRef, RunRef, UpsertState
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.table.protocol.new_files import ChangeImages, NewFile


@dataclass(frozen=True, slots=True)
class Ingest:
    """The changes of a batch for one topic of a table. Without changes it still moves the offsets.

    planned_on         the version that was read before anything was written, in whose index the
                       changes were located
    source_from        the first offset of each partition in the batch
    source_to          the topic's state after the batch, with all partitions
    schema_version     that of the schema in which the changes were written
    addressed_groups   the file groups for which the deltas have changes
    parked             why the table is parked with this commit; None if it isn't
    counts             metrics of the commit
    read               if rows moved between partitions, the paths of the deltas from which their
                       state was read; otherwise None
    replaced           the base files that such rows left: by path their next versions, with the
                       same segments, in which the rows are deleted
    images             as in `Splice`
    lowest             for some partitions the lowest position of the changes that is above the
                       partition's before
    narrowed           files of dead letters, present and new ones: by path the files that replace
                       them. These have the same dead letters, each with what is known to have been
                       read around it, now that the ingest applies records nearby
    whole_snapshot     in a history table the position of a snapshot of the whole table that is read
                       completely with this batch, if there is one
    """

    generation: int
    planned_on: int
    source_from: Offsets
    source_to: SourceState
    schema_version: int
    addressed_groups: frozenset[int] = frozenset()
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    dead_letters: tuple[DeadLetterRef, ...] = ()
    parked: ParkReason | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    read: frozenset[str] | None = None
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None
    lowest: Mapping[int, Position] = field(default_factory=dict)
    narrowed: Mapping[str, DeadLetterRef] = field(default_factory=dict)
    whole_snapshot: Position | None = None

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rows of a table fed by hand, located and written for version `planned_on`.

    `read` is the position of the newest upsert in that version, `upserts` the state after this
    upsert. `application` is the one whose transaction it applies, "" if it has none. If its changes
    were merged into base files at once, `replaced`, `consumed` and `images` are as in `Splice`.
    `operation` is its name in the history. The rest is as in `Ingest`. The generation is the
    manifest's: such a table has no driver that could be replaced.
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
    counts: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    consumed: Mapping[str, frozenset[int]] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None
    operation: str = "UPSERT"

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)


@dataclass(frozen=True, slots=True)
class Replay:
    """Dead letters of a topic, replayed or dropped.

    `removed` names the files from which the dead letters were read; `kept` are new files with those
    that remain. `source`, if given, has the format and the ordering that the records were found to
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
    counts: Mapping[str, int] = field(default_factory=dict)
    operation: str = "REPLAY LETTERS"
    topic: str = ""
    replaced: Mapping[str, NewFile] = field(default_factory=dict)
    images: tuple[ChangeImages, ...] | None = None


@dataclass(frozen=True, slots=True)
class Backfill:
    """Rows that were read from the source of `topic`, as an ingest that moves no offsets.

    `chunks` are the numbers of the chunks that these rows complete, `highest` is the highest
    position of the rows, `read_rows` how many were read. `fence` is the one with which the rows
    were compared. The rest is as for `Ingest`.
    """

    generation: int
    planned_on: int
    topic: str
    chunks: frozenset[int]
    highest: Position
    read_rows: int
    fence: Position
    schema_version: int
    addressed_groups: frozenset[int] = frozenset()
    files: tuple[NewFile, ...] = ()
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    read: frozenset[str] | None = None
    replaced: Mapping[str, NewFile] = field(default_factory=dict)

    @property
    def sources(self) -> frozenset[str]:
        """The files that it replaces."""
        return frozenset(self.replaced)
