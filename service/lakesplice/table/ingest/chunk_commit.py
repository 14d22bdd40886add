"""Chunks of a source's rows become a shadow's next version.

They are changes like any others: positions decide what is left of them. If the table's schema has
to grow for them, that is committed first. If keys, the schema or the fence changed while they were
written, they are written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lakesplice.planning.intake.line import RecordReading
from lakesplice.planning.intake.read_rows import ReadRows, TakenRows, highest_of, take_rows
from lakesplice.planning.schema.evolution import plan_evolution
from lakesplice.planning.sources.shards import unplaced
from lakesplice.table.files.index_runs import RunCache
from lakesplice.table.ingest.append import Appended, AppendPlan, append
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.ingest.moved_row_deletes import with_moved_rows_deleted
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import Backfill
from lakesplice.table.protocol.ports import Entropy

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
    table: DriverTable, taken: TakenRows, reading: RecordReading
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
    taken: TakenRows,
    reading: RecordReading,
    entropy: Entropy,
    runs: RunCache,
) -> Backfill:
    """Write the changes, and return what there is to commit."""
    manifest, source = table.manifest, table.source
    plan = AppendPlan.of(manifest, source.topic, insert_only=reading.not_inserts is not None)
    changes = [part for part in taken.changes if part.num_rows]
    written = append(table.store, plan, changes, runs, entropy) if changes else _NOTHING
    reads = [read for of_chunk in chunks.values() for read in of_chunk]
    deltas = (written.delta,) if written.delta else ()
    intent = Backfill(
        generation=table.generation,
        planned_on=table.version,
        topic=source.topic,
        chunks=frozenset(chunks),
        highest=highest_of(reads),
        read_rows=sum(read.count for read in reads),
        fence=source.fence,
        schema_version=manifest.schema.version,
        addressed_groups=frozenset(group for delta in deltas for group in delta.waiting),
        files=written.files,
        deltas=deltas,
        runs=(written.run,) if written.run else (),
        counts={name: count for name, count in sorted(written.counts.items()) if count},
        read=written.read,
    )
    if not written.left:
        return intent
    left = with_moved_rows_deleted(table.store, manifest, deltas, written.left, entropy)
    return replace(intent, replaced=left.replaced)
