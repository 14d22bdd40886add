"""Preconditions of commits that add rows: the state in which the rows were located, and for which
they were written, hasn't changed.
"""

from __future__ import annotations

from lakesplice.table.protocol.intents import Backfill, Ingest, SetConstraints, Upsert
from lakesplice.table.protocol.outcomes import Conflict, ConflictCode
from lakesplice.table.protocol.snapshot import Snapshot


def table_is_running(now: Snapshot, intent: Ingest | Upsert | Backfill) -> Conflict | None:
    """Neither the table nor the topic was parked."""
    topic = _topic_of(intent)
    parked = now.manifest.parked_for(topic)
    return (
        None if parked is None else Conflict(ConflictCode.PARKED, f"{parked.code}: {parked.detail}")
    )


def offsets_continue(now: Snapshot, intent: Ingest) -> Conflict | None:
    """The topic is the same, and the ingest starts at the offsets in the manifest.

    A partition that the manifest doesn't know starts at 0; one that isn't in the ingest is
    unchanged.
    """
    to = intent.source_to
    source = now.manifest.sources.get(to.topic)
    if source is None or source.topic_id != to.topic_id:
        return Conflict(ConflictCode.OFFSETS, f"the source is {source and source.topic_id!r} now")
    for partition in sorted(source.partitions.keys() | to.partitions.keys()):
        state = source.partitions.get(partition)
        if partition in intent.source_from:
            found = 0 if state is None else state.next_offset
            holds = found == intent.source_from[partition]
        else:
            holds = state == to.partitions.get(partition)
        if not holds:
            return Conflict(
                ConflictCode.OFFSETS,
                f"partition={partition} manifest={state and state.next_offset} "
                f"ingest={intent.source_from.get(partition)}",
            )
    return None


def groups_are_live(now: Snapshot, intent: Ingest | Upsert | Backfill) -> Conflict | None:
    """Every file group that a delta addresses is live, or is added by the same commit."""
    own = {segment.group for new in intent.files for segment in new.base.segments}
    gone = intent.addressed_groups - now.manifest.groups - own
    return Conflict(ConflictCode.GROUPS, f"no longer live: {len(gone)} groups") if gone else None


def index_has_no_newer_keys(now: Snapshot, intent: Ingest | Upsert | Backfill) -> Conflict | None:
    """No keys were added to the index since the changes were located.

    If the table has several topics, each has keys of its own: those of its shard.
    """
    if not isinstance(intent, Upsert) and now.manifest.is_merged:
        source = now.manifest.sources.get(_topic_of(intent))
        newest = 0 if source is None else source.keys_version
    else:
        newest = max((run.keys_version for run in now.manifest.runs), default=0)
    if newest <= intent.planned_on:
        return None
    return Conflict(
        ConflictCode.INDEX, f"keys came in version {newest}, located on {intent.planned_on}"
    )


def schema_is_as_written(now: Snapshot, intent: Ingest | Upsert | Backfill) -> Conflict | None:
    """The schema is the one in which the changes were written."""
    version = now.manifest.schema.version
    if version == intent.schema_version:
        return None
    return Conflict(
        ConflictCode.SCHEMA, f"version {version} now, written in {intent.schema_version}"
    )


def moved_rows_are_as_read(now: Snapshot, intent: Ingest | Backfill) -> Conflict | None:
    """If rows moved between partitions, no delta was added besides those from which their state was
    read.
    """
    if intent.read is None:
        return None
    new = {delta.file.path for delta in now.manifest.deltas} - intent.read
    return (
        Conflict(ConflictCode.DELTAS, f"deltas were added meanwhile: {len(new)}") if new else None
    )


def rows_are_as_read(now: Snapshot, intent: Upsert | SetConstraints) -> Conflict | None:
    """The table is fed by hand, and no other upsert was committed since this one was located."""
    upserts = now.manifest.upserts
    if upserts is None:
        return Conflict(ConflictCode.UPSERTS, "the table is fed by a source")
    if upserts.position == intent.read:
        return None
    return Conflict(
        ConflictCode.UPSERTS, f"upsert {upserts.position} now, located after {intent.read}"
    )


def chunks_are_open(now: Snapshot, intent: Backfill) -> Conflict | None:
    """The table is a shadow, which has none of these chunks."""
    backfill = now.manifest.backfill
    if backfill is None:
        return Conflict(ConflictCode.CHUNKS, "the table isn't filled by chunks")
    there = sorted(chunk for chunk in intent.chunks if backfill.has(chunk))
    return Conflict(ConflictCode.CHUNKS, f"there already: {there[:5]}") if there else None


def fence_is_as_read(now: Snapshot, intent: Backfill) -> Conflict | None:
    """The fence is the one with which the rows were compared."""
    source = now.manifest.sources.get(intent.topic)
    if source is not None and source.fence == intent.fence:
        return None
    return Conflict(ConflictCode.FENCE, f"the fence is {source and source.fence} now")


def _topic_of(intent: Ingest | Upsert | Backfill) -> str:
    if isinstance(intent, Ingest):
        return intent.source_to.topic
    return intent.topic if isinstance(intent, Backfill) else ""
