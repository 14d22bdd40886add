"""Decodes a topic's records again by the intake line, and picks out those of one key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.known_topic import known_topic
from lakesplice.planning.intake.line import IntakeLine, RecordSource
from lakesplice.planning.intake.order.record_order import RecordIndex
from lakesplice.planning.intake.report import IntakeResult
from lakesplice.planning.keys.requested_key import RequestedKey
from lakesplice.table.explaining.record_ranges import RecordRange
from lakesplice.table.explaining.record_values import RecordAccess, RecordFate, RecordOutcome
from lakesplice.table.files.dead_letters import DeadLetter, dead_letters_of
from lakesplice.table.protocol.ports import Store


@dataclass(frozen=True)
class OtherRecord:
    """A record that isn't a change. Only its key's bytes can show which key it belongs to."""

    fate: RecordFate
    key: bytes | None


@dataclass
class FoundRecords:
    """What a range of records contains of a key.

    `changed` are the records that are changes of the key, `changes` their changes, one row each,
    and `raw_keys` their keys as bytes. `others` are records of any key that are no changes.
    `dead_letters` are the range's records that became dead letters, by partition and offset.
    """

    dead_letters: Mapping[PartitionOffset, DeadLetter] = field(default_factory=dict)
    changed: list[RecordFate] = field(default_factory=list)
    changes: list[pa.Table] = field(default_factory=list)
    raw_keys: set[bytes] = field(default_factory=set)
    others: list[OtherRecord] = field(default_factory=list)


def found_records(
    store: Store,
    key: RequestedKey,
    record_range: RecordRange,
    records_of: Iterable[tuple[int, pa.RecordBatch]],
    access: RecordAccess,
) -> FoundRecords:
    """Decode a range of records as the version that read them did, from the state of the version
    before.

    `records_of` yields batches of records, as `TopicRecords.read` does; records outside the range
    are skipped. Blocks. `SourceUnavailable` if the registry can't be asked, `CorruptFileError` for
    a damaged file of dead letters.
    """
    found = FoundRecords(_dead_letters(store, record_range))
    manifest = record_range.before.manifest
    keeps_versions = manifest.schema.keeps_versions
    fence = BEFORE_ALL if keeps_versions else manifest.sources[record_range.topic].fence
    intake_lines = {at: _intake_line(record_range, at, access) for at in record_range.offsets}
    for partition, records in _within(record_range, records_of):
        line, read_count = intake_lines[partition], 0
        if not line.stopped:
            schema_ids = line.schema_ids_in(records)
            schemas = None if access.registry is None else access.registry.schemas(schema_ids)
            result = line.take(records, schemas)
            end = line.report().state.next_offset
            read_count = int(np.searchsorted(records.column("offset").to_numpy(), end))
            told = _fates(record_range, partition, records)
            _add_read_records(found, key, told, records, result, read_count, fence=fence)
        _add_unread_records(
            found, record_range, _fates(record_range, partition, records), records, line, read_count
        )
    return found


def _within(
    record_range: RecordRange, records_of: Iterable[tuple[int, pa.RecordBatch]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    for partition, records in records_of:
        if partition in record_range.offsets:
            offsets = records.column("offset").to_numpy()
            first, last = (
                int(at) for at in np.searchsorted(offsets, record_range.offsets[partition])
            )
            if first < last:
                yield partition, records.slice(first, last - first)


def _intake_line(record_range: RecordRange, partition: int, access: RecordAccess) -> IntakeLine:
    manifest = record_range.before.manifest
    source = manifest.sources[record_range.topic]
    state = source.partitions.get(partition, PartitionState(Offset(0)))
    return IntakeLine(
        access.reading(source),
        record_range.topic,
        partition,
        schema=manifest.schema,
        state=PartitionState(Offset(0)) if record_range.precedes_history else state,
        known=known_topic(manifest, source, record_range.offsets, whole_snapshots=True),
        origins=RecordSource.LATE_RECORDS if record_range.precedes_history else RecordSource.TOPIC,
    )


def _dead_letters(store: Store, record_range: RecordRange) -> Mapping[PartitionOffset, DeadLetter]:
    """The dead letters that the range's version added."""
    if record_range.read_by is None:
        return {}
    known = {ref.file.path for ref in record_range.before.manifest.dead_letters}
    new = [r for r in record_range.read_by.manifest.dead_letters if r.file.path not in known]
    dead_letters = [
        letter for letter in dead_letters_of(store, new) if letter.topic == record_range.topic
    ]
    return {PartitionOffset(letter.partition, letter.offset): letter for letter in dead_letters}


