"""Simulates a driver of one table in one process: it does what the service does, without Spark,
Kafka and threads.

    topic = SimulatedTopic("shop.shop.orders", partitions=2)
    topic.append(0, shop.step(100))
    driver = SimulatedDriver(LocalStore("lake"), topic, FixedClock(), SeededEntropy(1))
    driver.batch()
    driver.compact()

The tasks and decisions are the service's own code, called one after the other. Between any two
calls a test may let the driver die (drop it and make another), let it stall (keep a planned
compaction and commit it later), or start a second driver with a higher generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from lakesplice.formats.events import DeclaredType, TypeHistory
from lakesplice.model.choices import NotInserts
from lakesplice.model.moments import EpochUs
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.model.parking import NO_LIMIT, DeadLetterLimit
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.rows.index_merge import RUNS_MAX, plan_merge
from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import RecordOrigin
from lakesplice.planning.shape.shaping import Shape, shard_of
from lakesplice.planning.sources.dropped_tables import DropHistory
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.planning.upkeep.compaction import tasks, work
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge
from lakesplice.spark.jobs.batch_plan import BatchPlan, TaskError, TopicPlan, TopicResult, gather
from lakesplice.spark.jobs.decode_stage import decode_records
from lakesplice.spark.jobs.write_stage import read_answers, write_ranges
from lakesplice.storage.stores import open_sink
from lakesplice.table.files.index_runs import RunCache, write_merged
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.ingest.append import AppendPlan
from lakesplice.table.ingest.batch_commit import CommitOutcome, commit_contribution
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.dropped_tables import DropResult, handle_drops
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Cluster, FileMerge, IndexMerge, Purge, Splice
from lakesplice.table.protocol.ports import Clock, Entropy, SchemaSource, Store
from lakesplice.table.upkeep.clustering.clustering import Clustering
from lakesplice.table.upkeep.compact import compact_files, splice_of
from lakesplice.table.upkeep.file_merge import file_merge, merge_base_files
from lakesplice.table.upkeep.purge import PurgeRules, purge
from lakesplice.testing.simulated_topic import SimulatedTopic as SimulatedTopic

# Each round except the last extends a schema.
_ROUNDS_MAX = 20
_SMALL_FILES = ClusterPolicy(file_bytes=4096)

BatchEnd: TypeAlias = CommitOutcome | Conflict | TaskError
"""How a batch ended: a conflict's and a failed task's are values, as in the service."""


class BatchFailed(AssertionError):
    """A batch that a test takes for granted wasn't committed: why not, with a task's trace."""

    def __init__(self, outcome: Conflict | TaskError) -> None:
        super().__init__(f"the batch wasn't committed: {outcome}")
        self.outcome = outcome


class SimulatedDriver:
    """Drives the table of one topic; a new driver continues from the table's state in the store.

    `ranges` is the number of key-hash ranges into which a batch's changes are divided; `read_tasks`
    is the number of tasks that read partitions; `not_inserts` is the policy of an insert-only
    table, `keeps_versions` makes it a history table; `history` has the types that the source
    described, and may be replaced. `beside` drives the same table for another topic; both then
    have a `shape` that distinguishes their rows. `held` is the table itself if it is a shadow.
    As in the service, errors in a task are values: `attempt` returns them, `batch` raises.
    """

    def __init__(
        self,
        lake: Store,
        topic: SimulatedTopic,
        clock: Clock,
        entropy: Entropy,
        *,
        generation: int = 1,
        ranges: int = 1,
        read_tasks: int = 1,
        declared: Mapping[str, DeclaredType] | None = None,
        not_inserts: NotInserts | None = None,
        keeps_versions: bool = False,
        schemas: SchemaSource | None = None,
        key: tuple[str, ...] = (),
        policy: SchemaPolicy = DEFAULT_POLICY,
        shape: Shape | None = None,
        history: TypeHistory | None = None,
        beside: SimulatedDriver | None = None,
        limit: DeadLetterLimit = NO_LIMIT,
        held: DriverTable | None = None,
    ) -> None:
        self._origin = TableName.from_topic(topic.name)
        self.name: TableName = self._origin if beside is None else beside.name
        self._lake = lake
        self._topic = topic
        self._entropy = entropy
        self._ranges = ranges
        self._read_tasks = read_tasks
        self._declared = declared
        self._insert_only = not_inserts is not None or keeps_versions
        self._not_inserts = not_inserts
        self._keeps_versions = keeps_versions
        self._schemas = schemas
        self._key = key
        self._policy = policy
        self._shape = shape
        self._limit = limit
        self.history = history
        self._runs = RunCache()
        partitions = {number: PartitionState(Offset(0)) for number in topic.ends}
        shard = shard_of(shape, RecordOrigin(topic.name, self._origin))
        source = SourceState(topic.name, topic.topic_id, partitions, shard=shard)
        store = lake.within(self.name.path)
        other = None if beside is None else beside.table
        self.table: DriverTable = held or DriverTable(
            store, source, generation, clock, entropy, beside=other
        )

    def batch(self, ends: Offsets | None = None, starts: Offsets | None = None) -> CommitOutcome:
        """Run one batch as `attempt` does, and raise `BatchFailed` if it isn't committed."""
        outcome = self.attempt(ends, starts)
        if not isinstance(outcome, CommitOutcome):
            raise BatchFailed(outcome)
        return outcome

    def attempt(self, ends: Offsets | None = None, starts: Offsets | None = None) -> BatchEnd:
        """Run one batch from the table's offsets up to `ends`, by default the topic's ends, for a
        caller that expects a conflict or a failed task, and so looks at what it returns.

        With other `starts` the batch is that of a query that continues from other offsets than the
        table's.
        """
        ends = self._topic.ends if ends is None else ends
        starts = self.table.next_offsets(ends) if starts is None else starts
        for _ in range(_ROUNDS_MAX):
            outcome = self.run_tasks(starts, ends)()
            if outcome is not CommitOutcome.AGAIN:
                return outcome
        raise AssertionError(f"the batch still must run again after {_ROUNDS_MAX} rounds")

    def ends_after(self, percent: int) -> Offsets:
        """Return where a batch ends that has this share of each partition's unread records."""
        here, ends = self.table.next_offsets(self._topic.ends), self._topic.ends
        return {
            at: Offset(here[at] + (end - here[at]) * percent // 100) for at, end in ends.items()
        }

    def ends_near(self, *wanted: int) -> Offsets:
        """Return the ends of a batch nearest to offsets that are wanted for partitions 0, 1, …: no
        partition goes back, and none goes beyond its end.
        """
        here, ends = self.table.next_offsets(self._topic.ends), self._topic.ends
        return {
            at: Offset(min(max(offset, here[at]), ends[at])) for at, offset in enumerate(wanted)
        }

    def drops(self, history: DropHistory) -> DropResult | None:
        """Apply the source's DROPs, as the service does between batches."""
        return handle_drops(
            self.table, history, self._policy, insert_only=self._not_inserts is not None
        )

    def run_tasks(self, starts: Offsets, ends: Offsets) -> Callable[[], BatchEnd]:
        """Run the tasks of a batch, and return the function that commits it."""
        planned_on = self.table.version
        result = self.answer(starts, ends)

        def settled() -> BatchEnd:
            if result.errors:
                return result.errors[0]
            contribution = result.contribution(planned_on, starts, ends)
            return commit_contribution(self.table, contribution, self._policy, self._limit)

        return settled

    def compact(self, paths: Sequence[str] | None = None) -> Committed | Conflict | None:
        """Compact the files with waiting changes, or some files; None if nothing waits."""
        intent = self.plan_compaction(paths)
        return None if intent is None else self.table.commit(intent)

    def plan_compaction(
        self, paths: Sequence[str] | None = None, *, tasks_max: int = 2
    ) -> Splice | None:
        """Rewrite the files with waiting changes, or some of them; return the intent to commit."""
        planned_on, manifest = self.table.version, self.table.manifest
        files = work(manifest)
        shares = tasks(files, 1, tasks_max) if paths is None else (tuple(paths),)
        if not files:
            return None
        store, rewriter = self.table.store, best_rewriter(open_sink)
        parts = [compact_files(store, manifest, share, rewriter, self._entropy) for share in shares]
        return splice_of(self.table.generation, planned_on, parts)

    def merge_runs(self, runs_max: int = RUNS_MAX) -> Committed | Conflict | None:
        """Merge runs of the index if there are `runs_max` of them; None if there are fewer."""
        intent = self.plan_run_merge(runs_max)
        return None if intent is None else self.table.commit(intent)

    def plan_run_merge(self, runs_max: int = RUNS_MAX) -> IndexMerge | None:
        """Write the run that replaces others, and return the intent to commit."""
        planned_on, runs = self.table.version, self.table.manifest.runs
        places = plan_merge([run.entries for run in runs], runs_max)
        if places is None:
            return None
        inputs = runs[places.start : places.stop]
        output = write_merged(self.table.store, inputs, RunCache(), self._entropy)
        paths = tuple(run.file.path for run in inputs)
        return IndexMerge(self.table.generation, paths, output, planned_on)

    def merge_files(self, files_max: int = 16) -> Committed | Conflict | None:
        """Merge small base files if there are `files_max` of them; None if there are fewer."""
        intent = self.plan_file_merge(files_max)
        return None if intent is None else self.table.commit(intent)

    def plan_file_merge(self, files_max: int = 16) -> FileMerge | None:
        """Write the file that replaces others, and return the intent to commit."""
        planned_on, manifest = self.table.version, self.table.manifest
        policy = FileMergePolicy(files_max=files_max)
        chosen = plan_file_merge(manifest.files.values(), policy)
        if chosen is None:
            return None
        paths = [file.path for file in chosen]
        inputs, output = merge_base_files(self.table.store, manifest, paths, self._entropy)
        return file_merge(self.table.generation, planned_on, inputs, output, manifest)

    def purge(self, before_us: int) -> Committed | Conflict | None:
        """Purge rows that were deleted before a moment of the source's clock; None if there are
        none.
        """
        intent = self.plan_purge(before_us)
        return None if intent is None else self.table.commit(intent)

    def plan_purge(self, before_us: int) -> Purge | None:
        """Write files without the rows that may be purged, and return the intent to commit."""
        table, rules = self.table, PurgeRules(EpochUs(before_us))
        planned_on, manifest = table.version, table.manifest
        return purge(table.store, manifest, rules, planned_on, table.generation, self._entropy)

    def cluster(self, by: Sequence[str], *, whole: bool = False) -> Committed | Conflict | None:
        """Lay some files out by columns; None if there are no new ones."""
        intent = self.plan_clustering(by, whole=whole)
        return None if intent is None else self.table.commit(intent)

    def plan_clustering(self, by: Sequence[str], *, whole: bool = False) -> Cluster | None:
        """Write files with rows in another order, and return the intent to commit."""
        table = self.table
        if table.snapshot is None:
            return None
        return self.clustering(by, whole=whole).plan(table.snapshot, table.generation)

    def clustering(self, by: Sequence[str], *, whole: bool = False) -> Clustering:
        """Return what lays the table out by columns, in small files."""
        return Clustering(self.table.store, by, self._entropy, whole=whole, policy=_SMALL_FILES)

    def answer(self, starts: Offsets, ends: Offsets) -> TopicResult:
        """Run the tasks of a batch and return their answers, without a commit."""
        results = run_plan(self._plan(ends), self._topic.read(starts, ends), self._runs)
        return results.get(self._topic.name, TopicResult(self._topic.name))

    def _plan(self, ends: Offsets) -> BatchPlan:
        topic = TopicPlan(
            topic=self._topic.name,
            table=self.name,
            partitions=self.table.states(ends),
            append=AppendPlan.of(
                self.table.manifest, self._topic.name, insert_only=self._insert_only
            ),
            targets=tuple(range(self._ranges)),
            reading=RecordReading(
                table=self._origin,
                declared=self._declared,
                key=self._key,
                history=self.history,
                shape=self._shape,
                not_inserts=self._not_inserts,
                keeps_versions=self._keeps_versions,
                policy=self._policy,
            ),
            known=self.table.known(ends),
        )
        topics, tasks = (topic,), self._read_tasks
        return BatchPlan(self._lake, self._entropy, topics, self._ranges, tasks, self._schemas)


def run_plan(
    plan: BatchPlan, records: Sequence[pa.RecordBatch], runs: RunCache
) -> dict[str, TopicResult]:
    """Run a batch's tasks one after the other, and return their answers per topic, as the job does.

    `records` are those of the plan's topics, as `SimulatedTopic.read` returns them.
    """
    rows = [
        row
        for task in range(plan.read_tasks)
        for row in decode_records(plan, records[task :: plan.read_tasks])
    ]
    written = (write_ranges(plan, _shuffled(rows, target), runs) for target in range(plan.targets))
    return gather(read_answers(batch for batches in written for batch in batches))


def _shuffled(rows: Sequence[pa.RecordBatch], target: int) -> list[pa.RecordBatch]:
    """Return the first stage's rows for one target, as a task of the second stage receives them."""
    ours = [row for row in rows if row["target"][0].as_py() == target]
    return sorted(ours, key=lambda row: (row["topic"][0].as_py(), row["range"][0].as_py()))
