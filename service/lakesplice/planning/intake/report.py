"""The result of a partition's records: changes, dead letters, and the partition's new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName
from lakesplice.model.manifest import ParkReason, PartitionState
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.schema import SourceSchema, TableSchema
from lakesplice.planning.intake.record_order import RecordIndex
from lakesplice.planning.schema.shard_columns import ObservedColumn
from lakesplice.planning.sources.epochs import Opening
from lakesplice.planning.sources.snapshots import SnapshotMet


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """A dead letter's record index and why it became one."""

    record: RecordIndex
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The result of some records: changes in the table's layout, and dead letters.

    `rows` has for each table of changes the indexes of their records. A record that has neither a
    change nor a letter was ignored, unless the partition stopped at it or before.
    """

    changes: tuple[pa.Table, ...]
    dead_letters: tuple[NewDeadLetter, ...]
    rows: tuple[Integers, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PartitionReport:
    """Where a partition stands after its part of a batch.

    `state.next_offset` is the offset of the record it stopped at, or one after its last record.
    `sightings` are schemas that the table has not (yet), each with a position where it was met.
    `counts` has changes by operation under `create`, `update`, `delete` and `read`, what was passed
    over under `ignored:<reason>`, dead letters under `dead:<reason>`, and changes that repeat
    earlier ones under `repeated`. `source_ts_ms` is the newest source time met, or None. `format`
    and `ordering` are those of its changes, None if it had none. `opening` is what it stopped
    at if that opens an epoch; `entered` maps epochs that it entered to the first offset under them.
    No row at or below `fence` lives. `snapshot` is the newest one of which it had rows.
    `sighted` is what a shard's images showed of their columns, by their identities. `first_schema`
    is, where the table has no columns yet, the schema that the changes are made for.
    `suspect_settings` are as in `Decoded`.
    """

    partition: int
    state: PartitionState
    stopped: bool = False
    parked: ParkReason | None = None
    sightings: tuple[tuple[Position, SourceSchema], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    source_ts_ms: int | None = None
    format: FormatName | None = None
    ordering: Ordering | None = None
    opening: Opening | None = None
    entered: Mapping[int, int] = field(default_factory=dict)
    fence: Position = BEFORE_ALL
    snapshot: SnapshotMet | None = None
    sighted: Mapping[int, ObservedColumn] = field(default_factory=dict)
    first_schema: TableSchema | None = None
    suspect_settings: frozenset[str] = frozenset()
