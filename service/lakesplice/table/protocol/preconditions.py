"""Preconditions: what must still hold for each kind of commit, whatever was committed meanwhile.

They are the table of docs/format.md, "Commits". Each is a function of its own, so that a test can
leave one out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakesplice.errors import FencedError
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.table.protocol.conflicts import Conflict, ConflictCode
from lakesplice.table.protocol.intents import (
    ChangePins,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    Replay,
    Restore,
    SetChangeFeed,
    Splice,
    Sweep,
    Upsert,
)
from lakesplice.table.protocol.shadow_intents import Backfill, Swap
from lakesplice.table.protocol.snapshot import Snapshot


def generation_is_current(now: Snapshot, intent: Intent) -> None:
    """No driver of a higher generation has committed; else `FencedError`."""
    if intent.generation < now.manifest.generation:
        raise FencedError(
            "a driver of a higher generation has committed; this one must stop",
            generation=intent.generation,
            current=now.manifest.generation,
        )


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
    """The schema is the one that the changes were written in."""
    version = now.manifest.schema.version
    if version == intent.schema_version:
        return None
    return Conflict(
        ConflictCode.SCHEMA, f"version {version} now, written in {intent.schema_version}"
    )


def moved_rows_are_as_read(now: Snapshot, intent: Ingest | Backfill) -> Conflict | None:
    """If rows moved between partitions, no delta was added besides those that their state was read
    from.
    """
    if intent.read is None:
        return None
    new = {delta.file.path for delta in now.manifest.deltas} - intent.read
    return (
        Conflict(ConflictCode.DELTAS, f"deltas were added meanwhile: {len(new)}") if new else None
    )


def rows_are_as_read(now: Snapshot, intent: Upsert) -> Conflict | None:
    """The table is fed by hand, and no other upsert was committed since this one was located."""
    upserts = now.manifest.upserts
    if upserts is None:
        return Conflict(ConflictCode.UPSERTS, "the table is fed by a source")
    if upserts.position == intent.read:
        return None
    return Conflict(
        ConflictCode.UPSERTS, f"upsert {upserts.position} now, located after {intent.read}"
    )


def sources_are_unchanged(
    now: Snapshot, intent: Ingest | Upsert | Backfill | Splice | FileMerge | Purge
) -> Conflict | None:
    """Each source file is live. Names are used only once, so a live file is an unchanged one."""
    gone = intent.sources - now.manifest.files.keys()
    return Conflict(ConflictCode.FILES, f"replaced meanwhile: {sorted(gone)[0]}") if gone else None


def layout_is_as_written(now: Snapshot, intent: Splice | FileMerge | Purge) -> Conflict | None:
    """No column got another name or type since the new files were written. Readers of the log find
    columns by name, even in a file that lacked the column and so wasn't replaced with the schema.
    """
    then = intent.schema_version
    if then is None or all(before.version <= then for before in now.manifest.schema.former):
        return None
    version = now.manifest.schema.version
    return Conflict(ConflictCode.FILES, f"schema version {version} now, laid out by {then}")


def nothing_waits_for_sources(now: Snapshot, intent: Purge) -> Conflict | None:
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


def schema_is_the_one_before(now: Snapshot, intent: Evolve) -> Conflict | None:
    """The present schema is the one that the new schema extends, by one version or by several."""
    schema = now.manifest.schema
    before = intent.schema.at(schema.version)
    # A table without columns has no key yet, so the keys needn't be equal.
    extends = before.versions == schema.versions and before.columns == schema.columns
    if intent.schema.version > schema.version and extends:
        return None
    return Conflict(ConflictCode.SCHEMA, f"version {schema.version} is another now")


def chunks_are_open(now: Snapshot, intent: Backfill) -> Conflict | None:
    """The table is a shadow, which has none of these chunks."""
    backfill = now.manifest.backfill
    if backfill is None:
        return Conflict(ConflictCode.CHUNKS, "the table isn't filled by chunks")
    there = sorted(chunk for chunk in intent.chunks if backfill.has(chunk))
    return Conflict(ConflictCode.CHUNKS, f"there already: {there[:5]}") if there else None


def fence_is_as_read(now: Snapshot, intent: Backfill) -> Conflict | None:
    """The fence is the one that the rows were judged by."""
    source = now.manifest.sources.get(intent.topic)
    if source is not None and source.fence == intent.fence:
        return None
    return Conflict(ConflictCode.FENCE, f"the fence is {source and source.fence} now")


def nothing_was_committed(
    now: Snapshot, intent: Redirect | Replay | Restore | Swap
) -> Conflict | None:
    """The newest version is the one that the intent was planned on."""
    if now.version == intent.planned_on:
        return None
    return Conflict(
        ConflictCode.VERSION, f"version {now.version} now, planned on {intent.planned_on}"
    )


def writer_began_after_sweep(
    now: Snapshot,
    intent: Ingest | Upsert | Backfill | Splice | FileMerge | Purge | IndexMerge | Evolve,
) -> Conflict | None:
    """No sweep can have taken the new files for orphans: their writer had seen the sweep before."""
    least = now.manifest.retention.writers_from
    if intent.planned_on is None or intent.planned_on >= least:
        return None
    return Conflict(
        ConflictCode.SWEPT, f"written since version {intent.planned_on}, swept up to {least}"
    )


def images_were_made(now: Snapshot, intent: Ingest | Upsert | Splice) -> Conflict | None:
    """If the table has a change feed, whoever rewrote base files made images of changed rows."""
    made = now.manifest.feed is None or intent.images is not None or not intent.replaced
    return None if made else Conflict(ConflictCode.FILES, "the change feed began meanwhile")


def feed_is_the_other_way(now: Snapshot, intent: SetChangeFeed) -> Conflict | None:
    """The change feed wasn't switched on or off already."""
    is_on = now.manifest.feed is not None
    return Conflict(ConflictCode.FEED, "it is so already") if is_on == intent.on else None


