"""The fate of each record of a key in a topic, found by the code that decided it.

The records that a version read are decoded again by the intake line, from the state of the version
before, then folded, and looked up in that version's index. The row before and after the version
shows whether a change had an effect; the version's own dead letters show which records became one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakesplice.model.change import Op
from lakesplice.model.names import OP, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.offsets import Offset, PartitionOffset
from lakesplice.model.position import Position
from lakesplice.planning.intake.decision import Fate, decide, fates
from lakesplice.table.explaining.record_intake import (
    FoundRecords,
    OtherRecord,
    dead_letter,
    found_records,
)
from lakesplice.table.explaining.record_ranges import RecordRange, choose_ranges, contiguous_groups
from lakesplice.table.explaining.record_values import RecordAccess, RecordFate, RecordOutcome
from lakesplice.table.explaining.row_states import RowState
from lakesplice.table.explaining.version_walk import VersionWalk
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.versions import Version


class RecordFates:
    """Finds the fates of one key's records. Blocks; reads only the records that it needs."""

    def __init__(
        self, store: Store, walk: VersionWalk, versions: Sequence[Version], access: RecordAccess
    ) -> None:
        self._store = store
        self._walk = walk
        self._versions = versions
        self._access = access

    def of_topic(self, topic: str, records_max: int) -> tuple[list[RecordFate], tuple[str, ...]]:
        """Return the fates of a topic's records of the key, in the order in which the table read
        them, and in words which records were not read again.
        """
        topic_offsets = self._access.records.offsets(topic)
        chosen = choose_ranges(
            self._versions,
            topic,
            {at: Offset(earliest) for at, (earliest, _) in topic_offsets.items()},
            {at: Offset(end) for at, (_, end) in topic_offsets.items()},
            records_max,
        )
        candidates: list[RecordFate | OtherRecord] = []
        raw_keys: set[bytes] = set()
        for ranges, group in contiguous_groups(chosen.ranges):
            records = list(self._access.records.read(topic, ranges))
            for record_range in group:
                found = found_records(
                    self._store, self._walk.key, record_range, records, self._access
                )
                raw_keys |= found.raw_keys
                candidates += [*self._change_fates(record_range, found), *found.others]
        fates_of_key = [
            record_range if isinstance(record_range, RecordFate) else record_range.fate
            for record_range in candidates
            if isinstance(record_range, RecordFate) or self._is_of_key(record_range, raw_keys)
        ]
        return fates_of_key, chosen.left_out

    def _is_of_key(self, other: OtherRecord, raw_keys: set[bytes]) -> bool:
        if other.key is None or other.key in raw_keys:
            return other.key is not None
        manifest = self._versions[-1].manifest
        shard = dict(manifest.sources[other.fate.topic].shard)
        return bool(self._walk.key.is_of(other.key, manifest.schema, shard))

    def _change_fates(self, record_range: RecordRange, found: FoundRecords) -> list[RecordFate]:
        """Return the fates of the key's changes within a range of records."""
        fates_of_changes, applied = list[RecordFate](), list[tuple[RecordFate, pa.Table]]()
        for fate, change in zip(found.changed, found.changes, strict=True):
            dead = found.dead_letters.get(PartitionOffset(fate.partition, fate.offset))
            if dead is None:
                applied.append((fate, change))
            else:  # today's configuration decodes a record that was a dead letter then
                fates_of_changes.append(dead_letter(fate, dead.reason, dead.detail))
        if not applied:
            return fates_of_changes
        changes = pa.concat_tables([change for _, change in applied])
        ops = [Op(op).name.lower() for op in changes[OP].to_pylist()]
        columns = (changes[name].to_pylist() for name in (POSITION_FILE, POSITION_OFFSET))
        positions = [Position(*pair) for pair in zip(*columns, strict=True)]
        outcomes = self._outcomes(record_range, changes, positions)
        for (fate, _), op, position, (outcome, by) in zip(
            applied, ops, positions, outcomes, strict=True
        ):
            fates_of_changes.append(replace(fate, outcome=outcome, op=op, position=position, by=by))
        return fates_of_changes

    def _outcomes(
        self, record_range: RecordRange, changes: pa.Table, positions: Sequence[Position]
    ) -> list[tuple[RecordOutcome, Position | None]]:
        row_before = self._walk.state(record_range.before)
        if record_range.precedes_history:
            position_before = row_before.position if row_before else None
            return [(RecordOutcome.BEFORE_HISTORY, position_before)] * len(positions)
        if record_range.read_by is None:
            return [(RecordOutcome.UNREAD, None)] * len(positions)
        row_after = self._walk.state(record_range.read_by)
        manifest = record_range.before.manifest
        never_changes = self._access.reading(manifest.sources[record_range.topic]).insert_only
        plan = AppendPlan.of(manifest, record_range.topic, insert_only=never_changes)
        rules = plan.rules(self._store, changes)
        decision = decide(changes, rules, lambda: self._walk.runs.open_runs(self._store, plan.runs))
        decided = fates(changes, decision, rules)
        return [
            _outcome(fate, position, by, row_before, row_after)
            for position, (fate, by) in zip(positions, decided, strict=True)
        ]


def _outcome(
    fate: Fate,
    position: Position,
    by: Position,
    row_before: RowState | None,
    row_after: RowState | None,
) -> tuple[RecordOutcome, Position | None]:
    """Return the outcome of a decided change, from the row before the version and after it."""
    match fate:
        case Fate.BELOW_FENCE:
            return RecordOutcome.BELOW_FENCE, by
        case Fate.ERASED:
            return RecordOutcome.ERASED, None
        case Fate.BELOW_FLOOR:
            return RecordOutcome.BELOW_FLOOR, by
        case Fate.DUPLICATE:
            return RecordOutcome.DUPLICATE, row_before.position if row_before else by
        case Fate.FOLDED:
            return (RecordOutcome.REPEATED if by == position else RecordOutcome.FOLDED), by
    if row_before is not None and row_before.has(position):
        return RecordOutcome.REPEATED, row_before.position
    if row_after is not None and row_after.has(position):
        return RecordOutcome.APPLIED, None
    if row_before is not None and position < row_before.position:
        return RecordOutcome.OLDER, row_before.position
    if row_after is not None and position < row_after.position:
        return RecordOutcome.OLDER, row_after.position
    return RecordOutcome.UNEXPLAINED, None
