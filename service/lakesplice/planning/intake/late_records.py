"""Late records: replayed dead letters. The records after them were applied long ago."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakesplice.formats.events import SchemaText
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.known_topic import KnownTopic
from lakesplice.planning.intake.line import IntakeLine, RecordReading, RecordSource
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.planning.sources.late_order import ORDER_UNPROVEN, UNPROVEN, LateChange

# After a record that stops a block, the rest of the block is decoded again.
_BLOCK_RECORDS = 256


@dataclass
class ReplayedRecords:
    """The result of a replay: changes in `changes_schema` of the table's schema.

    `failed` maps the index of a record that still can't be applied to its reason and detail.
    `new_schemas` are schemas that the table doesn't have, as in `PartitionReport`; `reports` are
    those of all blocks. `applied` are the records whose order was known, `elsewhere` the groups in
    which one repeats what another server has.
    """

    changes: list[pa.Table] = field(default_factory=list)
    failed: dict[int, tuple[str, str]] = field(default_factory=dict)
    new_schemas: list[tuple[Position, SourceSchema]] = field(default_factory=list)
    reports: list[PartitionReport] = field(default_factory=list)
    applied: list[LateChange] = field(default_factory=list)
    elsewhere: set[Position | None] = field(default_factory=set)


def replay_records(
    records: pa.RecordBatch,
    reading: RecordReading,
    topic: str,
    partition: int,
    *,
    schema: TableSchema,
    known: KnownTopic,
    schemas: Mapping[int, SchemaText] | None = None,
) -> ReplayedRecords:
    """Decode one partition's records again, in offset order; each is decided for itself.

    Records and `schemas` are as in `IntakeLine.take`. A record that would park a table fails here,
    alone.
    """
    replayed = ReplayedRecords()
    for start in range(0, records.num_rows, _BLOCK_RECORDS):
        stop = min(records.num_rows, start + _BLOCK_RECORDS)
        while start < stop:
            line = IntakeLine(
                reading,
                topic,
                partition,
                schema=schema,
                state=PartitionState(Offset(0)),
                known=_after(known, replayed),
                origins=RecordSource.LATE_RECORDS,
            )
            start += _take(replayed, line, records.slice(start, stop - start), schemas, start)
    return replayed


def _take(
    replayed: ReplayedRecords,
    line: IntakeLine,
    block: pa.RecordBatch,
    schemas: Mapping[int, SchemaText] | None,
    start: int,
) -> int:
    """Take a block up to the first record that stops it; return the number of records decided."""
    result = line.take(block, schemas)
    report = line.report()
    replayed.changes += result.changes
    replayed.new_schemas += report.new_schemas
    replayed.reports.append(report)
    offsets = block.column("offset").to_numpy()
    for letter in result.dead_letters:
        replayed.failed[start + letter.record] = letter.reason, letter.detail
    refused = {int(offsets[letter.record]) for letter in result.dead_letters}
    replayed.applied += (
        change
        for change in (report.late.applied if report.late else ())
        if change.offset < report.state.next_offset and change.offset not in refused
    )
    replayed.elsewhere.update(report.late.elsewhere if report.late else ())
    if not line.stopped:
        return int(block.num_rows)
    at = int(np.searchsorted(offsets, report.state.next_offset))
    why = _why(report)
    if why is not None:
        replayed.failed[start + at] = why
    return at + 1


def _after(known: KnownTopic, replayed: ReplayedRecords) -> KnownTopic:
    if known.late is None:
        return known
    late = known.late.with_applied(replayed.applied, replayed.elsewhere)
    return replace(known, late=late)


def _why(report: PartitionReport) -> tuple[str, str] | None:
    """Return why a record isn't applied; None if it has no effect, since it repeats another."""
    if report.late and report.parked and report.parked.code is ParkCode.POSITIONS_FELL_BACK:
        return (ORDER_UNPROVEN, UNPROVEN) if report.late.unproven else None
    if report.parked is None:
        return "schema-change", "the record has columns that the table lacks"
    return report.parked.code.value, report.parked.detail
