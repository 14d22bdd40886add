"""The result of a partition's records: changes, dead letters, and the partition's new state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakesplice.model.arrays import Integers
from lakesplice.model.choices import FormatName
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.order.emptied import Truncation
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.schema.shard_columns import ObservedColumn
from lakesplice.planning.sources.epochs import Opening
from lakesplice.planning.sources.late_order import LateChange, LatePath, ReadAround
from lakesplice.planning.sources.snapshots import NewestSnapshot


@dataclass(frozen=True, slots=True)
class NewDeadLetter:
    """The index of a record that became a dead letter, the reason, and what was read around it,
    unless that isn't known.
    """

    record: RecordIndex
    reason: str
    detail: str
    around: ReadAround | None = None


@dataclass(frozen=True, slots=True)
class IntakeResult:
    """The result of some records: changes in the table's layout, and dead letters.

    `rows` has, for each table of changes, the indexes of their records. A record that has neither a
    change nor a dead letter was ignored, unless the partition stopped at it or before it. `lowest`
    is the lowest position of the changes that is above the partition's before, if there is one.
    The records that were `sent_again` are from before a TRUNCATE and have no effect.
    """

    changes: tuple[pa.Table, ...]
    dead_letters: tuple[NewDeadLetter, ...]
    rows: tuple[Integers, ...] = ()
    lowest: Position | None = None
    sent_again: frozenset[RecordIndex] = frozenset()


@dataclass(frozen=True, kw_only=True)
class PartitionReport:
    """The state of a partition after its part of a batch.

    state               its state; `next_offset` is the offset of the record where it stopped, or
                        one after its last record
    parked              why it stopped, if an operator must decide
    new_schemas         schemas that the table lacks, each with a position where it occurred
    counts              changes by operation under `create`, `update`, `delete` and `read`, skipped
                        records under `ignored:<reason>`, dead letters under `dead:<reason>`, and
                        changes that repeat earlier ones under `repeated`
    source_ts_ms        the newest time at the source; None without changes
    format, ordering    those of its changes; None without changes
    opening             the change where it stopped, if that opens an epoch
    entered             the first offset in each epoch that it entered, by the epochs' numbers
    lowest              the lowest position of its changes that is above its position before; None
                        without such a change
    fence               all rows at or below it are deleted
    truncations         TRUNCATEs that it read, and DROPs that are followed
    snapshot            the newest snapshot of which it had rows
    observed_columns    what a shard's images showed of their columns, by id
    first_schema        for a table without columns the schema that the changes are made for
    suspect_settings    as in `Decoded`
    late                the path of late records, if their order was judged
    returned            what was applied of earlier records that the partition reads again
    """

    partition: int
    state: PartitionState
    stopped: bool
    parked: ParkReason | None = None
    new_schemas: tuple[tuple[Position, SourceSchema], ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    source_ts_ms: EpochMs | None = None
    format: FormatName | None = None
    ordering: Ordering | None = None
    opening: Opening | None = None
    entered: Offsets = field(default_factory=dict)
    lowest: Position | None = None
    fence: Position = BEFORE_ALL
    truncations: tuple[Truncation, ...] = ()
    snapshot: NewestSnapshot | None = None
    observed_columns: Mapping[int, ObservedColumn] = field(default_factory=dict)
    first_schema: TableSchema | None = None
    suspect_settings: frozenset[str] = frozenset()
    late: LatePath | None = None
    returned: tuple[LateChange, ...] = ()
