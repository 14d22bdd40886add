"""The table of preconditions, cell by cell: what each refuses, and the harm done without it.

Each cell is played twice: as it is, where the late commit is refused and the table stays as it was,
and with that one precondition dropped, where the commit goes through and does the harm it names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lakesplice.errors import FencedError
from lakesplice.model.manifest import (
    ParkCode,
    ParkReason,
    PartitionState,
    SourceState,
    UpsertState,
)
from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Kind
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.planning.upkeep.retention import named_files
from lakesplice.table.protocol import commit as commits
from lakesplice.table.protocol import preconditions as rules
from lakesplice.table.protocol.commit import Committed, Conflict, ConflictCode
from lakesplice.table.protocol.intents import (
    Create,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Purge,
    Redirect,
    Replay,
    Restore,
    Splice,
    Sweep,
    Upsert,
)
from lakesplice.table.protocol.snapshot import Snapshot, open_snapshot
from tests.support.tables import SCHEMA, TableUnderTest, local_table

SCORE = Column(3, "score", "score", ColumnType(Kind.DOUBLE), "double")
FLAG = Column(3, "flag", "flag", ColumnType(Kind.BOOLEAN), "tinyint(1)")
PARKED = ParkReason(ParkCode.NO_KEY, "give it a key")


@dataclass(frozen=True)
class Cell:
    """An intent that `late` plans and then lets another commit overtake, and what it would break.

    `harm` is told the table before and after the late commit.
    """

    precondition: Callable[..., Any]
    reason: ConflictCode | None
    late: Callable[[TableUnderTest], Intent]
    harm: Callable[[Snapshot, Snapshot], bool]

    @property
    def name(self) -> str:
        return self.precondition.__name__


def _ingest_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = table.ingest(files=(table.file(9),))
    # The new driver has committed without moving this table's offsets.
    table.committed(replace(table.ingest(0), generation=2))
    return late


def _splice_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = table.splice()
    table.committed(replace(table.ingest(), generation=2))
    return late


def _merge_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    table.committed(replace(table.ingest(), generation=2))
    return IndexMerge(1, inputs, table.run())


def _evolve_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], SCHEMA.key))
    table.committed(replace(table.ingest(0), generation=2))
    return late


def _redirect_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    snapshot = table.committed(replace(table.ingest(0), generation=2))
    return Redirect(1, snapshot.version, parked=PARKED)


def _generation_fell(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.generation < before.manifest.generation


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
    other = {**source.partitions, 0: PartitionState(0), 1: PartitionState(70)}
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


def _changes_wait_for_no_row(before: Snapshot, after: Snapshot) -> bool:
    waiting = {group for delta in after.manifest.deltas for group in delta.waiting}
    return not waiting <= after.manifest.groups


def _insert_of_keys_inserted_meanwhile(table: TableUnderTest) -> Intent:
    # Another lane's batch brought the same keys from partition 1.
    late = table.ingest(files=(table.file(9),), runs=(table.run(),))
    source = late.source_to
    first = {**source.partitions, 0: PartitionState(0), 1: PartitionState(70)}
    table.committed(
        table.ingest(
            source_from={1: 7},
            source_to=replace(source, partitions=first),
            files=(table.file(8),),
            runs=(table.run(),),
        )
    )
    now = {**first, 0: PartitionState(5)}
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


def _column_lost_in_new_rows(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.schema.version == 1 and 9 in after.manifest.groups


def _move_of_a_row_that_a_delta_came_for(table: TableUnderTest) -> Intent:
    late = table.ingest(deltas=(table.delta(1),), files=(table.file(9),), read=frozenset())
    source = late.source_to
    other = {**source.partitions, 0: PartitionState(0), 1: PartitionState(70)}
    table.committed(
        table.ingest(
            source_from={1: 7},
            source_to=replace(source, partitions=other),
            deltas=(table.delta(1),),
        )
    )
    now = {**other, 0: PartitionState(5)}
    return replace(late, source_to=replace(source, partitions=now))


def _moved_below_its_position(before: Snapshot, after: Snapshot) -> bool:
    return len(after.manifest.deltas) == 2 and 9 in after.manifest.groups


def _splice_of_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = table.splice()
    table.committed(replace(table.splice(), consumed={}))
    return replace(late, consumed={})


def _ingest_that_moves_rows_of_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = table.ingest(replaced=table.splice().replaced)
    table.committed(replace(table.splice(), consumed={}))
    return late


def _renamed_meanwhile(table: TableUnderTest, late: Splice | FileMerge | Purge) -> Intent:
    schema = table.now().manifest.schema
    column = replace(schema.columns[-1], name="renamed")
    table.committed(Evolve.of(1, table.now().manifest, schema.with_columns((), ("id",), [column])))
    return replace(late, schema_version=schema.version)


def _splice_of_columns_renamed_meanwhile(table: TableUnderTest) -> Intent:
    return _renamed_meanwhile(table, replace(table.splice(), consumed={}))


def _file_merge_of_columns_renamed_meanwhile(table: TableUnderTest) -> Intent:
    return _renamed_meanwhile(table, merge_of_files(table))


def _purge_of_columns_renamed_meanwhile(table: TableUnderTest) -> Intent:
    return _renamed_meanwhile(table, purge_of(table))


def _in_the_former_layout(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.files.keys() != after.manifest.files.keys()


def _splice_of_a_delta_consumed_meanwhile(table: TableUnderTest) -> Intent:
    table.committed(table.ingest(deltas=(table.delta(1),)))
    first = table.splice()
    table.committed(first)
    # Planned on the replaced file by a process that missed only what was consumed.
    return replace(table.splice(), consumed=first.consumed)


def _spliced_on(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.files.keys() != before.manifest.files.keys()


def _merge_of_runs_rebuilt_meanwhile(table: TableUnderTest) -> Intent:
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    late = IndexMerge(1, inputs, table.run())
    table.committed(Redirect(1, table.now().version, runs=(table.run(), table.run())))
    return late


def _rebuilt_index_lost(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.runs[0] not in before.manifest.runs


def _evolve_with_a_file_come_meanwhile(table: TableUnderTest) -> Intent:
    late = Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",)))
    table.committed(table.ingest(files=(table.file(9),)))
    return late


def _evolve_with_a_delta_come_meanwhile(table: TableUnderTest) -> Intent:
    late = Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",)))
    table.committed(table.ingest(deltas=(table.delta(1),)))
    return late


def _evolved_unseen(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.schema.version == 1


def _evolve_of_a_schema_evolved_meanwhile(table: TableUnderTest) -> Intent:
    late = Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",)))
    table.committed(Evolve.of(1, table.now().manifest, SCHEMA.with_columns([FLAG], ("id",))))
    return late


def _column_swallowed(before: Snapshot, after: Snapshot) -> bool:
    return FLAG in before.manifest.schema.columns and FLAG not in after.manifest.schema.columns


def _reset_after_a_later_ingest(table: TableUnderTest) -> Intent:
    planned = table.now()
    table.committed(table.ingest(100))
    return Redirect(1, planned.version, source=planned.manifest.source)


def _offsets_fell_back(before: Snapshot, after: Snapshot) -> bool:
    old, new = before.manifest.source, after.manifest.source
    assert old is not None
    assert new is not None
    return new.partitions[0].next_offset < old.partitions[0].next_offset


def upsert(table: TableUnderTest, **changes: Any) -> Upsert:
    """An upsert planned on the newest version, of a row in a file of its own unless told."""
    now = table.now()
    assert now.manifest.upserts is not None
    read, position = now.manifest.upserts.position, now.version + 1
    version = now.manifest.schema.version
    intent = Upsert(1, now.version, read, UpsertState(position), version)
    return replace(intent, **(changes or {"files": (table.file(9),)}))


def _upsert_overtaken_by_parking(table: TableUnderTest) -> Intent:
    late = upsert(table)
    table.committed(Redirect(1, table.now().version, parked=PARKED))
    return late


def _parked_and_written(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.parked is not None and 9 in after.manifest.groups


def _upsert_overtaken_by_another(table: TableUnderTest) -> Intent:
    late = upsert(table, deltas=(table.delta(1),), addressed_groups=frozenset({1}))
    table.committed(upsert(table, deltas=(table.delta(1),), addressed_groups=frozenset({1})))
    return late


def _two_changes_at_one_position(before: Snapshot, after: Snapshot) -> bool:
    same = before.manifest.upserts == after.manifest.upserts
    return same and len(after.manifest.deltas) == 2


def _upsert_for_a_group_that_is_gone(table: TableUnderTest) -> Intent:
    return upsert(table, deltas=(table.delta(404),), addressed_groups=frozenset({404}))


def _upsert_located_before_the_index_was_rebuilt(table: TableUnderTest) -> Intent:
    late = upsert(table, files=(table.file(9),), runs=(table.run(),))
    table.committed(Redirect(1, table.now().version, runs=(table.run(),)))
    return late


def _rows_of_keys_that_were_there(before: Snapshot, after: Snapshot) -> bool:
    return 9 in after.manifest.groups


def _upsert_in_the_schema_before(table: TableUnderTest) -> Intent:
    late = upsert(table)
    table.committed(Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",))))
    return late


def _swept_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(Sweep(1))
    return late


def _ingest_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return _swept_since(table, table.ingest(files=(table.file(9),)))


def _upsert_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return _swept_since(table, upsert(table, files=(table.file(9),)))


def _splice_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return _swept_since(table, table.splice())


def _evolve_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    now = table.now()
    replaced = table.splice().replaced
    grown = SCHEMA.with_columns([SCORE], SCHEMA.key)
    return _swept_since(table, Evolve.of(1, now.manifest, grown, replaced, now.version))


def _merge_into_a_run_swept_meanwhile(table: TableUnderTest) -> Intent:
    now = table.now()
    inputs = tuple(run.file.path for run in now.manifest.runs)
    return _swept_since(table, IndexMerge(1, inputs, table.run(), now.version))


def _names_what_may_be_deleted(before: Snapshot, after: Snapshot) -> bool:
    return named_files(after.manifest).keys() - named_files(before.manifest).keys() != set()


def _expiry_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return Expire(1, table.now().manifest.retention, 1, 0)


def _sweep_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return Sweep(1)


def _expiry_beside_another(table: TableUnderTest) -> Intent:
    late = Expire(1, table.now().manifest.retention, 0, 0)
    table.committed(Expire(1, table.now().manifest.retention, 1, 0))
    return late


def _promised_what_is_deleted(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.retention.retained_from < before.manifest.retention.retained_from


def _restore(table: TableUnderTest, generation: int = 1) -> Restore:
    now, first = table.now(), open_snapshot(table.store, 0)
    return Restore(generation, now.version, 0, first.manifest, {})


def _restore_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return _restore(table)


def _restore_of_a_version_that_expires_meanwhile(table: TableUnderTest) -> Intent:
    late = _restore(table)
    table.committed(Expire(1, table.now().manifest.retention, 1, 0))
    return late


def _files_of_an_expired_version(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.retention.retained_from == 1 and not after.manifest.files


def merge_of_files(table: TableUnderTest) -> FileMerge:
    """A merge of the one file there is: what is merged does not matter here."""
    now = table.now()
    (file,) = now.manifest.files.values()
    return FileMerge(1, (file.path,), table.next_file(file), planned_on=now.version)


def _file_merge_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = merge_of_files(table)
    table.committed(replace(table.ingest(), generation=2))
    return late


def _file_merge_swept_meanwhile(table: TableUnderTest) -> Intent:
    return _swept_since(table, merge_of_files(table))


def _file_merge_of_a_file_spliced_meanwhile(table: TableUnderTest) -> Intent:
    late = merge_of_files(table)
    table.committed(table.splice())
    return late


def purge_of(table: TableUnderTest, floor: Position = BEFORE_ALL) -> Purge:
    snapshot = table.now()
    inputs = tuple(snapshot.manifest.files)
    floors = dict.fromkeys(snapshot.manifest.sources, floor)
    return Purge(1, inputs, (table.file(5, 2),), table.run(), floors, snapshot.version)


def _purge_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = purge_of(table)
    table.committed(replace(table.ingest(), generation=2))
    return late


def _purge_swept_meanwhile(table: TableUnderTest) -> Intent:
    return _swept_since(table, purge_of(table))


def _purge_of_a_file_spliced_meanwhile(table: TableUnderTest) -> Intent:
    late = purge_of(table)
    table.committed(table.splice())
    return late


def _purge_of_a_row_changed_meanwhile(table: TableUnderTest) -> Intent:
    late = purge_of(table)
    table.committed(table.ingest(deltas=(table.delta(1),)))
    return late


def _waits_for_no_row(_before: Snapshot, after: Snapshot) -> bool:
    waiting = {group for delta in after.manifest.deltas for group in delta.waiting}
    return not waiting <= after.manifest.groups


def _purge_of_what_a_partition_has_not_passed(table: TableUnderTest) -> Intent:
    return purge_of(table, Position(1, 5))


def _floor_above_what_is_to_come(_before: Snapshot, after: Snapshot) -> bool:
    bound = purge_bound(after.manifest)
    return bound is not None and after.manifest.purge_floor >= bound


CELLS = {
    "purge: generation": Cell(
        rules.generation_is_current, None, _purge_of_a_deposed_driver, _generation_fell
    ),
    "purge: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _purge_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "purge: deltas": Cell(
        rules.nothing_waits_for_sources,
        ConflictCode.DELTAS,
        _purge_of_a_row_changed_meanwhile,
        _waits_for_no_row,
    ),
    "purge: floor": Cell(
        rules.floor_is_below_all_to_come,
        ConflictCode.FLOOR,
        _purge_of_what_a_partition_has_not_passed,
        _floor_above_what_is_to_come,
    ),
    "filemerge: generation": Cell(
        rules.generation_is_current, None, _file_merge_of_a_deposed_driver, _generation_fell
    ),
    "filemerge: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _file_merge_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "replay: generation": Cell(
        rules.generation_is_current, None, _replay_of_a_deposed_driver, _generation_fell
    ),
    "replay: version": Cell(
        rules.nothing_was_committed,
        ConflictCode.VERSION,
        _replay_of_keys_inserted_meanwhile,
        _keys_in_two_groups,
    ),
    "restore: generation": Cell(
        rules.generation_is_current, None, _restore_of_a_deposed_driver, _generation_fell
    ),
    "restore: version": Cell(
        rules.nothing_was_committed,
        ConflictCode.VERSION,
        _restore_of_a_version_that_expires_meanwhile,
        _files_of_an_expired_version,
    ),
    "ingest: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _ingest_of_files_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "upsert: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _upsert_of_files_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "splice: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _splice_of_files_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "merge: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _merge_into_a_run_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "expire: generation": Cell(
        rules.generation_is_current, None, _expiry_of_a_deposed_driver, _generation_fell
    ),
    "expire: retention": Cell(
        rules.retention_is_as_read,
        ConflictCode.RETENTION,
        _expiry_beside_another,
        _promised_what_is_deleted,
    ),
    "sweep: generation": Cell(
        rules.generation_is_current, None, _sweep_of_a_deposed_driver, _generation_fell
    ),
    "upsert: parked": Cell(
        rules.table_is_running,
        ConflictCode.PARKED,
        _upsert_overtaken_by_parking,
        _parked_and_written,
    ),
    "upsert: rows": Cell(
        rules.rows_are_as_read,
        ConflictCode.UPSERTS,
        _upsert_overtaken_by_another,
        _two_changes_at_one_position,
    ),
    "upsert: groups": Cell(
        rules.groups_are_live,
        ConflictCode.GROUPS,
        _upsert_for_a_group_that_is_gone,
        _changes_wait_for_no_row,
    ),
    "upsert: index": Cell(
        rules.index_has_no_newer_keys,
        ConflictCode.INDEX,
        _upsert_located_before_the_index_was_rebuilt,
        _rows_of_keys_that_were_there,
    ),
    "upsert: schema": Cell(
        rules.schema_is_as_written,
        ConflictCode.SCHEMA,
        _upsert_in_the_schema_before,
        _column_lost_in_new_rows,
    ),
    "ingest: generation": Cell(
        rules.generation_is_current, None, _ingest_of_a_deposed_driver, _generation_fell
    ),
    "ingest: parked": Cell(
        rules.table_is_running,
        ConflictCode.PARKED,
        _ingest_overtaken_by_parking,
        _went_on_though_parked,
    ),
    "ingest: offsets, replay": Cell(
        rules.offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_of_a_batch_committed_already,
        _batch_applied_twice,
    ),
    "ingest: offsets, topic": Cell(
        rules.offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_overtaken_by_a_reset,
        _reset_undone,
    ),
    "ingest: offsets, other partition": Cell(
        rules.offsets_continue,
        ConflictCode.OFFSETS,
        _ingest_overtaken_in_another_partition,
        _other_partition_fell_back,
    ),
    "ingest: groups": Cell(
        rules.groups_are_live,
        ConflictCode.GROUPS,
        _ingest_for_a_group_that_is_gone,
        _changes_wait_for_no_row,
    ),
    "ingest: index": Cell(
        rules.index_has_no_newer_keys,
        ConflictCode.INDEX,
        _insert_of_keys_inserted_meanwhile,
        _keys_in_two_groups,
    ),
    "ingest: schema": Cell(
        rules.schema_is_as_written,
        ConflictCode.SCHEMA,
        _ingest_in_the_schema_before,
        _column_lost_in_new_rows,
    ),
    "ingest: deltas": Cell(
        rules.moved_rows_are_as_read,
        ConflictCode.DELTAS,
        _move_of_a_row_that_a_delta_came_for,
        _moved_below_its_position,
    ),
    "splice: generation": Cell(
        rules.generation_is_current, None, _splice_of_a_deposed_driver, _generation_fell
    ),
    "splice: layout": Cell(
        rules.layout_is_as_written,
        ConflictCode.FILES,
        _splice_of_columns_renamed_meanwhile,
        _in_the_former_layout,
    ),
    "filemerge: layout": Cell(
        rules.layout_is_as_written,
        ConflictCode.FILES,
        _file_merge_of_columns_renamed_meanwhile,
        _in_the_former_layout,
    ),
    "purge: layout": Cell(
        rules.layout_is_as_written,
        ConflictCode.FILES,
        _purge_of_columns_renamed_meanwhile,
        _in_the_former_layout,
    ),
    "splice: deltas": Cell(
        rules.consumed_parts_still_wait,
        ConflictCode.DELTAS,
        _splice_of_a_delta_consumed_meanwhile,
        _spliced_on,
    ),
    "merge: generation": Cell(
        rules.generation_is_current, None, _merge_of_a_deposed_driver, _generation_fell
    ),
    "evolve: generation": Cell(
        rules.generation_is_current, None, _evolve_of_a_deposed_driver, _generation_fell
    ),
    "evolve: files": Cell(
        rules.files_are_as_read,
        ConflictCode.FILES,
        _evolve_with_a_file_come_meanwhile,
        _evolved_unseen,
    ),
    "evolve: deltas": Cell(
        rules.deltas_are_as_read,
        ConflictCode.DELTAS,
        _evolve_with_a_delta_come_meanwhile,
        _evolved_unseen,
    ),
    "evolve: schema": Cell(
        rules.schema_is_the_one_before,
        ConflictCode.SCHEMA,
        _evolve_of_a_schema_evolved_meanwhile,
        _column_swallowed,
    ),
    "evolve: swept": Cell(
        rules.writer_began_after_sweep,
        ConflictCode.SWEPT,
        _evolve_of_files_swept_meanwhile,
        _names_what_may_be_deleted,
    ),
    "redirect: generation": Cell(
        rules.generation_is_current, None, _redirect_of_a_deposed_driver, _generation_fell
    ),
    "redirect: version": Cell(
        rules.nothing_was_committed,
        ConflictCode.VERSION,
        _reset_after_a_later_ingest,
        _offsets_fell_back,
    ),
}

# Without these a late commit would name a file or a run that is not in the manifest any more; the
# transition then breaks off, or would write a file's rows into the table a second time.
BREAKING = {
    "ingest: files": Cell(
        rules.sources_are_unchanged,
        ConflictCode.FILES,
        _ingest_that_moves_rows_of_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
    "purge: files": Cell(
        rules.sources_are_unchanged,
        ConflictCode.FILES,
        _purge_of_a_file_spliced_meanwhile,
        lambda _before, _after: False,
    ),
    "filemerge: files": Cell(
        rules.sources_are_unchanged,
        ConflictCode.FILES,
        _file_merge_of_a_file_spliced_meanwhile,
        lambda _before, _after: False,
    ),
    "splice: files": Cell(
        rules.sources_are_unchanged,
        ConflictCode.FILES,
        _splice_of_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
    "merge: runs": Cell(
        rules.inputs_are_adjacent,
        ConflictCode.RUNS,
        _merge_of_runs_rebuilt_meanwhile,
        lambda _before, _after: False,
    ),
}


@pytest.fixture
def table(tmp_path: Path, request: pytest.FixtureRequest) -> TableUnderTest:
    table = local_table(tmp_path)
    name = getattr(request.node, "callspec", None)
    if name is not None and str(name.params["name"]).startswith("upsert"):
        rows = {"files": (table.file(1),), "runs": (table.run(),)}
        table.create(source=None, upserts=UpsertState(0), **rows)
        return table
    table.create()
    table.committed(table.ingest(0, files=(table.file(1),), runs=(table.run(), table.run())))
    return table


@pytest.mark.parametrize("name", [*CELLS, *BREAKING])
def test_a_late_commit_is_refused_and_changes_nothing(table: TableUnderTest, name: str) -> None:
    cell = (CELLS | BREAKING)[name]
    intent = cell.late(table)
    before = table.now()
    if cell.reason is None:
        with pytest.raises(FencedError):
            table.commit(intent)
    else:
        outcome = table.commit(intent)
        assert isinstance(outcome, Conflict)
        assert outcome.reason is cell.reason
    assert table.now() == before


@pytest.mark.parametrize("name", CELLS)
def test_without_its_precondition_a_late_commit_does_harm(
    table: TableUnderTest, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = CELLS[name]
    intent = cell.late(table)
    before = table.now()
    _drop(monkeypatch, intent, cell)
    outcome = table.commit(intent)
    assert isinstance(outcome, Committed)
    assert cell.harm(before, table.now())


@pytest.mark.parametrize("name", BREAKING)
def test_without_its_precondition_a_late_commit_breaks_off(
    table: TableUnderTest, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = BREAKING[name]
    intent = cell.late(table)
    _drop(monkeypatch, intent, cell)
    with pytest.raises((KeyError, ValueError)):
        table.commit(intent)


def test_every_precondition_of_every_intent_has_its_cell(table: TableUnderTest) -> None:
    prefixes = {
        "ingest": Ingest,
        "upsert": Upsert,
        "splice": Splice,
        "merge": IndexMerge,
        "evolve": Evolve,
        "redirect": Redirect,
        "replay": Replay,
        "expire": Expire,
        "sweep": Sweep,
        "restore": Restore,
        "filemerge": FileMerge,
        "purge": Purge,
    }
    cells = CELLS | BREAKING
    tested = {(prefixes[name.partition(":")[0]], cell.precondition) for name, cell in cells.items()}
    stated = {
        (kind, precondition)
        for kind, preconditions in commits.PRECONDITIONS.items()
        for precondition in preconditions
    }
    assert tested == stated
    assert Create not in commits.PRECONDITIONS


def _drop(monkeypatch: pytest.MonkeyPatch, intent: Intent, cell: Cell) -> None:
    kind = type(intent)
    kept = tuple(p for p in commits.PRECONDITIONS[kind] if p is not cell.precondition)
    assert len(kept) == len(commits.PRECONDITIONS[kind]) - 1
    monkeypatch.setattr(commits, "PRECONDITIONS", {**commits.PRECONDITIONS, kind: kept})
