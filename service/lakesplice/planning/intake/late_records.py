"""Late records: dead letters taken again, after what came behind them was applied long ago."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lakesplice.formats.events.values.blocks import Decoded
from lakesplice.model.manifest import PartitionState
from lakesplice.model.modes import NotInserts
from lakesplice.model.position import Position
from lakesplice.model.schema import SourceSchema, TableSchema
from lakesplice.planning.intake.decoded_records import Block
from lakesplice.planning.intake.known_topic import TopicFacts
from lakesplice.planning.intake.partition_intake import PartitionIntake
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.planning.schema.ignored_type_changes import with_kept_types
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.sources.epochs import Course, Places, epochs_of_late

# A record that stops a block has what lies behind it decoded again.
_BLOCK_RECORDS = 256


class LateIntake(PartitionIntake):
    """Takes records whose positions lie below others that the partition has brought meanwhile.

    That needs no check: a change at or below its row's position does nothing, whenever it comes.
    """

    def _follow(
        self,
        places: Places,
        blocks: Sequence[Block],  # noqa: ARG002  # the caller's
    ) -> Course:
        epochs = epochs_of_late(places, self._partition, self._epochs)
        return Course(epochs, len(places), self._state)


@dataclass(frozen=True)
class IntakeRules:
    """What the configuration says of a table's changes, as `PartitionIntake` takes it."""

    not_inserts: NotInserts | None = None
    policy: SchemaPolicy = DEFAULT_POLICY


@dataclass(frozen=True)
class Retaken:
    """What records came to that were taken again, in `changes_schema` of the table's schema.

    `failed` maps the index of a record that still can't be applied to its reason and detail;
    `sightings` are schemas met that the table has not, as `PartitionReport` has them; `reports` are
    those of all that were taken.
    """

    changes: tuple[pa.Table, ...]
    failed: Mapping[int, tuple[str, str]]
    sightings: tuple[tuple[Position, SourceSchema], ...]
    reports: tuple[PartitionReport, ...]


@dataclass
class _Taking:
    """What was taken so far."""

    changes: list[pa.Table] = field(default_factory=list)
    failed: dict[int, tuple[str, str]] = field(default_factory=dict)
    sightings: list[tuple[Position, SourceSchema]] = field(default_factory=list)
    reports: list[PartitionReport] = field(default_factory=list)


def retake(
    records: pa.RecordBatch,
    decode: Callable[[pa.RecordBatch], Decoded],
    topic: str,
    partition: int,
    schema: TableSchema,
    facts: TopicFacts,
    rules: IntakeRules,
) -> Retaken:
    """Take one partition's records again, in offset order; each is judged for itself.

    `decode` makes of consecutive ones what `PartitionIntake.take` needs. A record that would park a
    table fails here, alone.
    """
    taking = _Taking()
    for start in range(0, records.num_rows, _BLOCK_RECORDS):
        stop = min(records.num_rows, start + _BLOCK_RECORDS)
        while start < stop:
            block = records.slice(start, stop - start)
            intake = LateIntake(
                topic,
                partition,
                schema,
                PartitionState(0),
                facts,
                rules.not_inserts,
                rules.policy,
            )
            decoded = with_kept_types(decode(block), schema, rules.policy)
            start += _take(taking, intake, block, decoded, start)
    return Retaken(
        tuple(taking.changes), taking.failed, tuple(taking.sightings), tuple(taking.reports)
    )


def _take(
    taking: _Taking, intake: LateIntake, block: pa.RecordBatch, decoded: Decoded, start: int
) -> int:
    """Take a block up to the first record that stops it; return how many were judged."""
    offsets = block.column("offset").to_numpy()
    taken = intake.take(offsets, decoded)
    report = intake.report()
    taking.changes += taken.changes
    taking.sightings += report.sightings
    taking.reports.append(report)
    for letter in taken.letters:
        taking.failed[start + letter.row] = letter.reason, letter.detail
    if not intake.stopped:
        return int(block.num_rows)
    at = int(np.searchsorted(offsets, report.state.next_offset))
    taking.failed[start + at] = _why(report)
    return at + 1


def _why(report: PartitionReport) -> tuple[str, str]:
    if report.parked is None:
        return "schema-change", "the record has columns that the table lacks"
    return report.parked.code.value, report.parked.detail
