"""Preconditions about files: the files that were read are still the newest, and no sweep took the
new files for orphans.
"""

from __future__ import annotations

from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.table.protocol.intents import (
    Backfill,
    Cluster,
    Erase,
    Evolve,
    FileMerge,
    IndexMerge,
    Ingest,
    Purge,
    Splice,
    Upsert,
)
from lakesplice.table.protocol.outcomes import Conflict, ConflictCode
from lakesplice.table.protocol.snapshot import Snapshot


def sources_are_unchanged(
    now: Snapshot, intent: Ingest | Upsert | Backfill | Splice | FileMerge | Purge | Cluster | Erase
) -> Conflict | None:
    """Each source file is live. Names are used only once, so a live file is an unchanged one."""
    gone = intent.sources - now.manifest.files.keys()
    return Conflict(ConflictCode.FILES, f"replaced meanwhile: {sorted(gone)[0]}") if gone else None


def layout_is_as_written(
    now: Snapshot, intent: Splice | FileMerge | Purge | Cluster | Erase
) -> Conflict | None:
    """No column got another name or type since the new files were written. Readers of the log find
    columns by name, even in a file that lacked the column and so wasn't replaced with the schema.
    """
    then = intent.schema_version
    if then is None or all(before.version <= then for before in now.manifest.schema.former):
        return None
    version = now.manifest.schema.version
    return Conflict(ConflictCode.FILES, f"schema version {version} now, laid out by {then}")


def nothing_waits_for_sources(now: Snapshot, intent: Purge | Erase) -> Conflict | None:
    """No change waits for a row of a source file: its address would no longer exist."""
    for path in intent.inputs:
        file = now.manifest.files.get(path)
        if file is not None and now.manifest.waiting_in(file):
            return Conflict(ConflictCode.DELTAS, f"changes were added for {path}")
    return None


def floor_is_below_all_to_come(now: Snapshot, intent: Purge) -> Conflict | None:
    """Each topic's purge floor is below the position that each of its partitions has reached, and
    below each of its dead letters.

    A floor that doesn't change was below all of them when it rose.
    """
    for topic, floor in intent.floors.items():
        source, bound = now.manifest.sources.get(topic), purge_bound(now.manifest, topic)
        risen = source is None or floor > source.purge_floor
        if bound is not None and floor >= bound and risen:
            return Conflict(ConflictCode.FLOOR, f"the floor {floor} is not below {bound} any more")
    return None


def consumed_parts_still_wait(now: Snapshot, intent: Splice | Upsert) -> Conflict | None:
    """Each part of a delta that was applied is live, and not yet in a base file."""
    waiting = {delta.file.path: delta.waiting.keys() for delta in now.manifest.deltas}
    for path, groups in intent.consumed.items():
        if not groups <= waiting.get(path, frozenset()):
            return Conflict(ConflictCode.DELTAS, f"consumed meanwhile: {path}")
    return None


def changes_are_as_carried(now: Snapshot, intent: Cluster) -> Conflict | None:
    """The changes that wait for rows of the source files are those that have deltas at the new
    addresses. They can be carried again, without writing the rows again.
    """
    files = (now.manifest.files[path] for path in intent.inputs if path in now.manifest.files)
    groups = {segment.group for file in files for segment in file.segments}
    same = now.manifest.waiting_for(groups) == intent.taken
    return None if same else Conflict(ConflictCode.DELTAS, "changes were added or spliced")


def inputs_are_adjacent(now: Snapshot, intent: IndexMerge) -> Conflict | None:
    """The input runs are live, next to each other and in this order."""
    paths = tuple(run.file.path for run in now.manifest.runs)
    if intent.inputs and intent.inputs[0] in paths:
        start = paths.index(intent.inputs[0])
        if paths[start : start + len(intent.inputs)] == intent.inputs:
            return None
    return Conflict(ConflictCode.RUNS, "the runs were merged or rebuilt meanwhile")


def files_are_as_read(now: Snapshot, intent: Evolve) -> Conflict | None:
    """The set of base files is the one that was read."""
    same = now.manifest.files.keys() == intent.files
    return (
        None if same else Conflict(ConflictCode.FILES, "base files were added or removed meanwhile")
    )


def deltas_are_as_read(now: Snapshot, intent: Evolve) -> Conflict | None:
    """The set of deltas is the one that was read."""
    same = {delta.file.path for delta in now.manifest.deltas} == intent.deltas
    return None if same else Conflict(ConflictCode.DELTAS, "deltas were added or removed meanwhile")


def images_were_made(now: Snapshot, intent: Ingest | Upsert | Splice) -> Conflict | None:
    """If the table has a change feed, the writer that rewrote base files made images of changed
    rows.
    """
    made = now.manifest.feed is None or intent.images is not None or not intent.replaced
    return None if made else Conflict(ConflictCode.FILES, "the change feed began meanwhile")


def writer_began_after_sweep(
    now: Snapshot,
    intent: Ingest
    | Upsert
    | Backfill
    | Splice
    | FileMerge
    | Purge
    | Cluster
    | IndexMerge
    | Evolve
    | Erase,
) -> Conflict | None:
    """No sweep can have taken the new files for orphans: their writer had seen the sweep before."""
    least = now.manifest.retention.writers_from
    if intent.planned_on is None or intent.planned_on >= least:
        return None
    return Conflict(
        ConflictCode.SWEPT, f"written since version {intent.planned_on}, swept up to {least}"
    )


def rewritten_files_are_live(now: Snapshot, intent: Erase) -> Conflict | None:
    """Each index run, delta and file of dead letters that gets a next version is live, and the same
    changes of these deltas wait. Files added since then have no data of the erased rows: a change
    of one of these would wait for a file that the erasure replaces.
    """
    manifest, rewritten = now.manifest, intent.rewritten
    gone = rewritten.runs.keys() - {run.file.path for run in manifest.runs}
    gone |= rewritten.letters.keys() - {letters.file.path for letters in manifest.dead_letters}
    waiting = {delta.file.path: delta.waiting for delta in manifest.deltas}
    for path, new in rewritten.deltas.items():
        if path not in waiting or new is None or new.waiting != waiting[path]:
            gone |= {path}
    return Conflict(ConflictCode.FILES, f"changed meanwhile: {min(gone)}") if gone else None


def nothing_is_pinned(now: Snapshot, intent: Erase) -> Conflict | None:  # noqa: ARG001
    """No version is pinned: it would keep the rows."""
    pinned = now.manifest.retention.pins
    return Conflict(ConflictCode.RETENTION, "a version was pinned") if pinned else None


def erased_keys_are_as_read(now: Snapshot, intent: Erase) -> Conflict | None:
    """No other erasure was committed meanwhile."""
    same = now.manifest.erased == intent.read
    return None if same else Conflict(ConflictCode.RETENTION, "other rows were erased meanwhile")
