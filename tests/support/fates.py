"""An oracle of each record's fate: it judges records one by one, version by version, and shares no
code with the explanation of keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakesplice.model.offsets import Offset, OffsetRange, OffsetRanges
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.table.explaining.record_values import RecordAccess, RecordFate, RecordOutcome
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.reading.versions import Version, read_version
from lakesplice.testing.oracle import Record, position
from lakesplice.testing.simulation import SimulatedTopic

# Of a key: partition, offset, what became of it, in which version.
Told = tuple[int, int, RecordOutcome, int | None]


class TopicOfTest:
    """A simulated topic, read as a broker's."""

    def __init__(self, topic: SimulatedTopic) -> None:
        self._topic = topic

    def offsets(self, topic: str) -> OffsetRanges:
        assert topic == self._topic.name
        return {at: OffsetRange(Offset(0), end) for at, end in self._topic.ends.items()}

    def read(self, topic: str, ranges: OffsetRanges) -> Iterator[tuple[int, pa.RecordBatch]]:
        assert topic == self._topic.name
        for at, (start, end) in sorted(ranges.items()):
            for batch in self._topic.read({at: start}, {at: end}):
                for first in range(0, batch.num_rows, 3):
                    yield at, _with_milliseconds(batch.slice(first, 3))


def access_to(topic: SimulatedTopic, reading: RecordReading) -> RecordAccess:
    """How an explanation reads the topic."""

    def of(source: SourceState) -> RecordReading:
        assert source.topic == topic.name
        return reading

    return RecordAccess(TopicOfTest(topic), of)


