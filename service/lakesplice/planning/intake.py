"""Intake: what one topic partition brings to its table in a batch, and where it has to stop.

Records are taken in offset order. The first one that its table can't go on with (no usable key, a
type nobody declared, a schema that doesn't fit, a position that falls back unexplained) stops the
partition: everything before it is applied, nothing from it on. A schema that only adds columns
stops it too, until the table has them and the batch is taken again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakesplice.model.change import Op
from lakesplice.model.formats import FormatName
from lakesplice.model.manifest import ParkCode, ParkReason, PartitionState
from lakesplice.model.names import OP, SOURCE_TS
from lakesplice.model.position import BEFORE_ALL, Ordering, Position
from lakesplice.model.schema import SourceSchema, TableSchema
from lakesplice.planning.evolution import Fits, SchemaFit, Unfit, fit, went_back
from lakesplice.planning.images import Images, to_changes
from lakesplice.planning.order import accept_repetitions, check_order

Integers = npt.NDArray[np.int64]

_ANEW = "reset the table to take it anew from the topic"


class Block(Images, Protocol):
    """Decoded records of one source schema, in offset order."""

    @property
    def schema(self) -> SourceSchema:
        """The schema of the row images."""
        ...

    @property
    def rows(self) -> Integers:
        """Indexes among the records, ascending."""
        ...

    @property
    def gtid(self) -> pa.Array:
        """The transaction of each record, null where the source has none."""
        ...

    @property
    def ordering(self) -> Ordering:
        """What the positions are."""
        ...


class Refused(Protocol):
    """Records that became dead letters: their indexes, ascending, and per record why."""

    @property
    def rows(self) -> Integers:
        """Indexes among the records, ascending."""
        ...

    @property
    def reason(self) -> Sequence[str]:
        """Per record the short code."""
        ...

    @property
    def detail(self) -> Sequence[str]:
        """What is wrong, in words."""
        ...


class Halt(Protocol):
    """A record that its table can't go on with."""

    @property
    def row(self) -> int:
        """Its index among the records."""
        ...

    @property
    def code(self) -> ParkCode:
        """Why the table has to park."""
        ...

    @property
    def detail(self) -> str:
        """What is wrong, in words."""
        ...


