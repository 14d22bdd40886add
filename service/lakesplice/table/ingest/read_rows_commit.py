"""Rows that were read from a source become a table's next version: chunks in a shadow, or single
rows of a table that are repaired.

They are changes like any others: positions decide which of them have an effect. If a shadow's
schema has to grow for its chunks, that is committed first. If keys, the schema or the fence changed
while they were written, they are written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from lakesplice.errors import UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.position import Position
from lakesplice.model.progress.source_state import SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.model.source_schema import SourceField, SourceSchema
from lakesplice.planning.intake.known_topic import known_topic
from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows, RowIntake, highest_of, take_rows
from lakesplice.planning.schema.evolution import plan_evolution
from lakesplice.planning.schema.source_names import columns_at
from lakesplice.planning.sources.shards import unplaced
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.append import Appended, AppendPlan, append
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.moved_row_deletes import with_moved_rows_deleted
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Backfill, Replay
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.snapshot import Snapshot, latest

_NOTHING = Appended((), None, None, {})


@dataclass(frozen=True, slots=True)
class ChunksRefused:
    """The table can't take the rows: `reason` says why, in words."""

    reason: str


def commit_chunks(
    table: DriverTable,
    chunks: Mapping[int, Sequence[ReadRows]],
    reading: RecordReading,
    entropy: Entropy,
    runs: RunCache,
) -> ChunksRefused | None:
    """Add the rows of whole chunks, by number, to a shadow; chunks that it has are passed over.

    `table` is the shadow's. Blocks; errors as `append` and `DriverTable.commit`, and
    `RetryableError` if others were always faster.
    """
    retries = table.retries()
    while True:
        backfill = table.manifest.backfill
        assert backfill is not None, "only a shadow is filled by chunks"
        missing = {n: reads for n, reads in chunks.items() if not backfill.has(n)}
        if not missing:
            return None
        reads = [read for of_chunk in missing.values() for read in of_chunk]
        taken = take_rows(
            reads,
            reading,
            table.source.topic,
            schema=table.schema,
            known=table.known(table.source.partitions),
        )
        if taken.refused:
            return ChunksRefused(taken.refused)
        outcome = _grown(table, taken, reading)
        if outcome is None:
            outcome = table.commit(_intent(table, missing, taken, reading, entropy, runs))
            if isinstance(outcome, Committed):
                return None
        if isinstance(outcome, Conflict):
            retries.require_another(
                "other writers committed first every time; run the command again",
                topic=table.source.topic,
                conflict=outcome.detail,
            )


def _grown(
    table: DriverTable, taken: RowIntake, reading: RecordReading
) -> Committed | Conflict | None:
    """Let the schema grow by what the rows showed; None if it needn't."""
    source = table.source
    schema, _ = plan_evolution(
        table.schema, taken.new_schemas, reading.policy, source.own_presences
    )
    schema = unplaced(schema, table.schema, source.shard)
    return None if schema == table.schema else table.evolve(schema)


def _intent(
    table: DriverTable,
    chunks: Mapping[int, Sequence[ReadRows]],
    taken: RowIntake,
    reading: RecordReading,
    entropy: Entropy,
    runs: RunCache,
) -> Backfill:
    """Write the changes, and return what there is to commit."""
    manifest, source = table.manifest, table.source
    plan = AppendPlan.of(manifest, source.topic, insert_only=reading.insert_only)
    changes = [part for part in taken.changes if part.num_rows]
    written = append(table.store, plan, changes, runs, entropy) if changes else _NOTHING
    reads = [read for of_chunk in chunks.values() for read in of_chunk]
    intent = Backfill(
        generation=table.generation,
        planned_on=table.version,
        topic=source.topic,
        chunks=frozenset(chunks),
        highest=highest_of(reads),
        read_rows=sum(read.count for read in reads),
        fence=source.fence,
        schema_version=manifest.schema.version,
        addressed_groups=frozenset(group for delta in written.deltas for group in delta.waiting),
        files=written.files,
        deltas=written.deltas,
        runs=written.runs,
        counts={name: count for name, count in sorted(written.counts.items()) if count},
        read=written.read,
    )
    if not written.left:
        return intent
    left = with_moved_rows_deleted(table.store, manifest, written.deltas, written.left, entropy)
    return replace(intent, replaced=left.replaced)


