"""Preconditions of commits that fill a shadow, and of the swap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.model.progress.backfill import BackfillState
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import Backfill, Evolve, Intent, Redirect, Swap
from lakesplice.table.protocol.preconditions.files import (
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.rows import (
    chunks_are_open,
    fence_is_as_read,
    groups_are_live,
    index_has_no_newer_keys,
    moved_rows_are_as_read,
    schema_is_as_written,
    table_is_running,
)
from lakesplice.table.protocol.preconditions.tables import (
    generation_is_current,
    nothing_was_committed,
)
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import SCHEMA, SOURCE, TableUnderTest
from tests.unit.table.preconditions.cell import (
    PARKED,
    SCORE,
    Cell,
    changes_wait_for_no_row,
    column_lost_in_new_rows,
    generation_fell,
    names_what_may_be_deleted,
    swept_since,
)

CHUNKS = BackfillState(3)
READ_AT = Position(1, 50)


def _chunk(table: TableUnderTest, **changes: Any) -> Backfill:
    now = table.now()
    groups = frozenset(g for delta in changes.get("deltas", ()) for g in delta.waiting)
    intent = Backfill(
        generation=now.manifest.generation,
        planned_on=now.version,
        topic=SOURCE.topic,
        chunks=frozenset((0,)),
        highest=READ_AT,
        read_rows=3,
        fence=BEFORE_ALL,
        schema_version=now.manifest.schema.version,
        addressed_groups=groups,
    )
    return replace(intent, **changes)


def _of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = _chunk(table, files=(table.file(9),))
    table.committed(replace(table.ingest(0), generation=2))
    return late


def _overtaken_by_parking(table: TableUnderTest) -> Intent:
    late = _chunk(table, files=(table.file(9),))
    table.committed(Redirect(1, table.now().version, parked=PARKED))
    return late


def _filled_though_parked(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.parked is not None and 9 in after.manifest.groups


def _added_already(table: TableUnderTest) -> Intent:
    # Of rows that were there, so that no other precondition notices the repetition.
    late = _chunk(table, deltas=(table.delta(1),))
    table.committed(late)
    return replace(late, deltas=(table.delta(1),))


def _added_twice(before: Snapshot, after: Snapshot) -> bool:
    backfill = after.manifest.backfill
    return backfill is not None and (backfill.done_count, backfill.rows) == (1, 6)


def _truncated_meanwhile(table: TableUnderTest) -> Intent:
    late = _chunk(table, files=(table.file(9),))
    source = table.now().manifest.source
    assert source is not None
    fenced = replace(source, fence=Position(1, 60))
    table.committed(table.ingest(0, source_to=fenced))
    return late


def _rows_from_before_the_fence(before: Snapshot, after: Snapshot) -> bool:
    source, backfill = after.manifest.source, after.manifest.backfill
    assert source is not None
    assert backfill is not None
    return 9 in after.manifest.groups and backfill.highest < source.fence


def _for_a_group_that_is_gone(table: TableUnderTest) -> Intent:
    return _chunk(table, deltas=(table.delta(404),))


def _of_keys_inserted_meanwhile(table: TableUnderTest) -> Intent:
    late = _chunk(table, files=(table.file(9),), runs=(table.run(),))
    table.committed(table.ingest(files=(table.file(8),), runs=(table.run(),)))
    return late


def _keys_in_two_groups(before: Snapshot, after: Snapshot) -> bool:
    return {8, 9} <= after.manifest.groups


def _in_the_schema_before(table: TableUnderTest) -> Intent:
    late = _chunk(table, files=(table.file(9),))
    table.committed(Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], ("id",))))
    return late


def _move_of_a_row_that_a_delta_came_for(table: TableUnderTest) -> Intent:
    late = _chunk(table, deltas=(table.delta(1),), files=(table.file(9),), read=frozenset())
    table.committed(table.ingest(deltas=(table.delta(1),)))
    return late


def _moved_below_its_position(before: Snapshot, after: Snapshot) -> bool:
    return len(after.manifest.deltas) == 2 and 9 in after.manifest.groups


def _that_moves_rows_of_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = _chunk(table, replaced=table.splice().replaced)
    table.committed(replace(table.splice(), consumed={}))
    return late


def _of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return swept_since(table, _chunk(table, files=(table.file(9),)))


def _swap(table: TableUnderTest) -> Swap:
    now, new = table.now(), table.file(9)
    files = {new.base.path: new.base}
    whole = BackfillState(1, ((0, 1),))
    manifest = replace(now.manifest, files=files, runs=(), backfill=whole)
    return Swap(now.manifest.generation, now.version, manifest, {new.base.path: None})


def _swap_by_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = _swap(table)
    snapshot = table.committed(replace(table.ingest(0), generation=2))
    return replace(late, planned_on=snapshot.version)


def _swap_overtaken_by_an_ingest(table: TableUnderTest) -> Intent:
    late = _swap(table)
    table.committed(table.ingest(files=(table.file(8),)))
    return late


def _ingest_undone(before: Snapshot, after: Snapshot) -> bool:
    return 8 in before.manifest.groups and 8 not in after.manifest.groups


CELLS = {
    "backfill: generation": Cell(
        generation_is_current, None, _of_a_deposed_driver, generation_fell
    ),
    "backfill: parked": Cell(
        table_is_running, ConflictCode.PARKED, _overtaken_by_parking, _filled_though_parked
    ),
    "backfill: chunks": Cell(chunks_are_open, ConflictCode.CHUNKS, _added_already, _added_twice),
    "backfill: fence": Cell(
        fence_is_as_read,
        ConflictCode.FENCE,
        _truncated_meanwhile,
        _rows_from_before_the_fence,
    ),
    "backfill: groups": Cell(
        groups_are_live,
        ConflictCode.GROUPS,
        _for_a_group_that_is_gone,
        changes_wait_for_no_row,
    ),
    "backfill: index": Cell(
        index_has_no_newer_keys,
        ConflictCode.INDEX,
        _of_keys_inserted_meanwhile,
        _keys_in_two_groups,
    ),
    "backfill: schema": Cell(
        schema_is_as_written,
        ConflictCode.SCHEMA,
        _in_the_schema_before,
        column_lost_in_new_rows,
    ),
    "backfill: deltas": Cell(
        moved_rows_are_as_read,
        ConflictCode.DELTAS,
        _move_of_a_row_that_a_delta_came_for,
        _moved_below_its_position,
    ),
    "backfill: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        _of_files_swept_meanwhile,
        names_what_may_be_deleted,
    ),
    "swap: generation": Cell(
        generation_is_current, None, _swap_by_a_deposed_driver, generation_fell
    ),
    "swap: version": Cell(
        nothing_was_committed,
        ConflictCode.VERSION,
        _swap_overtaken_by_an_ingest,
        _ingest_undone,
    ),
}
BREAKING = {
    "backfill: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        _that_moves_rows_of_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
}
