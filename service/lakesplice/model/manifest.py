"""The manifest: a table's own state at one version of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakesplice.model.address import BaseFile
from lakesplice.model.epochs import Epoch
from lakesplice.model.formats import FormatName
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.schema import TableSchema


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file of ours: path in the table, size in bytes, XXH3-128 checksum (32 hex digits)."""

    path: str
    bytes: int
    checksum: str


@dataclass(frozen=True, slots=True)
class DeltaRef:
    """A live delta. `waiting` gives, per group not yet compacted, its number of changes here.

    `committed_ms` and `floor` are stamped by the commit: its time, and per partition the offset at
    which the commit's batch began. While the delta lives, the read-optimised view is sure to hold
    only what lies before.
    """

    file: FileRef
    rows: int
    schema_version: int
    waiting: Mapping[int, int]
    committed_ms: int = 0
    floor: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRef:
    """A sorted run of the row index and its number of entries.

    `keys_version` is stamped by the commit: the version of the log that added the newest of its
    keys. A merge of runs adds no key, so who located against the inputs need not do it again.
    """

    file: FileRef
    entries: int
    keys_version: int = 0


@dataclass(frozen=True, slots=True)
class DeadLetterRef:
    """A file of dead letters and how many it holds.

    Stamped by the commit: `committed_ms`, and `position`, which all of them are above.
    """

    file: FileRef
    rows: int
    committed_ms: int = 0
    position: Position = BEFORE_ALL


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far one Kafka partition is applied: the next offset, and what was met before it.

    `position` is the highest position; `gtids` holds, per MariaDB domain or MySQL server UUID, the
    highest sequence number. Both are the partition's own: another one may be ahead, under GTIDs
    that this one has still to bring. Records below `met_until` were read before and are read again.
    While `repeating`, an operator has said that what stands below `position` was sent again. It is
    `lossy` if since its last change that is of no snapshot records were passed over or became dead
    letters.
    """

    next_offset: int
    position: Position = BEFORE_ALL
    gtids: Mapping[str, int] = field(default_factory=dict)
    met_until: int = 0
    repeating: bool = False
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A snapshot of the whole table, at one position, that is being read while older rows live.

    `passed` are the partitions that are read to its end. A `lossy` one isn't known to be whole.
    """

    position: Position
    passed: frozenset[int] = frozenset()
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class SourceState:
    """Where the table stands in its topic; `topic_id` recognises one deleted and created again.

    `format` is what its records are written in and `ordering` what their positions are, both None
    until a change was met. `epochs` are those after the first, ascending. No row at or below
    `fence` lives, whenever its changes come. `snapshot` is one that is being read.
    """

    topic: str
    topic_id: str
    partitions: Mapping[int, PartitionState] = field(default_factory=dict)
    format: FormatName | None = None
    ordering: Ordering | None = None
    epochs: tuple[Epoch, ...] = ()
    fence: Position = BEFORE_ALL
    snapshot: SnapshotState | None = None


@dataclass(frozen=True, slots=True)
class UpsertState:
    """Where a table stands that is fed by hand, without a source.

    `position` is that of its newest upsert, `has_deleted` whether any row was ever deleted.
    `transactions` holds, per application, the highest transaction that was applied. `insert_only`:
    a row that is there never changes, and is skipped when it is given again.
    """

    position: int
    has_deleted: bool = False
    transactions: Mapping[str, int] = field(default_factory=dict)
    insert_only: bool = False


class ParkCode(StrEnum):
    """Why a table is parked."""

    NO_KEY = "no-key"
    TYPES_UNDECLARED = "types-undeclared"
    SCHEMA_CHANGE = "schema-change"
    UNSUPPORTED = "unsupported"
    POSITIONS_FELL_BACK = "positions-fell-back"
    OFFSETS_GONE = "offsets-gone"
    FORMAT_CHANGED = "format-changed"
    ORDER_UNKNOWN = "order-unknown"
    NOT_AN_INSERT = "not-an-insert"
    PARTIAL_IMAGE = "partial-image"
    TOPIC_RECREATED = "topic-recreated"
    TRUNCATED = "truncated"
    NEW_TABLE = "new-table"
    CORRUPT = "corrupt"
    JOB_DIED = "job-died"
    FED_BY_HAND = "fed-by-hand"


@dataclass(frozen=True, slots=True)
class ParkReason:
    """Why a table does not go on, in words that say what to do, and the record that showed it."""

    code: ParkCode
    detail: str
    topic: str = ""
    partition: int = -1
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Retention:
    """Which older versions are whole, and what a vacuum has to know of the ones before it.

    `retained_from` is the oldest version none of whose files may be deleted; what only versions
    below `vacuumed` named is gone. `restores` holds the versions from `retained_from` on that
    brought an older one back. `swept` is the version of the newest sweep for orphans and `swept_ms`
    its time; a commit is refused whose writer began on a version below `writers_from`.
    """

    retained_from: int = 0
    vacuumed: int = 0
    restores: tuple[int, ...] = ()
    writers_from: int = 0
    swept: int = 0
    swept_ms: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """A table's own state at one version.

    `files` maps a base file's path to it. `runs` and `deltas` are ordered oldest first; of two runs
    that hold one key the newer wins. `generation` is that of the driver that wrote the manifest.
    A table has a `source`, or it is fed by hand and has `upserts`, never both. At or below the
    `purge_floor` a change for an unknown key does nothing: its row may have been deleted for good.
    """

    generation: int
    schema: TableSchema = TableSchema()
    source: SourceState | None = None
    files: Mapping[str, BaseFile] = field(default_factory=dict)
    deltas: tuple[DeltaRef, ...] = ()
    runs: tuple[RunRef, ...] = ()
    dead_letters: tuple[DeadLetterRef, ...] = ()
    parked: ParkReason | None = None
    upserts: UpsertState | None = None
    retention: Retention = Retention()
    purge_floor: Position = BEFORE_ALL

    @property
    def ordering(self) -> Ordering:
        """What the positions of the table's rows are."""
        if self.upserts is not None:
            return Ordering.COMMIT
        return (self.source.ordering if self.source else None) or Ordering.BINLOG

    @property
    def groups(self) -> frozenset[int]:
        """The live file groups."""
        return frozenset(s.group for file in self.files.values() for s in file.segments)

    def waiting_in(self, file: BaseFile) -> tuple[DeltaRef, ...]:
        """The deltas, oldest first, that hold changes for `file`."""
        groups = {segment.group for segment in file.segments}
        return tuple(delta for delta in self.deltas if not groups.isdisjoint(delta.waiting))
