"""How far a table's source has been read: its partitions, epochs, snapshot and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lakesplice.model.arrays import KeyHash
from lakesplice.model.choices import FormatName
from lakesplice.model.moments import EpochUs
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.progress.epochs import Epoch
from lakesplice.model.progress.gap import Gap
from lakesplice.model.progress.met_gtids import NOTHING_MET, GtidRanges, MetGtids, Transaction


@dataclass(frozen=True, slots=True)
class HighestChange:
    """The change of the highest position that a partition had, without rows of snapshots; with what
    distinguishes it from another change at that position. `digest` is its row's digest under
    `schema_version`, 0 if it has none.
    """

    position: Position
    key: KeyHash
    op: int
    digest: int
    schema_version: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How far one Kafka partition is applied: the next offset, and what was found before it.

    `position` is the highest position. `gtids` has the highest sequence number per MariaDB domain
    or MySQL server UUID. Both are the partition's own: another partition may be ahead, with GTIDs
    that this one still has to reach. Records below `met_until` were read before and are read again.
    While `repeating`, an operator has said that positions below `position` are repetitions.
    `lossy`: since its last change that isn't from a snapshot, records were skipped or became dead
    letters. `highest` is its highest change; None before the first one and in older manifests.
    `newest_us` is the newest time at the source of its changes, without those that were sent again.
    `met_gtids` and `last_transaction` are those of `met`; `met_gtids` is None if all numbers up to
    those of `gtids` count.
    """

    next_offset: Offset
    position: Position = BEFORE_ALL
    gtids: Mapping[str, int] = field(default_factory=dict)
    met_until: int = 0
    repeating: bool = False
    lossy: bool = False
    highest: HighestChange | None = None
    met_gtids: GtidRanges | None = None
    last_transaction: Transaction | None = None
    newest_us: EpochUs | None = None

    @property
    def met(self) -> MetGtids:
        """Return what proves that a change at a lower position isn't one of another server."""
        read = GtidRanges.up_to(self.gtids) if self.met_gtids is None else self.met_gtids
        return MetGtids(read, self.last_transaction)

    def having_met(self, met: MetGtids) -> PartitionState:
        """Return the state with this as `met`; all of it is in `gtids`, too."""
        read = None if met.read == GtidRanges.up_to(self.gtids) else met.read
        return replace(self, met_gtids=read, last_transaction=met.last)

    def passed_to(self, end: Offset) -> PartitionState:
        """Return the state at an offset before which there are no more records: what isn't read
        of them is missing.
        """
        missing = end > max(self.next_offset, self.met_until)
        return replace(self.before_missing() if missing else self, next_offset=end)

    def before_missing(self) -> PartitionState:
        """Return the state behind which records are missing."""
        return self.having_met(self.met.before_missing())

    def forgetting(self) -> PartitionState:
        """Return the state in which nothing counts as met, as where an epoch begins."""
        return self.having_met(NOTHING_MET)


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A snapshot of the whole table, at one position, that is being read while older rows live.

    `passed` are the partitions that are read to its end. If it is `lossy`, it may be incomplete.
    """

    position: Position
    passed: frozenset[int] = frozenset()
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class Emptied:
    """What is known of the time before a TRUNCATE, or a DROP that was followed: its position, per
    GTID stream the highest number that isn't behind it, and its time at the source.
    """

    position: Position
    gtids: Mapping[str, int]
    moment: EpochUs


@dataclass(frozen=True, slots=True)
class SourceState:
    """How far the table has read one topic; `topic_id` shows whether the topic was deleted and
    created again.

    `format` is the format of its records and `ordering` what their positions are, both None until a
    change was found. `epochs` are those after the first, ascending. No row of the source at or
    below `fence` lives, whenever its changes come. `emptied` is the newest
    TRUNCATE of which that is known. `snapshot` is a snapshot that is being read. At or below
    `purge_floor` a change of an unknown key has no effect: its row may have been purged.
    `shard` has the key columns in which the rows of this source, and only they, have these values;
    without it all rows are the source's.

    `presences` is what is known of the columns of a source with a shard.

    If the table has several sources, `keys_version` is the version of the log that added the newest
    of this one's keys, and `parked` says why this source alone takes no changes.
    """

    topic: str
    topic_id: str
    partitions: Mapping[int, PartitionState] = field(default_factory=dict)
    format: FormatName | None = None
    ordering: Ordering | None = None
    epochs: tuple[Epoch, ...] = ()
    fence: Position = BEFORE_ALL
    emptied: Emptied | None = None
    snapshot: SnapshotState | None = None
    purge_floor: Position = BEFORE_ALL
    shard: tuple[tuple[str, str], ...] = ()
    keys_version: int = 0
    parked: ParkReason | None = None
    presences: ColumnPresences = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()

    @property
    def own_presences(self) -> ColumnPresences | None:
        """What is known of its shard's columns; None if it has no shard."""
        return self.presences if self.shard else None
