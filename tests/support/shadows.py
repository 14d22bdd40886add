"""A small source table that is read in chunks into a shadow while it is written to."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakesplice.formats.events import DecodeContext, decode
from lakesplice.model.choices import NotInserts
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.position import RANK_OTHER, Position
from lakesplice.model.progress.shadow_plan import FilledFrom, KeyBound, ShadowPlan
from lakesplice.model.source_schema import SourceSchema
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows
from lakesplice.planning.intake.snapshot_search import SnapshotSearch, TopicSnapshot
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.ingest.read_rows_commit import commit_chunks
from lakesplice.table.ingest.shadow import (
    SHADOW_PARAMETER,
    begin_shadow,
    read_shadow_plan,
    shadow_table,
    swap_intent,
    swap_into,
    swapped_version,
)
from lakesplice.table.protocol.commit import commit, create
from lakesplice.table.protocol.ports import Clock, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.shadow_store import close_shadow, open_shadows
from lakesplice.table.protocol.snapshot import find_snapshot
from lakesplice.testing.doubles import SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import SMALL, Rows, Source, driver_of, truncate_at
from tests.support.traps import require_excused

SHADOW = "1"
_ROUNDS_MAX = 5
READ_MS = EpochMs(1_772_000_100_000)


class ReadSource(Source):
    """A source whose rows can be read: all that stand in a range of keys, at one position."""

    def truncate(self) -> list[Event]:
        """Delete every row at once; nothing happens to an empty table."""
        events: list[Event] = []
        for key in self.keys:
            events = self.delete(key)[:1]
        for event in events:
            return [truncate_at(event)]
        return []

    def present(self) -> Rows:
        """The rows as they stand, by key."""
        rows = self.database.truth(SMALL.name).to_pylist()
        return sorted(rows, key=lambda found: found["id"])

    def place(self) -> Position:
        """The end of the binlog: above each change by now and below each later one."""
        moment = self.database._binlog.snapshot()
        return Position.of(0, int(moment.file.partition(".")[2]), moment.pos + 100, 0, RANK_OTHER)

    def read(self, low: int | None, high: int | None) -> ReadRows:
        """Read the rows whose keys are above `low` and not above `high`."""
        events = self.database.snapshot()
        records = pa.RecordBatch.from_pydict(
            {
                "offset": pa.array(range(len(events)), pa.int64()),
                "timestamp": pa.array([0] * len(events), pa.int64()),
                "key": pa.array([event.key for event in events], pa.binary()),
                "value": pa.array([event.value for event in events], pa.binary()),
            }
        )
        blocks = decode(records, DecodeContext(TableName("shop", "goods"))).blocks
        if not blocks:
            return ReadRows(SourceSchema((), ("id",)), pa.table({}), self.place(), READ_MS)
        (block,) = blocks
        ids = block.after.column("id").to_pylist()
        inside = [(low is None or low < at) and (high is None or at <= high) for at in ids]
        return ReadRows(block.schema, block.after.filter(pa.array(inside)), self.place(), READ_MS)


def newest_snapshot(source: ReadSource, together: int = 100) -> TopicSnapshot | None:
    """The newest snapshot in a source's topic, of which so many records are read at once."""
    topic, search = source.topic, SnapshotSearch()
    search.expect(topic.starts)
    for at, first in topic.starts.items():
        for start in range(first, topic.ends[at], together):
            events = topic.events(at, start)[:together]
            records = pa.RecordBatch.from_pydict(
                {
                    "offset": pa.array(range(start, start + len(events)), pa.int64()),
                    "timestamp": pa.array([0] * len(events), pa.int64()),
                    "key": pa.array([event.key for event in events], pa.binary()),
                    "value": pa.array([event.value for event in events], pa.binary()),
                }
            )
            decoded = decode(records, DecodeContext(TableName("shop", "goods")))
            search.take(at, records.column("offset").to_numpy(), decoded)
    return search.newest()


