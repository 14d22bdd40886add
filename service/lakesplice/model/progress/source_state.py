"""How far a table's source has been read: its partitions, epochs, snapshot and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakesplice.model.arrays import KeyHash
from lakesplice.model.choices import FormatName
from lakesplice.model.offsets import Gap, Offset
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.column_presence import ColumnPresences
from lakesplice.model.progress.epochs import Epoch


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
    `recent_gtids` is as `gtids`, of the changes since its epoch began and since repeated changes
    were last applied; None if it is the same.
    """

    next_offset: Offset
    position: Position = BEFORE_ALL
    gtids: Mapping[str, int] = field(default_factory=dict)
    met_until: int = 0
    repeating: bool = False
    lossy: bool = False
    highest: HighestChange | None = None
    recent_gtids: Mapping[str, int] | None = None

    @property
    def recently_met(self) -> Mapping[str, int]:
        """Return `recent_gtids`, also if it is the same as `gtids`."""
        return self.gtids if self.recent_gtids is None else self.recent_gtids


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """A snapshot of the whole table, at one position, that is being read while older rows live.

    `passed` are the partitions that are read to its end. If it is `lossy`, it may be incomplete.
    """

    position: Position
    passed: frozenset[int] = frozenset()
    lossy: bool = False


@dataclass(frozen=True, slots=True)
class SourceState:
    """How far the table has read one topic; `topic_id` shows whether the topic was deleted and
    created again.

    `format` is the format of its records and `ordering` what their positions are, both None until a
    change was found. `epochs` are those after the first, ascending. No row of the source at or
    below `fence` lives, whenever its changes come. `snapshot` is a snapshot that is being read. At
    or below `purge_floor` a change of an unknown key has no effect: its row may have been purged.
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
