"""Intake of one topic partition in a batch: its changes for the table, and where it has to stop.

Records are taken in offset order. The first record that the table can't apply (no usable key, an
undeclared type, a schema that doesn't fit, an unexplained lower position) stops the partition: all
records before it are applied, none from it on. A record whose schema only adds columns also stops
it, until the table has them and the batch is retried; so does a change that opens an epoch, until
the epoch is recorded. A table without columns gets those of its first image (`first_schema`), so
that its first batch runs only once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.formats.events.values.blocks import Decoded, ImageBlock
from lakesplice.formats.events.values.fences import Fences
from lakesplice.model.arrays import Integers
from lakesplice.model.change import Op
from lakesplice.model.choices import NotInserts
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import OP, SOURCE_TS
from lakesplice.model.offsets import Offset
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.progress.epochs import entered_epochs
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.intake import insert_only
from lakesplice.planning.intake.image_schemas import ImageSchemas
from lakesplice.planning.intake.known_topic import (
    NOTHING_KNOWN,
    KnownTopic,
    PartitionStop,
    mixed_kinds,
    repeated_number,
    shared_position,
    with_ordering,
)
from lakesplice.planning.intake.new_dead_letters import (
    ignored_before,
    new_dead_letters,
    with_places,
)
from lakesplice.planning.intake.order.emptied import Truncation
from lakesplice.planning.intake.order.further_snapshots import ADVICE, further_snapshots
from lakesplice.planning.intake.order.missing_records import MissingRecords
from lakesplice.planning.intake.order.proven_records import ProvenRecords
from lakesplice.planning.intake.order.record_order import RecordIndex, RecordOrder
from lakesplice.planning.intake.order.repeated_numbers import newest_moment
from lakesplice.planning.intake.order.returned_records import Waiting, follow_returned
from lakesplice.planning.intake.order.shared_positions import Found, SharedPositions
from lakesplice.planning.intake.order.truncations import (
    counted,
    fence_of,
    parking_truncations,
    read_first,
    row_ends,
    sent_again_records,
)
from lakesplice.planning.intake.refused_records import refused_records
from lakesplice.planning.intake.report import IntakeResult, NewDeadLetter, PartitionReport
from lakesplice.planning.rows.appended_rows import in_epochs
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.sources.epochs import ChangePositions, EpochPath, Opening, follow
from lakesplice.planning.sources.gaps import lowest_above
from lakesplice.planning.sources.late_order import LateChange, LatePath
from lakesplice.planning.sources.position_order import accept_repetitions
from lakesplice.planning.sources.snapshots import NewestSnapshot, is_lossy, snapshot_met
from lakesplice.planning.versions.version_columns import at_positions


class PartitionIntake:
    """Takes the records of one partition in offset order; not thread-safe.

    `schema` is the table's, `state` the partition's, `known` what is known of the topic. `shard`
    are the key columns in which all rows of the topic have one value.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        *,
        schema: TableSchema,
        state: PartitionState,
        known: KnownTopic = NOTHING_KNOWN,
        not_inserts: NotInserts | None = None,
        policy: SchemaPolicy = DEFAULT_POLICY,
        shard: Mapping[str, str] | None = None,
    ) -> None:
        self._policy = policy
        self._known = with_ordering(known, state)
        self._not_inserts = not_inserts
        self._shard = shard or {}
        self._topic = topic
        self._partition = partition
        self._images = ImageSchemas(schema, policy, known.presences)
        self._state = state
        self._parked: ParkReason | None = None
        self._counts: Counter[str] = Counter()
        self._source_ts_ms: EpochMs | None = None
        self._met = KnownTopic()
        self._epochs = known.epochs
        self._opening: Opening | None = None
        self._entered: dict[int, Offset] = {}
        self._lowest: Position | None = None
        self._late: LatePath | None = None
        self._waiting = known.waiting.get(partition, Waiting())
        self._returned: Sequence[LateChange] = ()
        self._fence = BEFORE_ALL
        self._truncations: tuple[Truncation, ...] = ()
        self._snapshot: NewestSnapshot | None = None
        self._suspect_settings: frozenset[str] = frozenset()
        self.stopped = False

    @property
    def first_schema(self) -> TableSchema | None:
        """The schema that changes are made for, if the table had no columns."""
        return self._images.first_schema

    def follow_schema(self, first_schema: TableSchema) -> None:
        """See `ImageSchemas.follow_schema`."""
        self._images.follow_schema(first_schema)

    def take(self, offsets: Integers, decoded: Decoded) -> IntakeResult:
        """Take the next records, which have these offsets; not to be called after a stop."""
        missing = MissingRecords.among(offsets, self._state, self._waiting.gaps)
        proven = self._proven(offsets, decoded, missing)
        decoded, order = proven.decoded, proven.order
        self._suspect_settings |= decoded.suspect_settings
        course, limit, found, positions = self._limit(offsets, decoded, order)
        files = order.lifted(course)
        refused = refused_records(decoded, self._not_inserts, self._images.fit, limit)
        known = self._known
        again = sent_again_records(order.parts, files, limit, known.emptied, known.epochs)
        if again:
            self._counts["late"] += len(again.difference(decoded.fences.rows.tolist()))
        kept = tuple(insert_only.accepted_changes(found, limit, {*refused, *again}))
        changes = tuple(table for _, table in kept)
        fences, at = counted(decoded.fences, files[-1], limit, self._policy, without=again)
        if self._not_inserts is None:
            self._note_fences(fences, at, offsets, order)
        if changes:
            self._note_format(decoded)
        dead_letters = new_dead_letters(proven, refused, limit)
        if dead_letters and self._known.ordering in (None, Ordering.BINLOG):
            path = (course, missing, self._partition)
            dead_letters = with_places(dead_letters, offsets, proven, *path, waiting=self._waiting)
        self._waiting = self._waiting.with_applied(self._returned)
        lossy, lowest = self._update_snapshot(proven, files, limit, len(dead_letters))
        self._count(changes, dead_letters, decoded.ignored, ignored_before(proven, limit))
        end = int(offsets[limit]) if limit < len(offsets) else int(offsets[-1]) + 1
        met_until = course.state.met_until if course.state.met_until > end else 0
        highest = positions.highest(limit)
        applied = order.rows[: int(np.searchsorted(order.rows, limit))]
        state = course.state.before_missing() if missing.behind(applied, limit) else course.state
        newest = newest_moment(order, course, limit, self._state)
        state = replace(state, next_offset=Offset(end), met_until=met_until, lossy=lossy)
        self._state = replace(state, highest=highest, newest_us=newest)
        kept += row_ends(fences, at, self._images.schema, shard=self._shard)
        rows, changes = (tuple(part[at] for part in kept) for at in (0, 1))
        return IntakeResult(changes, dead_letters, rows, lowest, again)

    def report(self) -> PartitionReport:
        """Return the state of the partition."""
        return PartitionReport(
            partition=self._partition,
            state=self._state,
            stopped=self.stopped,
            parked=self._parked,
            new_schemas=tuple(self._images.new_schemas),
            counts=dict(self._counts),
            source_ts_ms=self._source_ts_ms,
            format=self._met.format,
            ordering=self._met.ordering,
            opening=self._opening,
            entered=dict(self._entered),
            lowest=self._lowest,
            fence=self._fence,
            truncations=self._truncations,
            snapshot=self._snapshot,
            observed_columns=dict(self._images.observed_columns),
            first_schema=self._images.first_schema,
            suspect_settings=self._suspect_settings,
            late=self._late,
            returned=self._waiting.applied,
        )

    def _note_fences(self, found: Fences, file: Integers, at: Integers, order: RecordOrder) -> None:
        """Note the fence, and TRUNCATEs that are read first; `at` are the records' offsets."""
        self._fence = max(self._fence, fence_of(found, file))
        if not self._images.schema.keeps_versions:
            self._truncations += read_first(found, file, at, order, self._state)

    def _note_format(self, decoded: Decoded) -> None:
        """Note the format and the ordering of the changes, which those of later records must
        have.
        """
        first = min(decoded.blocks, key=lambda block: int(block.rows[0]))
        self._met = replace(self._met, format=decoded.format, ordering=first.ordering)
        self._known = replace(self._known, format=self._met.format, ordering=self._met.ordering)

    def _limit(
        self, offsets: Integers, decoded: Decoded, order: RecordOrder
    ) -> tuple[EpochPath, RecordIndex, Found, SharedPositions]:
        """Return the changes' path through the epochs; the first record that can't be applied, or
        else the number of records; and the changes with their positions, some of which may come
        after that record.
        """
        course = self._follow(order.positions, decoded.blocks)
        limit = RecordIndex(len(offsets))
        stops: list[PartitionStop] = []
        if course.end < len(order.positions):
            limit = RecordIndex(int(order.rows[course.end]))
            code = None if course.opening else ParkCode.POSITIONS_FELL_BACK
            stops.append(PartitionStop(limit, code, course.detail))
        # If both stop at one record, the schema's reason counts: it says more than a position's.
        files = order.lifted(course)
        self._images.take_first_schema(decoded.blocks, files, limit)
        columns = self._images.column_stops(decoded.blocks, files, limit)
        blocks = in_epochs(at_positions(decoded.blocks, files), files)
        found = self._images.changes(blocks, files, limit)
        positions = SharedPositions.of(found, self._state.highest, self._images.schema.version)
        stops = [
            *self._schema_stops(decoded, files, limit),
            *columns,
            *repeated_number(order, course, self._state),
            *shared_position(decoded, positions),
            *stops,
        ]
        first = min(stops, key=lambda stop: stop.record, default=None)
        if first is not None:
            self._stop(offsets, first)
            if first is stops[-1] and course.opening:
                self._opening = course.opening
            elif first.record < limit:
                before = int(np.searchsorted(order.rows, first.record))
                course = self._follow(order.positions.between(0, before), decoded.blocks)
            limit = first.record
        self._counts["repeated"] += course.repetitions
        self._entered |= course.entered
        self._epochs = entered_epochs(self._epochs, self._partition, course.entered)
        return course, limit, found, positions

    def _follow(self, positions: ChangePositions, blocks: Sequence[ImageBlock]) -> EpochPath:
        if not self._has_binlog_positions(blocks):
            start, met = self._state.position, self._state.met
            check = accept_repetitions(positions.file, positions.offset, start, met)
            state = replace(self._state, position=check.high)
            one_epoch = np.zeros(len(positions), np.int64)
            return EpochPath(one_epoch, len(positions), state, repetitions=check.repetitions)
        if not self._waiting:
            return follow(positions, self._partition, self._state, self._epochs)
        path = follow_returned(positions, self._partition, self._state, self._epochs, self._waiting)
        self._returned = path.applied
        return path.course

    def _has_binlog_positions(self, blocks: Sequence[ImageBlock]) -> bool:
        known = self._known.ordering or Ordering.BINLOG
        return Ordering.BINLOG in ({block.ordering for block in blocks} or {known})

    def _proven(
        self, offsets: Integers, decoded: Decoded, missing: MissingRecords
    ) -> ProvenRecords:
        if not self._has_binlog_positions(decoded.blocks):
            self._waiting = Waiting()
        at, state, epochs = self._partition, self._state, self._epochs
        known = (at, state, epochs)
        found = ProvenRecords.of(offsets, decoded, missing, *known, waiting=self._waiting)
        self._counts["repeated"] += len(found.repeated)
        return found

    def _schema_stops(
        self, decoded: Decoded, files: Sequence[Integers], limit: RecordIndex
    ) -> Iterator[PartitionStop]:
        """Yield the records before `limit` that can't be applied because of their format, key or
        schema.
        """
        yield from (
            PartitionStop(RecordIndex(halt.row), halt.code, halt.detail) for halt in decoded.stops
        )
        yield from mixed_kinds(self._known, decoded)
        for row, why in insert_only.parking_others(
            self._not_inserts, decoded.blocks, decoded.fences.rows
        ):
            yield PartitionStop(row, ParkCode.NOT_AN_INSERT, why)
        for row in further_snapshots(decoded.blocks, files, self._state.position):
            yield PartitionStop(row, ParkCode.NOT_AN_INSERT, ADVICE)
        for row, code, why in parking_truncations(decoded.fences, self._policy):
            yield PartitionStop(row, code, why)
        yield from self._images.stops(decoded.blocks, files, limit)

    def _update_snapshot(
        self, proven: ProvenRecords, files: Sequence[Integers], limit: RecordIndex, lost: int
    ) -> tuple[bool, Position | None]:
        """Record the snapshot that rows belong to; return whether the partition is lossy now, and
        the lowest position above the one before that is read for the first time.
        """
        order, new = proven.order, slice(proven.first, None)
        count = int(np.searchsorted(order.rows, limit))
        file = np.concatenate(files)[order.order][:count]
        offset = order.positions.offset[:count]
        lowest = lowest_above(file[new], offset[new], proven.state.position)
        self._lowest = self._lowest or lowest
        mark = order.marks()[:count]
        lossy = is_lossy(self._state.lossy, lost, mark)
        # In an insert-only table rows that are read again keep the position of the first time.
        whole = self._known.whole_snapshots and self._not_inserts is None
        if not whole or not mark.any():
            return lossy, lowest
        # Records that are read again were recorded the first time.
        mark = np.where(order.positions.record[:count] < self._state.met_until, 0, mark)
        before = replace(self._state, lossy=self._state.lossy or lossy)
        met = snapshot_met(file, offset, mark, before)
        if met is not None:
            self._snapshot = met if self._snapshot is None else self._snapshot.then(met)
        return lossy, lowest

    def _count(
        self,
        changes: Sequence[pa.Table],
        dead_letters: Sequence[NewDeadLetter],
        ignored: Mapping[str, int],
        left: int,
    ) -> None:
        for table in changes:
            for op, count in zip(*np.unique(table[OP].to_numpy(), return_counts=True), strict=True):
                self._counts[Op(op).name.lower()] += int(count)
            newest = pc.max(table[SOURCE_TS]).cast(pa.int64()).as_py()
            if newest is not None:
                self._source_ts_ms = max(newest // 1000, self._source_ts_ms or 0)
        for letter in dead_letters:
            self._counts[f"dead:{letter.reason}"] += 1
        # Records after the stop were decoded, too: those that were ignored are read again later.
        for reason, count in ignored.items():
            self._counts[f"ignored:{reason}"] += min(count, left)
            left -= min(count, left)

    def _stop(self, offsets: Integers, stop: PartitionStop) -> None:
        self.stopped = True
        self._parked = None
        if stop.code is not None:
            offset = Offset(int(offsets[stop.record]))
            self._parked = ParkReason(stop.code, stop.detail, self._topic, self._partition, offset)
