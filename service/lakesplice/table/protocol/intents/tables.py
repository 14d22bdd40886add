"""Intents about a table as a whole: creation, changes of its schema, source or settings, and states
that replace its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.formats.log.actions import Action, Add
from lakesplice.model.manifest import Manifest, Pin, Retention, RunRef, UpsertState
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.upkeep.retention import LOG_RETENTION_HOURS
from lakesplice.table.protocol.new_files import NewFile


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
    log_retention_hours: int = LOG_RETENTION_HOURS
    upserts: UpsertState | None = None
    files: tuple[NewFile, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
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
    counts: Mapping[str, int] = field(default_factory=dict)


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
    `source` and `runs` unchanged, and unparks the table in `parked`. `planned_on` is the version on
    which the decision was based.
    """

    generation: int
    planned_on: int
    source: SourceState | None = None
    parked: ParkReason | None = None
    runs: tuple[RunRef, ...] | None = None


@dataclass(frozen=True, slots=True)
class Restore:
    """The state of an older `version`, in `manifest`, becomes the newest one. Without `version` it
    is a new state, of a table that starts over.

    `stats` maps each base file that comes back to its Delta statistics, None if it has none.
    `undoing` are actions of the log that undo the commits of another program after `version`, which
    is then the last one of ours.
    """

    generation: int
    planned_on: int
    version: int | None
    manifest: Manifest
    stats: Mapping[str, str | None]
    undoing: tuple[Action, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplaceTable:
    """All rows of a table fed by hand, and its schema, are replaced by others.

    `files` and `runs` have all its rows from now on, `upserts` the state after it. `planned_on` is
    the version that was read before any of them was written.
    """

    generation: int
    planned_on: int
    schema: TableSchema
    upserts: UpsertState
    files: tuple[NewFile, ...] = ()
    runs: tuple[RunRef, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetChangeFeed:
    """The change feed for other Delta readers begins with this version, or there is none from here
    on.
    """

    generation: int
    on: bool


@dataclass(frozen=True, slots=True)
class SetConstraints:
    """A table fed by hand has other constraints: those of `upserts`, which every row meets.

    `read` is the position of the newest upsert in the version in which the rows were checked.
    """

    generation: int
    read: int
    upserts: UpsertState


@dataclass(frozen=True, slots=True)
class ChangePins:
    """Replaces the table's pins by `pins`; `read` is the retention on which it was planned."""

    generation: int
    read: Retention
    pins: tuple[Pin, ...]
    operation: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """Records a finding about the table in its history; nothing else changes."""

    generation: int
    operation: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Swap:
    """The content of a shadow becomes the table's: `manifest` is the shadow's newest one.

    `stats` maps each of its base files to Delta statistics. `planned_on` is the table's newest
    version, None if the shadow is to become a new table, which then has `log_retention_hours`.
    """

    generation: int
    planned_on: int | None
    manifest: Manifest
    stats: Mapping[str, str | None]
    log_retention_hours: int = LOG_RETENTION_HOURS