def _with_milliseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    moments = batch.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
    columns = [
        moments if name == "timestamp" else batch.column(name) for name in batch.schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def told_of(fates: tuple[RecordFate, ...]) -> list[Told]:
    """What an explanation says, in the oracle's form."""
    return [(fate.partition, fate.offset, fate.outcome, fate.version) for fate in fates]


@dataclass
class FateOracle:
    """Judges the records of a table as its versions take them. `stands` has per key the position of
    its row, deleted or not.
    """

    store: Store
    topic: SimulatedTopic
    insert_only: bool = False
    told: dict[int, list[Told]] = field(default_factory=dict)
    deletes: set[tuple[int, int]] = field(default_factory=set)
    stands: dict[int, Position] = field(default_factory=dict)
    known: Version | None = None

    def catch_up(self) -> None:
        """Judge what came with the versions since the last call."""
        newest = open_snapshot(self.store).version
        for number in range(0 if self.known is None else self.known.number + 1, newest + 1):
            version = read_version(self.store, number)
            if self.known is not None:
                self._take(self.known, version)
            self.known = version

    def rest(self) -> dict[int, list[Told]]:
        """All that was judged, and what nobody has read yet."""
        found = {key: list(told) for key, told in self.told.items()}
        assert self.known is not None
        stood = self.known.manifest.sources[self.topic.name].partitions
        for record in self._between(
            {at: state.next_offset for at, state in stood.items()}, self.topic.ends
        ):
            key, change = _change(record)
            outcome = RecordOutcome.UNREAD if change is not None else _no_change(record)
            if change is not None and self._is_refused(record):
                outcome = RecordOutcome.DEAD_LETTER
            if key is not None:
                found.setdefault(key, []).append((record.partition, record.offset, outcome, None))
        return found

    def _take(self, before: Version, now: Version) -> None:
        if now.operation == "INGEST":
            self._judge(before, now)
        elif now.operation in ("PURGE", "RESTORE", "RESET"):
            rows = Table(self.store, now.number).read(
                View.REAL_TIME, include_deleted=True, include_system=True
            )
            self.stands.clear()
            for row in rows.to_pylist():  # an older place of a row may still be there
                found = Position(row["_position_file"], row["_position_offset"])
                self.stands[row["id"]] = max(found, self.stands.get(row["id"], BEFORE_ALL))

    def _judge(self, before: Version, now: Version) -> None:
        was, is_ = (one.manifest.sources[self.topic.name] for one in (before, now))
        starts = {at: state.next_offset for at, state in was.partitions.items()}
        ends = {at: state.next_offset for at, state in is_.partitions.items()}
        by_key: dict[int, list[tuple[Record, Position]]] = {}
        for record in self._between(starts, ends):
            key, change = _change(record)
            if key is None:
                continue
            outcome = _no_change(record) if change is None else None
            if change is not None and self._is_refused(record):
                outcome = RecordOutcome.DEAD_LETTER
            if change is not None and outcome is None and change <= was.fence:
                outcome = RecordOutcome.BELOW_FENCE
            if outcome is not None:
                self._note(key, record, outcome, now)
            elif change is not None:
                by_key.setdefault(key, []).append((record, change))
        for key, changes in by_key.items():
            self._judge_key(key, changes, now, was.purge_floor)
        if is_.fence > was.fence:
            for key, stands in self.stands.items():
                if stands <= is_.fence:
                    self._fence(key, is_.fence, now)

    def _judge_key(
        self,
        key: int,
        changes: list[tuple[Record, Position]],
        now: Version,
        floor: Position,
    ) -> None:
        places = [change for _, change in changes]
        winner = min(places) if self.insert_only else max(places)
        standing = self.stands.get(key)
        if standing is not None:
            outcome = RecordOutcome.OLDER if winner < standing else RecordOutcome.APPLIED
            outcome = RecordOutcome.REPEATED if winner == standing else outcome
            outcome = RecordOutcome.DUPLICATE if self.insert_only else outcome
        else:
            outcome = RecordOutcome.BELOW_FLOOR if winner <= floor else RecordOutcome.APPLIED
        met = False
        for record, change in changes:
            if change == winner and not met:
                met = True
                self._note(key, record, outcome, now)
            elif self.insert_only:
                self._note(key, record, RecordOutcome.DUPLICATE, now)
            else:
                repeated = change == winner
                self._note(
                    key, record, RecordOutcome.REPEATED if repeated else RecordOutcome.FOLDED, now
                )
        if outcome is RecordOutcome.APPLIED:
            self.stands[key] = winner

    def _fence(self, key: int, fence: Position, now: Version) -> None:
        """A TRUNCATE deleted the row, perhaps just after it came; a row that was deleted before is
        left as it is.
        """
        self.stands[key] = fence
        self.told[key] = [
            (at, offset, RecordOutcome.OLDER, version)
            if version == now.number
            and outcome is RecordOutcome.APPLIED
            and (at, offset) not in self.deletes
            else (at, offset, outcome, version)
            for at, offset, outcome, version in self.told.get(key, [])
        ]

    def _is_refused(self, record: Record) -> bool:
        return self.insert_only and _op(record) not in "cr"

    def _note(self, key: int, record: Record, outcome: RecordOutcome, now: Version) -> None:
        told = record.partition, record.offset, outcome, now.number
        self.told.setdefault(key, []).append(told)
        if outcome is RecordOutcome.APPLIED and _op(record) == "d":
            self.deletes.add((record.partition, record.offset))

    def _between(
        self, starts: Mapping[int, Offset], ends: Mapping[int, Offset]
    ) -> Iterator[Record]:
        for record in self.topic.records():
            if starts.get(record.partition, 0) <= record.offset < ends.get(record.partition, 0):
                yield record


def _change(record: Record) -> tuple[int | None, Position | None]:
    """The key that a record is of, and its change's position; a broken value has none."""
    if record.key is None:
        return None, None
    key = json.loads(record.key)["payload"]["id"]
    if record.value in (None, b"{"):
        return key, None
    payload = json.loads(record.value or b"")["payload"]
    return key, Position.of(0, *position(payload["source"], payload["op"]))


def _no_change(record: Record) -> RecordOutcome:
    return RecordOutcome.IGNORED if record.value is None else RecordOutcome.DEAD_LETTER


def _op(record: Record) -> str:
    return str(json.loads(record.value or b"")["payload"]["op"])
