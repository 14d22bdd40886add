"""A shadow, from its creation to the commit by which it takes the table's place.

The order, and what a crash after each step leaves behind:

    1  the plan                  the shadow is open: the next process continues with this plan
    2  the shadow's version 0    the shadow, without rows
    3  its other versions        rows, offsets, finished chunks: only open chunks are read again
    4  the swap, in the table    the table has the shadow's content
    5  the plan is deleted       the shadow is no longer open
    6  its log is deleted        nothing is left of it but the table's files

A crash between 4 and 5 leaves an open shadow that the table's history names: it is closed, and not
swapped a second time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lakesplice.errors import CorruptFileError, UsageError
from lakesplice.formats.manifests.shadow_plan import decode_shadow_plan, encode_shadow_plan
from lakesplice.model.manifest import Manifest
from lakesplice.model.offsets import Offset
from lakesplice.model.position import BEFORE_ALL, Ordering, below_snapshot
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.model.progress.shadow_plan import FilledFrom, ShadowPlan
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.model.schema import TableSchema
from lakesplice.planning.upkeep.retention import LOG_RETENTION_HOURS, files_by_path
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import Committed, Conflict, create
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.intents import Create, Swap
from lakesplice.table.protocol.ports import Clock, Entropy, Store
from lakesplice.table.protocol.retries import Retries
from lakesplice.table.protocol.shadow_store import ShadowStore, shadow_plan_path
from lakesplice.table.protocol.snapshot import Snapshot, latest
from lakesplice.table.protocol.transitions import SWAP

SHADOW_PARAMETER, VERIFIED_PARAMETER = "shadow", "verified"
# No other process commits to a shadow.
_GENERATION = 1

SwapCommit = Callable[[Swap], Committed | Conflict]


def read_shadow_plan(store: Store, shadow: str) -> ShadowPlan:
    """Return an open shadow's plan; `MissingFileError` if there is none."""
    path = shadow_plan_path(shadow)
    return decode_shadow_plan(store.read(path), path)


def begin_shadow(store: Store, plan: ShadowPlan) -> None:
    """Open a shadow of the table in `store`; `UsageError` if a shadow with this name is open."""
    if not store.put_new(shadow_plan_path(plan.shadow), encode_shadow_plan(plan)):
        raise UsageError("a shadow of this name is open", shadow=plan.shadow)


def shadow_table(store: Store, plan: ShadowPlan, clock: Clock, entropy: Entropy) -> DriverTable:
    """Return an open shadow as a driver's table, in the state in which it was left.

    Blocks: creates its version 0 if there is none yet.
    """
    own = ShadowStore(store, plan.shadow)
    source = first_source(plan)
    backfill = BackfillState(plan.chunks)
    newborn = Create(_GENERATION, TableSchema(), source, backfill=backfill)
    create(own, newborn, clock=clock, entropy=entropy)  # a conflict: it was made before
    return DriverTable(own, source, _GENERATION, clock, entropy)


def first_source(plan: ShadowPlan) -> SourceState:
    """Return where a shadow starts: at the end that the topic had before the first read, with a
    fence below every row that can be read. If the topic itself fills it, nothing is known of its
    records yet; if a snapshot in it does, the fence is just below the snapshot.
    """
    partitions = {number: PartitionState(offset) for number, offset in plan.ends.items()}
    if plan.filled_from is FilledFrom.TOPIC:
        return SourceState(plan.topic, plan.topic_id, partitions)
    fence = below_snapshot(plan.start)
    return SourceState(plan.topic, plan.topic_id, partitions, ordering=Ordering.BINLOG, fence=fence)


def is_past_reads(manifest: Manifest) -> bool:
    """Whether every partition is past every position at which a chunk was read: then the shadow
    equals the source at one moment, up to its offsets.
    """
    highest = BEFORE_ALL if manifest.backfill is None else manifest.backfill.highest
    states = (state for source in manifest.sources.values() for state in source.partitions.values())
    return all(state.position > highest for state in states)


def unready(shadow: Manifest, live: Manifest | None) -> str:
    """Return why a shadow can't replace the table yet, in words; empty if it can."""
    backfill = shadow.backfill
    if backfill is None or not backfill.is_whole:
        done = 0 if backfill is None else backfill.done_count
        return f"{done} of {backfill.chunks if backfill else 0} chunks are read"
    if shadow.parkings:
        return f"it is parked: {shadow.parkings[0].detail}"
    for topic, source in () if live is None else live.sources.items():
        own = shadow.sources.get(topic)
        if own is None or own.topic_id != source.topic_id:
            return f"the topic {topic} isn't the one that the shadow reads"
        for number, state in source.partitions.items():
            here = own.partitions.get(number, PartitionState(Offset(0))).next_offset
            if here < state.next_offset:
                return f"partition {number} is at {here}, the table's at {state.next_offset}"
    return ""


def swapped_version(store: Store, plan: ShadowPlan) -> int | None:
    """Return the version of the table that a shadow became; None if it hasn't yet. Blocks: reads
    the history back to the shadow's opening.
    """
    for entry in history(store):
        if entry.info.timestamp_ms is not None and entry.info.timestamp_ms < plan.created_ms:
            return None
        is_swap = entry.info.operation == SWAP
        if is_swap and entry.info.parameters.get(SHADOW_PARAMETER) == plan.shadow:
            return entry.version
    return None


def swap_intent(
    store: Store,
    shadow: Snapshot,
    generation: int,
    live: Snapshot | None,
    log_retention_hours: int = LOG_RETENTION_HOURS,
) -> Swap:
    """Return the intent by which a shadow replaces the table after `live`, its newest version. If
    there is no table, one is created that keeps its log for so many hours.

    Blocks: looks up each file. `UsageError` if the shadow isn't ready, `CorruptFileError` if a file
    of it is missing.
    """
    manifest = shadow.manifest
    if problem := unready(manifest, None if live is None else live.manifest):
        raise UsageError(f"the shadow can't take the table's place yet: {problem}")
    for path in files_by_path(manifest):
        if store.size(path) is None:
            raise CorruptFileError(
                "a file of the shadow is missing; give up the shadow and begin again", path=path
            )
    stats = {path: add.stats for path, add in shadow.log.adds.items()}
    planned_on = None if live is None else live.version
    return Swap(generation, planned_on, manifest, stats, log_retention_hours)


def swap_into(
    store: Store,
    shadow: Snapshot,
    generation: int,
    live: Snapshot,
    commit: SwapCommit,
    retries: Retries,
) -> Snapshot:
    """Let a shadow replace the table, whose version `live` is known; return the new version.

    Errors as in `swap_intent`; `RetryableError` if others always committed first.
    """
    intent = swap_intent(store, shadow, generation, live)
    while True:
        outcome = commit(intent)
        if isinstance(outcome, Committed):
            return outcome.snapshot
        live = latest(store, live)
        if problem := unready(shadow.manifest, live.manifest):
            raise UsageError(f"the shadow can't take the table's place yet: {problem}")
        intent = replace(intent, planned_on=live.version)
        retries.require_another()
