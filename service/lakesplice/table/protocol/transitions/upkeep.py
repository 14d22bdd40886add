"""How commits of upkeep change the manifest and the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lakesplice.errors import UsageError
from lakesplice.model.manifest import DeltaRef, Manifest, Retention
from lakesplice.model.moments import EpochMs
from lakesplice.table.protocol.intents import (
    Cluster,
    Expire,
    FileMerge,
    IndexMerge,
    Purge,
    Splice,
    Sweep,
)
from lakesplice.table.protocol.new_files import adds_of, removes_of
from lakesplice.table.protocol.transitions.feed import with_images
from lakesplice.table.protocol.transitions.parts import (
    CommitPoint,
    Transition,
    stamped_runs,
    with_replaced,
    without_consumed,
)
from lakesplice.table.protocol.transitions.sources import purged

PURGE = "PURGE"
CLUSTER = "CLUSTER"


def after_splice(before: Manifest, intent: Splice, moment: CommitPoint) -> Transition:
    """Return the table with waiting deltas in its base files."""
    files, removes, adds = with_replaced(before, intent.replaced, moment)
    deltas = (without_consumed(delta, intent.consumed) for delta in before.deltas)
    manifest = replace(before, files=files, deltas=tuple(d for d in deltas if d.waiting))
    manifest, images = with_images(manifest, intent)
    return Transition(manifest, "SPLICE", (*removes, *adds, *images), intent.counts)


def after_file_merge(before: Manifest, intent: FileMerge, moment: CommitPoint) -> Transition:
    """Return the table with one base file instead of several."""
    files, new = dict(before.files), intent.output
    merged = [files.pop(path) for path in intent.inputs]
    segments = tuple(segment for file in merged for segment in file.segments)
    partitions = {file.partition for file in merged}
    if segments != new.base.segments or partitions != {new.base.partition}:
        raise UsageError("a merge changed the files' segments", path=new.base.path)
    files[new.base.path] = new.base
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, [new], moment.timestamp_ms, data_change=False)
    manifest = replace(before, files=files)
    return Transition(manifest, "FILE MERGE", (*removes, *adds), intent.counts)


def after_purge(before: Manifest, intent: Purge, moment: CommitPoint) -> Transition:
    """Return the table without rows that were deleted for good; readers that hide deleted rows see
    no change.
    """
    files = {path: file for path, file in before.files.items() if path not in intent.inputs}
    files |= {new.base.path: new.base for new in intent.outputs}
    runs = () if intent.run is None else (intent.run,)
    kept = before.runs + stamped_runs(runs, moment.version)
    manifest = replace(purged(before, intent), files=files, runs=kept)
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, intent.outputs, moment.timestamp_ms, data_change=False)
    return Transition(manifest, PURGE, removes + adds, intent.counts)


def after_clustering(before: Manifest, intent: Cluster, moment: CommitPoint) -> Transition:
    """Return the table with rows in another order. Changes that wait for them wait at their new
    addresses, in deltas that are as old as before.

    The index has new addresses but no new keys: writers that found none of these rows needn't look
    theirs up again, and a delta for a former address is refused by its file group.
    """
    files = {path: file for path, file in before.files.items() if path not in intent.inputs}
    files |= {new.base.path: new.base for new in intent.outputs}
    newest = max((run.keys_version for run in before.runs), default=0)
    runs = stamped_runs(() if intent.run is None else (intent.run,), newest)
    deltas = tuple(part for delta in before.deltas for part in _carried(delta, intent))
    manifest = replace(before, files=files, runs=before.runs + runs, deltas=deltas)
    if before.upserts is not None and intent.by:
        upserts = replace(before.upserts, cluster_by=intent.by)
        manifest = replace(manifest, upserts=upserts)
    removes = removes_of(before, intent.inputs, moment.timestamp_ms, data_change=False)
    adds = adds_of(before.schema, intent.outputs, moment.timestamp_ms, data_change=False)
    how = {"by": ",".join(intent.by), "reason": intent.reason} if intent.by else {}
    return Transition(manifest, CLUSTER, removes + adds, intent.counts, how)


def _carried(delta: DeltaRef, intent: Cluster) -> Iterator[DeltaRef]:
    taken = intent.taken.get(delta.file.path)
    if taken is None:
        yield delta
        return
    left = without_consumed(delta, {delta.file.path: frozenset(taken)})
    if left.waiting:
        yield left
    new = intent.carried[delta.file.path]
    yield replace(
        delta,
        file=new.file,
        rows=new.rows,
        schema_version=new.schema_version,
        waiting=new.waiting,
    )


def after_index_merge(before: Manifest, intent: IndexMerge) -> Transition:
    """Return the table with one run of the index instead of several."""
    paths = [run.file.path for run in before.runs]
    start = paths.index(intent.inputs[0])
    stop = start + len(intent.inputs)
    newest = max(run.keys_version for run in before.runs[start:stop])
    output = replace(intent.output, keys_version=newest)
    manifest = replace(before, runs=(*before.runs[:start], output, *before.runs[stop:]))
    return Transition(manifest, "INDEX MERGE", counts={"numRuns": len(intent.inputs)})


def after_expiry(before: Retention, intent: Expire) -> Retention:
    """Return the retention after older versions expired and pins ended."""
    return replace(
        before,
        retained_from=intent.retained_from,
        vacuumed=intent.vacuumed,
        restores=tuple(v for v in before.restores if v >= intent.retained_from),
        pins=tuple(pin for pin in before.pins if pin.name not in intent.ended),
    )


def after_sweep(before: Retention, intent: Sweep, version: int, timestamp_ms: EpochMs) -> Retention:
    """Return the retention after a sweep that is committed as `version`."""
    asked = version if intent.writers_from is None else intent.writers_from
    return replace(
        before,
        writers_from=max(before.writers_from, asked),
        swept=version,
        swept_ms=timestamp_ms,
    )