class Decoded(Protocol):
    """What a source format made of consecutive records of one partition."""

    @property
    def blocks(self) -> Sequence[Block]:
        """Changes, per source schema."""
        ...

    @property
    def dead(self) -> Refused:
        """Records that could not be decoded."""
        ...

    @property
    def stops(self) -> Sequence[Halt]:
        """Records that their table can't go on with."""
        ...

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many records carried no change, by reason."""
        ...

    @property
    def format(self) -> FormatName | None:
        """What the records were read as; None where nothing told it."""
        ...


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter's record index and why it became one."""

    row: int
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Taken:
    """What some records came to: changes in the table's layout, and dead letters."""

    changes: tuple[pa.Table, ...]
    letters: tuple[Letter, ...]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is known of a topic: what its table's changes were written in and ordered by, None if it
    has none yet, and its number of partitions.
    """

    format: FormatName | None = None
    ordering: Ordering | None = None
    partitions: int = 1


@dataclass(frozen=True)
class PartitionReport:
    """Where a partition stands after its part of a batch.

    `state.next_offset` is the offset of the record it stopped at, or one after its last record.
    `sightings` are schemas that the table has not (yet), each with a position where it was met.
    `counts` has changes by operation under `create`, `update`, `delete` and `read`, what was passed
    over under `ignored:<reason>`, dead letters under `dead:<reason>`, and changes that repeat
    earlier ones under `repeated`. `source_ts_ms` is the newest source time met, or None. `format`
    and `ordering` are those of its changes, None if it brought none.
    """

    partition: int
    state: PartitionState
    stopped: bool
    parked: ParkReason | None
    sightings: tuple[tuple[Position, SourceSchema], ...]
    counts: Mapping[str, int]
    source_ts_ms: int | None
    format: FormatName | None = None
    ordering: Ordering | None = None


class PartitionIntake:
    """Takes one partition's records, in offset order; not thread-safe."""

    def __init__(
        self,
        topic: str,
        partition: int,
        schema: TableSchema,
        state: PartitionState,
        facts: TopicFacts = TopicFacts(),
    ) -> None:
        self._facts = _with_ordering(facts, state)
        self._topic = topic
        self._partition = partition
        self._schema = schema
        self._state = state
        self._fits: dict[SourceSchema, SchemaFit] = {}
        self._parked: ParkReason | None = None
        self._sightings: list[tuple[Position, SourceSchema]] = []
        self._counts: Counter[str] = Counter()
        self._source_ts_ms: int | None = None
        self._met = TopicFacts()
        self.stopped = False

    def take(self, offsets: Integers, decoded: Decoded) -> Taken:
        """Take the next records, whose offsets are given; after a stop there must be no further
        call.
        """
        limit = self._schema_limit(offsets, decoded)
        limit = self._order_limit(offsets, decoded, limit)
        changes = tuple(self._changes(decoded.blocks, limit))
        if changes:
            first = min(decoded.blocks, key=lambda block: int(block.rows[0]))
            self._met = replace(self._met, format=decoded.format, ordering=first.ordering)
            self._facts = replace(self._facts, format=self._met.format, ordering=self._met.ordering)
        dead = decoded.dead
        count = int(np.searchsorted(dead.rows, limit))
        letters = tuple(
            Letter(int(row), reason, detail)
            for row, reason, detail in zip(
                dead.rows[:count], dead.reason, dead.detail, strict=False
            )
        )
        records = _records_in(decoded.blocks, limit)
        self._count(changes, letters, decoded.ignored, limit - records - len(letters))
        end = int(offsets[limit]) if limit < len(offsets) else int(offsets[-1]) + 1
        self._state = replace(self._state, next_offset=end)
        return Taken(changes, letters)

    def report(self) -> PartitionReport:
        """Return where the partition stands."""
        return PartitionReport(
            self._partition,
            self._state,
            self.stopped,
            self._parked,
            tuple(self._sightings),
            dict(self._counts),
            self._source_ts_ms,
            self._met.format,
            self._met.ordering,
        )

    def _schema_limit(self, offsets: Integers, decoded: Decoded) -> int:
        """Return the first record that can't be applied for what it is, or their number."""
        stops = [_Stop(halt.row, halt.code, halt.detail) for halt in decoded.stops]
        stops += _mixed(self._facts, decoded)
        for block in decoded.blocks:
            verdict = self._fit(block.schema)
            first = int(block.rows[0])
            if isinstance(verdict, Fits):
                late = _first_from(block, verdict.until)
                if late is not None:
                    unfit = went_back(self._schema, verdict)
                    stops.append(_Stop(int(block.rows[late]), unfit.code, unfit.detail))
                continue
            for at in (0, -1):
                position = Position(int(block.position_file[at]), int(block.position_offset[at]))
                self._sightings.append((position, block.schema))
            unfit_code = verdict.code if isinstance(verdict, Unfit) else None
            detail = verdict.detail if isinstance(verdict, Unfit) else ""
            stops.append(_Stop(first, unfit_code, detail))
        first_stop = min(stops, key=lambda stop: stop.row, default=None)
        if first_stop is None:
            return len(offsets)
        self._stop(offsets, first_stop)
        return first_stop.row

    def _fit(self, image: SourceSchema) -> SchemaFit:
        verdict = self._fits.get(image)
        if verdict is None:
            verdict = self._fits[image] = fit(self._schema, image)
        return verdict

    def _order_limit(self, offsets: Integers, decoded: Decoded, limit: int) -> int:
        """Return the first record that is out of order, or `limit`."""
        blocks = [block for block in decoded.blocks if isinstance(self._fit(block.schema), Fits)]
        if not blocks:
            return limit
        rows = np.concatenate([block.rows for block in blocks])
        order = np.argsort(rows, kind="stable")
        order = order[: int(np.searchsorted(rows[order], limit))]
        rows = rows[order]
        file = np.concatenate([block.position_file for block in blocks])[order]
        offset = np.concatenate([block.position_offset for block in blocks])[order]
        gtid = pa.concat_arrays([block.gtid for block in blocks]).take(pa.array(order))
        start, seen = self._state.position, self._state.gtids
        if all(block.ordering is Ordering.TIDB for block in blocks):
            check = accept_repetitions(file, offset, start, seen)
        else:
            check = check_order(file, offset, gtid, start, seen)
        if check.first_violation is not None:
            limit = int(rows[check.first_violation])
            self._stop(offsets, _Stop(limit, ParkCode.POSITIONS_FELL_BACK, check.detail))
        self._counts["repeated"] += check.repetitions
        self._state = replace(self._state, position=check.high, gtids=check.seen)
        return limit

    def _changes(self, blocks: Sequence[Block], limit: int) -> Iterator[pa.Table]:
        for block in blocks:
            verdict = self._fit(block.schema)
            count = int(np.searchsorted(block.rows, limit))
            if isinstance(verdict, Fits) and count:
                yield to_changes(block, self._schema, verdict.mapping).slice(0, count)

    def _count(
        self,
        changes: Sequence[pa.Table],
        letters: Sequence[Letter],
        ignored: Mapping[str, int],
        left: int,
    ) -> None:
        for table in changes:
            for op, count in zip(*np.unique(table[OP].to_numpy(), return_counts=True), strict=True):
                self._counts[Op(op).name.lower()] += int(count)
            newest = pc.max(table[SOURCE_TS]).cast(pa.int64()).as_py()
            if newest is not None:
                self._source_ts_ms = max(newest // 1000, self._source_ts_ms or 0)
        for letter in letters:
            self._counts[f"dead:{letter.reason}"] += 1
        # Decoding went on to its own end: what it ignored behind the stop is read again later.
        for reason, count in ignored.items():
            self._counts[f"ignored:{reason}"] += min(count, left)
            left -= min(count, left)

    def _stop(self, offsets: Integers, stop: _Stop) -> None:
        self.stopped = True
        self._parked = None
        if stop.code is not None:
            offset = int(offsets[stop.row])
            self._parked = ParkReason(stop.code, stop.detail, self._topic, self._partition, offset)


@dataclass(frozen=True, slots=True)
class _Stop:
    """Where the partition stops; without a code it waits there for the table's schema to grow."""

    row: int
    code: ParkCode | None
    detail: str


def _records_in(blocks: Sequence[Block], limit: int) -> int:
    """Return how many records before `limit` are changes; one may be two, as an update of a key."""
    rows = [block.rows[: int(np.searchsorted(block.rows, limit))] for block in blocks]
    return sum(1 + int(np.count_nonzero(np.diff(part))) for part in rows if len(part))


def _with_ordering(facts: TopicFacts, state: PartitionState) -> TopicFacts:
    """Positions that were met before orderings were recorded are places in a binlog."""
    if facts.ordering is not None or state.position == BEFORE_ALL:
        return facts
    return replace(facts, ordering=Ordering.BINLOG)


def _mixed(facts: TopicFacts, decoded: Decoded) -> list[_Stop]:
    """Return where changes are written or ordered otherwise than those before them, or where the
    records' own order would have to be that of several partitions.
    """
    blocks = sorted(decoded.blocks, key=lambda block: int(block.rows[0]))
    if blocks and facts.format not in (None, decoded.format):
        detail = (
            f"the records are {decoded.format}, the table was filled from {facts.format}; {_ANEW}"
        )
        return [_Stop(int(blocks[0].rows[0]), ParkCode.FORMAT_CHANGED, detail)]
    stops, ordering = [], facts.ordering
    for block in blocks:
        first = int(block.rows[0])
        if ordering not in (None, block.ordering):
            detail = f"the changes are ordered by {block.ordering}, those before by {ordering}"
            stops.append(_Stop(first, ParkCode.ORDER_UNKNOWN, f"{detail}; {_ANEW}"))
        elif block.ordering is Ordering.KAFKA and facts.partitions > 1:
            detail = (
                "the changes carry no position, and the records' own order says nothing across the"
                f" topic's {facts.partitions} partitions; let the source send positions"
                " (docs/formats.md says how), or use a topic of one partition"
            )
            stops.append(_Stop(first, ParkCode.ORDER_UNKNOWN, detail))
        ordering = ordering or block.ordering
    return stops


def _first_from(block: Block, until: Position | None) -> int | None:
    """Return the block's first row at or above `until`, if there is one."""
    if until is None:
        return None
    file, offset = block.position_file, block.position_offset
    late = np.flatnonzero((file > until.file) | ((file == until.file) & (offset >= until.offset)))
    return int(late[0]) if len(late) else None