def _fates(record_range: RecordRange, partition: int, records: pa.RecordBatch) -> list[RecordFate]:
    """One fate per record, `IGNORED` until something else is known of the record."""
    version = None if record_range.read_by is None else record_range.read_by.number
    columns = (records.column(name).to_pylist() for name in ("offset", "timestamp"))
    return [
        RecordFate(record_range.topic, partition, offset, time_ms, RecordOutcome.IGNORED, version)
        for offset, time_ms in zip(*columns, strict=True)
    ]


def _add_read_records(
    found: FoundRecords,
    key: RequestedKey,
    fates: list[RecordFate],
    records: pa.RecordBatch,
    result: IntakeResult,
    read_count: int,
    *,
    fence: Position,
) -> None:
    """Add the results of the first `read_count` records."""
    keys = records.column("key").to_pylist()
    changed: set[int] = set()
    for rows, changes in zip(result.rows, result.changes, strict=True):
        changed.update(rows.tolist())
        for at in np.flatnonzero(key.among(changes)).tolist():
            row = int(rows[at])
            found.changed.append(fates[row])
            found.changes.append(changes.slice(at, 1))
            if keys[row] is not None and np.count_nonzero(rows == row) == 1:
                found.raw_keys.add(keys[row])
    dead_letters = {letter.record: letter for letter in result.dead_letters}
    for row in sorted({*range(read_count)} - changed | dead_letters.keys()):
        fate, known = fates[row], _dead_letter_at(found, fates[row])
        if row in result.sent_again:
            fate = replace(fate, outcome=RecordOutcome.BELOW_FENCE, by=fence)
        now = dead_letters.get(RecordIndex(row))
        if known is not None:
            fate = dead_letter(fate, known.reason, known.detail)
        elif now is not None and fate.version is None:
            fate = dead_letter(fate, now.reason, now.detail)
        elif now is not None:
            fate = replace(
                fate, outcome=RecordOutcome.UNEXPLAINED, reason=now.reason, detail=now.detail
            )
        found.others.append(OtherRecord(fate, keys[row]))


def _add_unread_records(
    found: FoundRecords,
    record_range: RecordRange,
    fates: list[RecordFate],
    records: pa.RecordBatch,
    line: IntakeLine,
    read_count: int,
) -> None:
    """Add the record at which the line stopped, and those after it."""
    parked = line.report().parked
    reason_and_detail = (
        ("schema-change", "") if parked is None else (str(parked.code), parked.detail)
    )
    outcome = RecordOutcome.STOPPED if record_range.read_by is None else RecordOutcome.UNEXPLAINED
    keys = records.column("key").to_pylist()
    for fate, key in list(zip(fates, keys, strict=True))[read_count:]:
        known = _dead_letter_at(found, fate)
        if known is not None:
            fate = dead_letter(fate, known.reason, known.detail)
        else:
            fate = replace(
                fate, outcome=outcome, reason=reason_and_detail[0], detail=reason_and_detail[1]
            )
        found.others.append(OtherRecord(fate, key))


def _dead_letter_at(found: FoundRecords, fate: RecordFate) -> DeadLetter | None:
    return found.dead_letters.get(PartitionOffset(fate.partition, fate.offset))


def dead_letter(fate: RecordFate, reason: str, detail: str) -> RecordFate:
    """Return the fate of a record that became a dead letter."""
    return replace(fate, outcome=RecordOutcome.DEAD_LETTER, reason=reason, detail=detail)