REPAIR = "REPAIR"
_ATTEMPTS_MAX = 20


@dataclass(frozen=True, slots=True)
class RepairedRows:
    """Rows of a topic's table as the source has them at a position, by the source's names: those
    that it has (`present`), and what the table holds of those that it hasn't (`gone`).

    Each row was read at that position or later.
    """

    topic: str
    position: Position
    read_ms: EpochMs
    present: pa.Table
    gone: pa.Table

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.present.num_rows + self.gone.num_rows)


@dataclass
class RowRepair:
    """Writes rows as the source has them into a table. `commit` makes an intent the next version.
    Not thread-safe.
    """

    store: Store
    snapshot: Snapshot
    commit: Callable[[Replay], Committed | Conflict]
    generation: int
    clock: Clock
    entropy: Entropy

    def commit_rows(self, rows: RepairedRows, reading: RecordReading) -> Mapping[str, int]:
        """Commit rows as changes at their position; return the counts of what came of them.

        A row with a later change stays as it is, so it may be called twice. Blocks. `UsageError` if
        the rows don't have the columns of the table; `RetryableError` if others keep committing
        first.
        """
        retries = Retries(self.clock, self.entropy, _ATTEMPTS_MAX)
        while True:
            self.snapshot = latest(self.store, self.snapshot)
            intent = self._repair(rows, reading)
            outcome = self.commit(intent)
            if isinstance(outcome, Committed):
                self.snapshot = outcome.snapshot
                return intent.counts
            retries.require_another("other writers committed first every time; repair them again")

    def _repair(self, rows: RepairedRows, reading: RecordReading) -> Replay:
        manifest = self.snapshot.manifest
        source = manifest.sources.get(rows.topic)
        if source is None:
            raise UsageError("no topic of this name feeds the table", topic=rows.topic)
        known = known_topic(manifest, source, source.partitions, whole_snapshots=False)
        taken = take_rows(
            _reads(rows, manifest.schema, source),
            reading,
            rows.topic,
            schema=manifest.schema,
            known=known,
        )
        if taken.refused or taken.new_schemas:
            raise UsageError(
                "the rows don't have the table's columns; let the stream bring its next change, and"
                " compare again",
                detail=taken.refused,
            )
        plan = AppendPlan.of(manifest, rows.topic, insert_only=reading.insert_only)
        changes = [part for part in taken.changes if part.num_rows]
        written = append(self.store, plan, changes, RunCache(), self.entropy)
        left = with_moved_rows_deleted(
            self.store, manifest, written.deltas, written.left, self.entropy, written.files
        )
        return Replay(
            self.generation,
            self.snapshot.version,
            frozenset(),
            source=source,
            files=written.files,
            deltas=written.deltas,
            runs=written.runs,
            counts={name: count for name, count in sorted(written.counts.items()) if count},
            operation=REPAIR,
            topic=rows.topic,
            replaced=left.replaced,
            images=left.images,
        )


def _reads(rows: RepairedRows, schema: TableSchema, source: SourceState) -> list[ReadRows]:
    """Return the rows with the source's schema as the table knows it."""
    shard = {name for name, _ in source.shard}
    fields = []
    columns = columns_at(schema, rows.present.column_names, shard=bool(shard))
    for name in rows.present.column_names:
        column = columns.get(name)
        if column is None or rows.present.schema.field(name).type != column.type.arrow:
            raise UsageError(
                "a column was altered since the rows were read; compare again", column=name
            )
        fields.append(SourceField(name, column.type, column.source_type))
    names = {column.name: name for name, column in columns.items()}
    key = tuple(names[name] for name in schema.key if name not in shard)
    of_source = SourceSchema(tuple(fields), key, schema.left_out)
    return [
        ReadRows(of_source, images, rows.position, rows.read_ms, gone)
        for images, gone in ((rows.present, False), (rows.gone, True))
    ]
