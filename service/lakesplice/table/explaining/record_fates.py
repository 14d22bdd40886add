"""What became of each of a topic's records of a key, by the code that decided it.

The records of a version are taken again as that version's batch took them: by the intake line from
the state of the version before, then folded and located with its runs. Whether a change of a row
had an effect is read from the row, as it stood before the version and after it; which records
became dead letters, from the version's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lakesplice.model.change import Op
from lakesplice.model.names import OP, POSITION_FILE, POSITION_OFFSET
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.intake.decision import Fate, decide, fates
from lakesplice.table.explaining.record_intake import (
    FoundRecords,
    OtherRecord,
    dead_letter,
    found_records,
)
from lakesplice.table.explaining.record_ranges import RecordRange, adjoining, choose_ranges
from lakesplice.table.explaining.record_values import Outcome, RecordAccess, RecordFate
from lakesplice.table.explaining.row_states import RowState
from lakesplice.table.explaining.version_walk import VersionWalk
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.protocol.ports import Store
from lakesplice.table.reading.changes import Version


class RecordFates:
    """Tells the fates of the records of one key; blocks, and reads no more than it has to."""

    def __init__(
        self, store: Store, walk: VersionWalk, versions: Sequence[Version], access: RecordAccess
    ) -> None:
        self._store = store
        self._walk = walk
        self._versions = versions
        self._access = access

    def of_topic(self, topic: str, records_max: int) -> tuple[list[RecordFate], tuple[str, ...]]:
        """Return what became of a topic's records of the key, in the order in which they were
        read, and in words which records were not read again.
        """
        there = self._access.records.offsets(topic)
        chosen = choose_ranges(
            self._versions,
            topic,
            {at: earliest for at, (earliest, _) in there.items()},
            {at: end for at, (_, end) in there.items()},
            records_max,
        )
        told: list[RecordFate | OtherRecord] = []
        raw_keys: set[bytes] = set()
        for ranges, group in adjoining(chosen.ranges):
            records = list(self._access.records.read(topic, ranges))
            for one in group:
                found = found_records(self._store, self._walk.key, one, records, self._access)
                raw_keys |= found.raw_keys
                told += [*self._judged(one, found), *found.others]
        kept = [
            one if isinstance(one, RecordFate) else one.fate
            for one in told
            if isinstance(one, RecordFate) or self._is_of_key(one, raw_keys)
        ]
        return kept, chosen.left_out

    def _is_of_key(self, other: OtherRecord, raw_keys: set[bytes]) -> bool:
        if other.key is None or other.key in raw_keys:
            return other.key is not None
        manifest = self._versions[-1].manifest
        shard = dict(manifest.sources[other.fate.topic].shard)
        return bool(self._walk.key.is_of(other.key, manifest.schema, shard))

    def _judged(self, one: RecordRange, found: FoundRecords) -> list[RecordFate]:
        """Tell what became of the changes of the key that a range has."""
        told, taken = list[RecordFate](), list[tuple[RecordFate, pa.Table]]()
        for fate, change in zip(found.changed, found.changes, strict=True):
            letter = found.letters.get((fate.partition, fate.offset))
            if letter is None:
                taken.append((fate, change))
            else:  # under another configuration than today's
                told.append(dead_letter(fate, letter.reason, letter.detail))
        if not taken:
            return told
        changes = pa.concat_tables([change for _, change in taken])
        ops = [Op(op).name.lower() for op in changes[OP].to_pylist()]
        columns = (changes[name].to_pylist() for name in (POSITION_FILE, POSITION_OFFSET))
        positions = [Position(*pair) for pair in zip(*columns, strict=True)]
        outcomes = self._outcomes(one, changes, positions)
        for (fate, _), op, position, (outcome, by) in zip(
            taken, ops, positions, outcomes, strict=True
        ):
            told.append(replace(fate, outcome=outcome, op=op, position=position, by=by))
        return told

    def _outcomes(
        self, one: RecordRange, changes: pa.Table, positions: Sequence[Position]
    ) -> list[tuple[Outcome, Position | None]]:
        stood = self._walk.state(one.before)
        if one.is_lost:
            standing = stood.position if stood else None
            return [(Outcome.TAKEN_BEFORE, standing)] * len(positions)
        if one.taken_in is None:
            return [(Outcome.UNREAD, None)] * len(positions)
        stands = self._walk.state(one.taken_in)
        manifest = one.before.manifest
        never_changes = self._access.reading(manifest.sources[one.topic]).not_inserts is not None
        plan = AppendPlan.of(manifest, one.topic, insert_only=never_changes)
        decision = decide(
            changes, plan.rules, lambda: self._walk.runs.open_runs(self._store, plan.runs)
        )
        decided = fates(changes, decision, plan.rules)
        return [
            _outcome(fate, position, by, stood, stands)
            for position, (fate, by) in zip(positions, decided, strict=True)
        ]


def _outcome(
    fate: Fate,
    position: Position,
    by: Position,
    stood: RowState | None,
    stands: RowState | None,
) -> tuple[Outcome, Position | None]:
    """Say what a decided change came to, by the row before the version and after it."""
    match fate:
        case Fate.BELOW_FENCE:
            return Outcome.BELOW_FENCE, by
        case Fate.BELOW_FLOOR:
            return Outcome.BELOW_FLOOR, by
        case Fate.DUPLICATE:
            return Outcome.DUPLICATE, stood.position if stood else by
        case Fate.FOLDED:
            return (Outcome.REPEATED if by == position else Outcome.FOLDED), by
    if stood is not None and stood.has(position):
        return Outcome.REPEATED, stood.position
    if stands is not None and stands.has(position):
        return Outcome.APPLIED, None
    level = stood.position if stood else BEFORE_ALL
    if position <= level:
        return Outcome.OLDER, level
    if stands is not None and position < stands.position:
        return Outcome.OLDER, stands.position
    return Outcome.UNEXPLAINED, None
