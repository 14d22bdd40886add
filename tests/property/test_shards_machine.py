"""Shards in one table, with servers whose positions start at the same numbers: whatever happens to
one shard changes no row of another.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakesplice.errors import FencedError, StorageError
from lakesplice.model.offsets import Offset
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Intent
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import Crash, FaultyStore
from lakesplice.testing.oracle import position, replay
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.drawing import examples
from tests.support.simulated import SMALL, Rows, Source, memory_folder, row, truncate_at
from tests.support.table_machine.state import FEW, PARTITIONS
from tests.support.traps import CALLS, CRASHES, FAULTS, Trap, require_excused

KEYS = 3
SHARDS = 3
ALL_THAT_IS_DELETED = 1 << 60
SHAPE = Shape(metadata=(("database_name", MetadataContent.DATABASE_NAME),), key=("database_name",))
DROPS = SchemaPolicy(drop_column=Behaviour.EVOLVE, rename_column=Behaviour.LENIENT)
WHICH = st.integers(0, SHARDS - 1)


@dataclass
class Shard:
    """A server with the truth of its rows: what each prefix of its topic comes to."""

    number: int
    source: Source = field(init=False)
    driver: SimulatedDriver = field(init=False)

    had: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.source = Source(server=f"s{self.number}", database=f"shop_{self.number}")
        self.source.topic.topic_id = f"topic-{self.number}"

    @property
    def name(self) -> str:
        return f"shop_{self.number}"

    def images(self, offsets: Mapping[int, int]) -> dict[int, dict[str, Any]]:
        """The newest image of each row, with the columns that it had.

        A truncate that was sent again to the other partition may be read before the deletes that
        it stands for: then it removes the rows.
        """
        topic = self.source.topic
        until = {(topic.name, partition): offset for partition, offset in offsets.items()}
        state = replay(topic.records(), until=until).get(topic.name)
        if state is None:
            return {}
        read = (one for one in topic.records() if one.offset < offsets.get(one.partition, 0))
        truncates = (json.loads(one.value)["payload"] for one in read if one.value and not one.key)
        fence = max((position(one["source"], one["op"]) for one in truncates), default=())
        rows = (row for order, row in state.rows.values() if row is not None and order > fence)
        return {row["id"]: row for row in rows}


class ShardsMachine(RuleBasedStateMachine):
    """Several servers write, their topics are read in any order, and each has its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.lake = LocalStore(tempfile.mkdtemp(dir=memory_folder()))
        self.clock, self.trap, self.generation = FixedClock(), Trap(), 0
        self.shards = [Shard(number) for number in range(SHARDS)]
        self.planned: list[Intent] = []
        self.settling: list[Callable[[], Any]] = []
        self.start()
        self.bare = self.lake.within(self.shards[0].driver.name.path)
        self.version, self.loaded = -1, 0
        self.columns: dict[str, int | None] = {}

    def start(self) -> None:
        """Another driver takes the lake; what the former one was about is gone."""
        self.trap.disarm()
        self.generation += 1
        self.planned, self.settling = [], []
        first: SimulatedDriver | None = None
        for shard in self.shards:
            shard.driver = SimulatedDriver(
                FaultyStore(self.lake, self.trap.faults()),
                shard.source.topic,
                self.clock,
                SeededEntropy(self.generation * SHARDS + shard.number),
                generation=self.generation,
                ranges=2,
                read_tasks=2,
                shape=SHAPE,
                policy=DROPS,
                beside=first,
            )
            first = first or shard.driver

    @property
    def driver(self) -> SimulatedDriver:
        return self.shards[0].driver

    def born(self) -> bool:
        return self.bare.size("_delta_log/00000000000000000000.json") is not None

    # The servers

    @initialize(rows=FEW)
    def read_snapshots(self, rows: int) -> None:
        self.loaded = rows
        for shard in self.shards:
            shard.source.database.load(SMALL.name, [row(key, key) for key in range(rows)])
            shard.source.topic.append(0, shard.source.database.snapshot())

    @rule(
        which=WHICH,
        rows=st.lists(st.tuples(st.integers(0, KEYS - 1), PARTITIONS), min_size=1, max_size=4),
    )
    def put(self, which: int, rows: list[tuple[int, int]]) -> None:
        source = self.shards[which].source
        for key, partition in rows:
            source.topic.append(partition, source.put(key))

    @rule(which=WHICH, at=FEW, partition=PARTITIONS)
    def delete(self, which: int, at: int, partition: int) -> None:
        source = self.shards[which].source
        if keys := source.keys:
            source.topic.append(partition, source.delete(keys[at % len(keys)]))

    @rule(which=WHICH)
    def truncate(self, which: int) -> None:
        """As a TRUNCATE once all of its rows were deleted: the fence takes what is dead already,
        and would take what another shard has below its position.
        """
        source = self.shards[which].source
        told: Event | None = None
        for key in source.keys:
            deleted = source.delete(key)
            source.topic.append(0, deleted)
            told = deleted[0]
        if told is None:
            return
        event = truncate_at(told)
        source.topic.append(0, [event])

    @rule(which=WHICH, count=FEW, partition=PARTITIONS)
    def send_the_last_again(self, which: int, count: int, partition: int) -> None:
        source = self.shards[which].source
        start = max(self.loaded, source.topic.ends[0] - count)
        if start < source.topic.ends[0]:
            source.topic.append(partition, list(source.topic.events(0, start)))

    @rule(which=WHICH, name=st.sampled_from(["one", "two"]), default=st.sampled_from([None, 5]))
    def add_a_column_somewhere(self, which: int, name: str, default: int | None) -> None:
        """Each shard when it comes to it, and in what order it likes, but with one default."""
        shard = self.shards[which]
        if name not in shard.had:
            shard.had.add(name)
            shard.source.add_column(name, self.columns.setdefault(name, default))

    @rule(which=WHICH)
    def drop_a_column_somewhere(self, which: int) -> None:
        """Of those that were added, for good; the other shards have it still, or drop it later."""
        database = self.shards[which].source.database
        there = [column.name for column in database.tables[0].columns[len(SMALL.columns) :]]
        for name in there[:1]:
            database.drop_column(SMALL.name, name)
            self.shards[which].dropped.add(name)

    # The driver

    @rule(which=WHICH, ahead=st.sampled_from([(9, 9), (9, 0), (0, 9)]) | st.tuples(FEW, FEW))
    def run_a_batch(self, which: int, ahead: tuple[int, int]) -> None:
        shard = self.shards[which]
        assert shard.driver.batch(self.ends(shard, ahead)) is CommitOutcome.DONE

    @rule(which=WHICH, ahead=st.tuples(FEW, FEW), calls=CALLS, how=FAULTS | CRASHES)
    def run_a_batch_that_fails(
        self, which: int, ahead: tuple[int, int], calls: int, how: Any
    ) -> None:
        shard = self.shards[which]
        self.trap.arm(calls, how)
        try:
            require_excused(shard.driver.attempt(self.ends(shard, ahead)))
        except Crash:
            self.start()
        except StorageError:
            pass
        finally:
            self.trap.disarm()

    @rule(which=WHICH, ahead=st.tuples(FEW, FEW))
    def run_tasks_of_a_batch(self, which: int, ahead: tuple[int, int]) -> None:
        """Settled later, after what other topics commit."""
        shard = self.shards[which]
        ends = self.ends(shard, ahead)
        self.settling.append(shard.driver.run_tasks(shard.driver.table.next_offsets(ends), ends))

    @precondition(lambda self: self.settling)
    @rule()
    def settle(self) -> None:
        outcome = self.settling.pop(0)()
        assert isinstance(outcome, CommitOutcome | Conflict), outcome

    def ends(self, shard: Shard, ahead: tuple[int, int]) -> dict[int, Offset]:
        here = shard.driver.table.next_offsets((0, 1))
        return {
            at: Offset(min(here[at] + ahead[at], end))
            for at, end in shard.source.topic.ends.items()
        }

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def compact(self) -> None:
        self.driver.compact()

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule(
        what=st.sampled_from(
            ["plan_compaction", "plan_purge", "plan_file_merge", "plan_clustering"]
        )
    )
    def plan(self, what: str) -> None:
        if what == "plan_clustering" and not self.driver.table.manifest.files:
            return  # without rows there may be no columns to lay out by
        arguments: dict[str, list[Any]] = {
            "plan_purge": [ALL_THAT_IS_DELETED],
            "plan_file_merge": [2],
            "plan_clustering": [("n",)],
        }
        intent = getattr(self.driver, what)(*arguments.get(what, []))
        if intent is not None:
            self.planned.append(intent)

    @precondition(lambda self: self.planned)
    @rule(at=FEW)
    def commit_what_was_planned(self, at: int) -> None:
        intent = self.planned.pop(at % len(self.planned))
        try:
            assert isinstance(self.driver.table.commit(intent), Committed | Conflict)
        except FencedError:
            raise AssertionError("there is no other driver") from None

    @rule(runs_max=st.integers(2, 3))
    def merge_the_index(self, runs_max: int) -> None:
        self.driver.merge_runs(runs_max)

    @precondition(lambda self: self.driver.table.snapshot is not None)
    @rule()
    def purge(self) -> None:
        self.driver.purge(ALL_THAT_IS_DELETED)

    @rule()
    def crash(self) -> None:
        self.start()

    @rule()
    def finish(self) -> None:
        """Read and compact all there is: both views are the truth then."""
        for shard in self.shards:
            assert shard.driver.batch() is CommitOutcome.DONE
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        if self.born():
            self.require_true(View.READ_OPTIMISED)

    # What always holds

    @invariant()
    def the_table_is_true(self) -> None:
        if not self.born():
            return
        table = Table(self.bare)
        assert table.snapshot.manifest.parkings == ()
        if table.version != self.version:
            self.version = table.version
            self.require_true(View.REAL_TIME)
            report = check(self.bare, table.snapshot)
            assert report.sound, report
            assert not report.duplicates

    def require_true(self, view: View) -> None:
        table = Table(self.bare)
        names = table.schema.names
        found: dict[str, Rows] = {shard.name: [] for shard in self.shards}
        for one in table.read(view).to_pylist():
            found[one["database_name"]].append(one)
        for shard in self.shards:
            known = table.snapshot.manifest.sources.get(shard.source.topic.name)
            images = shard.images(table.offsets_of(known.topic)) if known else {}
            rows = {one["id"]: one for one in found[shard.name]}
            assert rows.keys() == images.keys()
            for key, image in images.items():
                truth = {n: image.get(n, self.columns.get(n)) for n in names}
                for name in shard.dropped - image.keys():
                    # Its image is from before the column, or from after: both were read at once.
                    if rows[key].get(name) is None and name in names:
                        truth[name] = None
                assert rows[key] == truth | {"database_name": shard.name}

    def teardown(self) -> None:
        try:
            self.start()
            self.finish()
        finally:
            shutil.rmtree(self.lake.root, ignore_errors=True)


TestShards = ShardsMachine.TestCase
TestShards.settings = settings(max_examples=examples(40), stateful_step_count=40, print_blob=True)
