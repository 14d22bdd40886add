"""Preconditions of commits that add changes: ingests and replays of dead letters."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState, SourceState
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import Evolve, Intent, Redirect, Replay
from lakesplice.table.protocol.preconditions.files import (
    images_were_made,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.rows import (
    groups_are_live,
    index_has_no_newer_keys,
    moved_rows_are_as_read,
    offsets_continue,
    schema_is_as_written,
    table_is_running,
)
from lakesplice.table.protocol.preconditions.tables import (
    generation_is_current,
    nothing_was_committed,
)
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import SCHEMA, TableUnderTest
from tests.unit.table.preconditions.cell import (
    PARKED,
    SCORE,
    Cell,
    changed_without_images,
    changes_wait_for_no_row,
    column_lost_in_new_rows,
    feed_begun_since,
    generation_fell,
    names_what_may_be_deleted,
    swept_since,
)


def _ingest_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = table.ingest(files=(table.file(9),))
    # The new driver has committed without moving this table's offsets.
    table.committed(replace(table.ingest(0), generation=2))
    return late


def _ingest_of_a_batch_committed_already(table: TableUnderTest) -> Intent:
    # Of updates alone, so that no other precondition notices the replay.
    late = table.ingest(deltas=(table.delta(1),))
    table.committed(late)
    return replace(late, deltas=(table.delta(1),))


def _batch_applied_twice(before: Snapshot, after: Snapshot) -> bool:
    twice = len(after.manifest.deltas) == 2
    return twice and after.manifest.source == before.manifest.source


def _ingest_overtaken_by_a_reset(table: TableUnderTest) -> Intent:
    snapshot = table.now()
    late = table.ingest(files=(table.file(9),))
    table.committed(Redirect(1, snapshot.version, source=_other_topic(snapshot)))
    return late


def _other_topic(snapshot: Snapshot) -> SourceState:
    assert snapshot.manifest.source is not None
    return replace(snapshot.manifest.source, topic_id="topic-2")


def _reset_undone(before: Snapshot, after: Snapshot) -> bool:
    assert after.manifest.source is not None
    return after.manifest.source.topic_id == "topic-1"


def _ingest_overtaken_in_another_partition(table: TableUnderTest) -> Intent:
    late = table.ingest(deltas=(table.delta(1),))
    source = late.source_to
    other = {**source.partitions, 0: PartitionState(Offset(0)), 1: PartitionState(Offset(70))}
    moved = replace(source, partitions=other)
    table.committed(table.ingest(source_from={1: 7}, source_to=moved))
    return late


def _other_partition_fell_back(before: Snapshot, after: Snapshot) -> bool:
    assert after.manifest.source is not None
    return after.manifest.source.partitions[1].next_offset == 7


def _ingest_overtaken_by_parking(table: TableUnderTest) -> Intent:
    late = table.ingest(files=(table.file(9),))
    table.committed(Redirect(1, table.now().version, parked=PARKED))
    return late


def _went_on_though_parked(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.parked is not None and after.manifest.parked is None


def _ingest_for_a_group_that_is_gone(table: TableUnderTest) -> Intent:
    # A group disappears when its rows move (a partition move, a purge); here it never was.
    return table.ingest(deltas=(table.delta(404),))


def _insert_of_keys_inserted_meanwhile(table: TableUnderTest) -> Intent:
    # Another lane's batch brought the same keys from partition 1.
    late = table.ingest(files=(table.file(9),), runs=(table.run(),))
    source = late.source_to
    first = {**source.partitions, 0: PartitionState(Offset(0)), 1: PartitionState(Offset(70))}
    table.committed(
        table.ingest(
            source_from={1: 7},
            source_to=replace(source, partitions=first),
            files=(table.file(8),),
            runs=(table.run(),),
        )
    )
    now = {**first, 0: PartitionState(Offset(5))}
    return replace(late, source_to=replace(source, partitions=now))


def _replay_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    snapshot = table.committed(replace(table.ingest(0), generation=2))
    return Replay(1, snapshot.version, frozenset())


def _replay_of_keys_inserted_meanwhile(table: TableUnderTest) -> Intent:
    planned = table.now().version
    late = Replay(1, planned, frozenset(), files=(table.file(9),), runs=(table.run(),))
    table.committed(table.ingest(files=(table.file(8),), runs=(table.run(),)))
    return late


def _keys_in_two_groups(before: Snapshot, after: Snapshot) -> bool:
    return {8, 9} <= after.manifest.groups


def _ingest_in_the_schema_before(table: TableUnderTest) -> Intent:
    late = table.ingest(files=(table.file(9),))
    table.committed(Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",))))
    return late


def _move_of_a_row_that_a_delta_came_for(table: TableUnderTest) -> Intent:
    late = table.ingest(deltas=(table.delta(1),), files=(table.file(9),), read=frozenset())
    source = late.source_to
    other = {**source.partitions, 0: PartitionState(Offset(0)), 1: PartitionState(Offset(70))}
    table.committed(
        table.ingest(
            source_from={1: 7},
            source_to=replace(source, partitions=other),
            deltas=(table.delta(1),),
        )
    )
    now = {**other, 0: PartitionState(Offset(5))}
    return replace(late, source_to=replace(source, partitions=now))


def _moved_below_its_position(before: Snapshot, after: Snapshot) -> bool:
    return len(after.manifest.deltas) == 2 and 9 in after.manifest.groups


def _ingest_that_moves_rows_of_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = table.ingest(replaced=table.splice().replaced)
    table.committed(replace(table.splice(), consumed={}))
    return late


def _ingest_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return swept_since(table, table.ingest(files=(table.file(9),)))


def _ingest_that_makes_no_images_for_a_feed(table: TableUnderTest) -> Intent:
    return feed_begun_since(table, table.ingest(replaced=table.splice().replaced))


CELLS = {
    "ingest: images": Cell(
        images_were_made,
        ConflictCode.FILES,
        _ingest_that_makes_no_images_for_a_feed,
        changed_without_images,
    ),
    "replay: generation": Cell(
        generation_is_current, None, _replay_of_a_deposed_driver, generation_fell
    ),
    "replay: version": Cell(
        nothing_was_committed,
        ConflictCode.VERSION,
        _replay_of_keys_inserted_meanwhile,
        _keys_in_two_groups,
    ),
    "ingest: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        _ingest_of_files_swept_meanwhile,
        names_what_may_be_deleted,
    ),
    "ingest: generation": Cell(
        generation_is_current, None, _ingest_of_a_deposed_driver, generation_fell
    ),
    "ingest: parked": Cell(
        table_is_running,
        ConflictCode.PARKED,
        _ingest_overtaken_by_parking,
        _went_on_though_parked,
    ),
    "ingest: offsets, replay": Cell(
        offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_of_a_batch_committed_already,
        _batch_applied_twice,
    ),
    "ingest: offsets, topic": Cell(
        offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_overtaken_by_a_reset,
        _reset_undone,
    ),
    "ingest: offsets, other partition": Cell(
        offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_overtaken_in_another_partition,
        _other_partition_fell_back,
    ),
    "ingest: groups": Cell(
        groups_are_live,
        ConflictCode.GROUPS,
        _ingest_for_a_group_that_is_gone,
        changes_wait_for_no_row,
    ),
    "ingest: index": Cell(
        index_has_no_newer_keys,
        ConflictCode.INDEX,
        _insert_of_keys_inserted_meanwhile,
        _keys_in_two_groups,
    ),
    "ingest: schema": Cell(
        schema_is_as_written,
        ConflictCode.SCHEMA,
        _ingest_in_the_schema_before,
        column_lost_in_new_rows,
    ),
    "ingest: deltas": Cell(
        moved_rows_are_as_read,
        ConflictCode.DELTAS,
        _move_of_a_row_that_a_delta_came_for,
        _moved_below_its_position,
    ),
}


# Without these a late commit would name a file or a run that is not in the manifest any more; the
# transition then breaks off, or would write a file's rows into the table a second time.
BREAKING = {
    "ingest: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        _ingest_that_moves_rows_of_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
}