class Filling:
    """A table's shadow and who fills it; a new one continues where the store has it."""

    def __init__(
        self,
        source: ReadSource,
        lake: Store,
        clock: Clock,
        seed: int,
        policy: SchemaPolicy = DEFAULT_POLICY,
        bounds: Sequence[int] = (1, 3),
        shadow: str = SHADOW,
        shape: Shape | None = None,
        not_inserts: NotInserts | None = None,
        filled_from: FilledFrom = FilledFrom.DATABASE,
        parts: Sequence[KeyBound] = (),
        start: Position | None = None,
    ) -> None:
        self.source, self.clock, self.shadow = source, clock, shadow
        self.entropy = SeededEntropy(seed)
        name = TableName.from_topic(source.topic.name)
        self.store = lake.within(name.path)
        self.reading = RecordReading(
            table=name, policy=policy, shape=shape, not_inserts=not_inserts
        )
        self.plan = self._open(
            filled_from,
            [(str(bound),) for bound in bounds] if filled_from is FilledFrom.DATABASE else [*parts],
            start or source.place(),
        )
        table = shadow_table(self.store, self.plan, clock, self.entropy)
        self.driver: SimulatedDriver = driver_of(
            source,
            lake,
            seed=seed + 1000,
            clock=clock,
            policy=policy,
            held=table,
            shape=shape,
            not_inserts=not_inserts,
        )
        self.runs = RunCache()

    def _open(
        self, filled_from: FilledFrom, bounds: Sequence[KeyBound], start: Position
    ) -> ShadowPlan:
        if self.shadow in open_shadows(self.store):
            return read_shadow_plan(self.store, self.shadow)
        topic, ends = self.source.topic, self.source.topic.ends
        if filled_from is FilledFrom.SNAPSHOT:
            found = newest_snapshot(self.source)
            assert found is not None
            start, ends = found.position, dict(found.starts)
        elif filled_from is not FilledFrom.DATABASE:
            ends = dict.fromkeys(ends, Offset(0))
        plan = ShadowPlan(
            shadow=self.shadow,
            topic=topic.name,
            topic_id=topic.topic_id,
            server="server-1",
            database="shop",
            table="goods",
            start=start,
            created_ms=self.clock.now_ms(),
            ends=ends,
            bounds=tuple(bounds),
            filled_from=filled_from,
        )
        begin_shadow(self.store, plan)
        return plan

    def read(self, chunk: int) -> ReadRows:
        """Read a chunk as it is now."""
        low, high = self.plan.range_of(chunk)
        return self.source.read(
            None if low is None else int(low[0]), None if high is None else int(high[0])
        )

    def commit(self, chunk: int, read: ReadRows) -> None:
        """Add a chunk that was read to the shadow, unless it has it."""
        chunks = {chunk: [read]}
        refused = commit_chunks(self.driver.table, chunks, self.reading, self.entropy, self.runs)
        assert refused is None, refused

    def fill(self) -> None:
        """Read what is open, and feed the shadow with all there is."""
        backfill = self.driver.table.manifest.backfill
        assert backfill is not None
        for chunk in backfill.open_chunks():
            self.commit(chunk, self.read(chunk))
        self.feed()

    def feed(self, ends: Offsets | None = None) -> None:
        """Feed the shadow up to some offsets, by default with all there is, though others may
        commit first, and the store may fail.
        """
        for _ in range(_ROUNDS_MAX):
            ended = require_excused(self.driver.attempt(ends))
            if ended is CommitOutcome.DONE:
                return
        raise AssertionError(f"it fails again and again: {ended}")

    def swap(self, generation: int = 1) -> None:
        """Let the shadow become the table, unless it has; then it is there no more."""
        shadow, live = self.driver.table.snapshot, find_snapshot(self.store)
        assert shadow is not None
        clock, entropy = self.clock, self.entropy
        if live is None:
            intent = swap_intent(self.store, shadow, generation, None)
            parameters = {SHADOW_PARAMETER: self.shadow}
            create(self.store, intent, clock=clock, entropy=entropy, parameters=parameters)
        elif swapped_version(self.store, self.plan) is None:
            swap_into(
                self.store,
                shadow,
                generation,
                live,
                lambda one: commit(
                    self.store,
                    live,
                    one,
                    clock=clock,
                    entropy=entropy,
                    parameters={SHADOW_PARAMETER: self.shadow},
                ),
                Retries(clock, entropy, 5),
            )
        close_shadow(self.store, self.shadow)


def filled(source: ReadSource, lake: LocalStore, clock: Clock, seed: int = 77) -> Filling:
    """Fill a shadow to its end and let it become the table."""
    filling = Filling(source, lake, clock, seed)
    filling.fill()
    filling.swap()
    return filling
