"""A topic's records taken once more by the intake line, and what one key has of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lakesplice.model.manifest import PartitionState
from lakesplice.planning.intake.known_topic import known_topic
from lakesplice.planning.intake.line import IntakeLine
from lakesplice.planning.intake.record_order import RecordIndex
from lakesplice.planning.intake.report import IntakeResult
from lakesplice.table.explaining.asked_key import AskedKey
from lakesplice.table.explaining.record_ranges import RecordRange
from lakesplice.table.explaining.record_values import Outcome, RecordAccess, RecordFate
from lakesplice.table.files.dead_letters import DeadLetter, dead_letters_of
from lakesplice.table.protocol.ports import Store


@dataclass(frozen=True)
class OtherRecord:
    """A record without a change; which key it is of, only its raw key can tell."""

    fate: RecordFate
    key: bytes | None


@dataclass
class FoundRecords:
    """What a range of records has of a key: `changes`, one row each, of the records `changed`;
    `raw_keys` are these records' keys as they were sent. `others` are records without a change, of
    any key. `letters` are the range's records that became dead letters, by partition and offset.
    """

    letters: Mapping[tuple[int, int], DeadLetter] = field(default_factory=dict)
    changed: list[RecordFate] = field(default_factory=list)
    changes: list[pa.Table] = field(default_factory=list)
    raw_keys: set[bytes] = field(default_factory=set)
    others: list[OtherRecord] = field(default_factory=list)


def found_records(
    store: Store,
    key: AskedKey,
    one: RecordRange,
    records_of: Iterable[tuple[int, pa.RecordBatch]],
    access: RecordAccess,
) -> FoundRecords:
    """Take a range of records as its version took them, from the state of the version before.

    `records_of` has them as `TopicRecords.read` gives them, maybe with others. Blocks.
    `SourceUnavailable` if the registry can't be asked, `CorruptFileError` for a damaged file of
    dead letters.
    """
    found = FoundRecords(_letters(store, one))
    lines = {at: _line(one, at, access) for at in one.offsets}
    for partition, records in _within(one, records_of):
        line, taken = lines[partition], 0
        if not line.stopped:
            named = line.schema_ids_in(records)
            schemas = None if access.registry is None else access.registry.schemas(named)
            result = line.take(records, schemas)
            end = line.report().state.next_offset
            taken = int(np.searchsorted(records.column("offset").to_numpy(), end))
            _note(found, key, _fates(one, partition, records), records, result, taken)
        _note_stopped(found, one, _fates(one, partition, records), records, line, taken)
    return found


def _within(
    one: RecordRange, records_of: Iterable[tuple[int, pa.RecordBatch]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    for partition, records in records_of:
        if partition in one.offsets:
            offsets = records.column("offset").to_numpy()
            first, last = (int(at) for at in np.searchsorted(offsets, one.offsets[partition]))
            if first < last:
                yield partition, records.slice(first, last - first)


def _line(one: RecordRange, partition: int, access: RecordAccess) -> IntakeLine:
    manifest = one.before.manifest
    source = manifest.sources[one.topic]
    state = source.partitions.get(partition, PartitionState(0))
    return IntakeLine(
        access.reading(source),
        one.topic,
        partition,
        schema=manifest.schema,
        state=PartitionState(0) if one.is_lost else state,
        known=known_topic(manifest, source, one.offsets, whole_snapshots=True),
        late=one.is_lost,
    )


def _letters(store: Store, one: RecordRange) -> Mapping[tuple[int, int], DeadLetter]:
    """The dead letters that a version brought."""
    if one.taken_in is None:
        return {}
    known = {ref.file.path for ref in one.before.manifest.dead_letters}
    new = [r for r in one.taken_in.manifest.dead_letters if r.file.path not in known]
    letters = [letter for letter in dead_letters_of(store, new) if letter.topic == one.topic]
    return {(letter.partition, letter.offset): letter for letter in letters}


def _fates(one: RecordRange, partition: int, records: pa.RecordBatch) -> list[RecordFate]:
    """The records' places, with what becomes of those that are no change of anything."""
    version = None if one.taken_in is None else one.taken_in.number
    columns = (records.column(name).to_pylist() for name in ("offset", "timestamp"))
    return [
        RecordFate(one.topic, partition, offset, time_ms, Outcome.IGNORED, version)
        for offset, time_ms in zip(*columns, strict=True)
    ]


def _note(
    found: FoundRecords,
    key: AskedKey,
    fates: list[RecordFate],
    records: pa.RecordBatch,
    result: IntakeResult,
    taken: int,
) -> None:
    """Note what became of the first records, `taken` in number."""
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
    for row in sorted({*range(taken)} - changed | dead_letters.keys()):
        fate, known = fates[row], _letter_at(found, fates[row])
        now = dead_letters.get(RecordIndex(row))
        if known is not None:
            fate = dead_letter(fate, known.reason, known.detail)
        elif now is not None and fate.version is None:
            fate = dead_letter(fate, now.reason, now.detail)
        elif now is not None:
            fate = replace(fate, outcome=Outcome.UNEXPLAINED, reason=now.reason, detail=now.detail)
        found.others.append(OtherRecord(fate, keys[row]))


def _note_stopped(
    found: FoundRecords,
    one: RecordRange,
    fates: list[RecordFate],
    records: pa.RecordBatch,
    line: IntakeLine,
    taken: int,
) -> None:
    """Note the records at and behind one that the line doesn't pass."""
    parked = line.report().parked
    why = ("schema-change", "") if parked is None else (str(parked.code), parked.detail)
    outcome = Outcome.STOPPED if one.taken_in is None else Outcome.UNEXPLAINED
    keys = records.column("key").to_pylist()
    for fate, key in list(zip(fates, keys, strict=True))[taken:]:
        known = _letter_at(found, fate)
        if known is not None:
            fate = dead_letter(fate, known.reason, known.detail)
        else:
            fate = replace(fate, outcome=outcome, reason=why[0], detail=why[1])
        found.others.append(OtherRecord(fate, key))


def _letter_at(found: FoundRecords, fate: RecordFate) -> DeadLetter | None:
    return found.letters.get((fate.partition, fate.offset))


def dead_letter(fate: RecordFate, reason: str, detail: str) -> RecordFate:
    """Return a record as a dead letter."""
    return replace(fate, outcome=Outcome.DEAD_LETTER, reason=reason, detail=detail)