def retention_is_as_read(now: Snapshot, intent: Expire | ChangePins) -> Conflict | None:
    """No other vacuum was committed, no older version was restored, and none was pinned."""
    same, detail = (
        now.manifest.retention == intent.read,
        "a vacuum, a restore or a pin came between",
    )
    return None if same else Conflict(ConflictCode.RETENTION, detail)


def _topic_of(intent: Ingest | Upsert | Backfill) -> str:
    if isinstance(intent, Ingest):
        return intent.source_to.topic
    return intent.topic if isinstance(intent, Backfill) else ""


Precondition = Callable[[Snapshot, Any], Conflict | None]

PRECONDITIONS: Mapping[type[Intent], tuple[Precondition, ...]] = {
    Ingest: (
        generation_is_current,
        table_is_running,
        offsets_continue,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        moved_rows_are_as_read,
        sources_are_unchanged,
        images_were_made,
        writer_began_after_sweep,
    ),
    Upsert: (
        table_is_running,
        rows_are_as_read,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        sources_are_unchanged,
        consumed_parts_still_wait,
        images_were_made,
        writer_began_after_sweep,
    ),
    Splice: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        consumed_parts_still_wait,
        images_were_made,
        writer_began_after_sweep,
    ),
    FileMerge: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        writer_began_after_sweep,
    ),
    Purge: (
        generation_is_current,
        sources_are_unchanged,
        layout_is_as_written,
        nothing_waits_for_sources,
        floor_is_below_all_to_come,
        writer_began_after_sweep,
    ),
    IndexMerge: (generation_is_current, inputs_are_adjacent, writer_began_after_sweep),
    Evolve: (
        generation_is_current,
        files_are_as_read,
        deltas_are_as_read,
        schema_is_the_one_before,
        writer_began_after_sweep,
    ),
    Redirect: (generation_is_current, nothing_was_committed),
    Replay: (generation_is_current, nothing_was_committed),
    SetChangeFeed: (generation_is_current, feed_is_the_other_way),
    Expire: (generation_is_current, retention_is_as_read),
    ChangePins: (generation_is_current, retention_is_as_read),
    Note: (generation_is_current,),
    Sweep: (generation_is_current,),
    Restore: (generation_is_current, nothing_was_committed),
    Backfill: (
        generation_is_current,
        table_is_running,
        chunks_are_open,
        fence_is_as_read,
        groups_are_live,
        index_has_no_newer_keys,
        schema_is_as_written,
        moved_rows_are_as_read,
        sources_are_unchanged,
        writer_began_after_sweep,
    ),
    Swap: (generation_is_current, nothing_was_committed),
}
