"""Preconditions of upserts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lakesplice.model.manifest import UpsertState
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import (
    Evolve,
    Intent,
    Redirect,
    ReplaceTable,
    SetConstraints,
    Upsert,
)
from lakesplice.table.protocol.preconditions.files import (
    consumed_parts_still_wait,
    images_were_made,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.rows import (
    groups_are_live,
    index_has_no_newer_keys,
    rows_are_as_read,
    schema_is_as_written,
    table_is_running,
)
from lakesplice.table.protocol.preconditions.tables import nothing_was_committed
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
    names_what_may_be_deleted,
    swept_since,
)


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


def merged_upsert(table: TableUnderTest) -> Upsert:
    """An upsert whose changes are merged into the one file there is, with all that waits for it."""
    splice = table.splice()
    return upsert(table, replaced=splice.replaced, consumed=splice.consumed)


def _upsert_into_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = merged_upsert(table)
    table.committed(table.splice())
    return late


def _upsert_with_a_delta_consumed_meanwhile(table: TableUnderTest) -> Intent:
    table.committed(upsert(table, deltas=(table.delta(1),), addressed_groups=frozenset({1})))
    consumed = table.splice().consumed
    # By a compaction that found nothing new in it, and left the file.
    table.committed(replace(table.splice(), replaced={}))
    return replace(merged_upsert(table), consumed=consumed)


def _spliced_on(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.files.keys() != before.manifest.files.keys()


def _upsert_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    return swept_since(table, upsert(table, files=(table.file(9),)))


def _upsert_that_makes_no_images_for_a_feed(table: TableUnderTest) -> Intent:
    return feed_begun_since(table, upsert(table, replaced=table.splice().replaced))


def _constraints_overtaken_by_an_upsert(table: TableUnderTest) -> Intent:
    now = table.now().manifest.upserts
    assert now is not None
    late = SetConstraints(1, now.position, replace(now, checks={"small": "n < 9"}))
    table.committed(upsert(table))
    return late


def _rows_that_nobody_checked(before: Snapshot, after: Snapshot) -> bool:
    upserts = after.manifest.upserts
    return 9 in before.manifest.groups and upserts is not None and bool(upserts.checks)


def _replacement_overtaken_by_an_upsert(table: TableUnderTest) -> Intent:
    now = table.now()
    late = ReplaceTable(1, now.version, SCHEMA, UpsertState(now.version + 1))
    table.committed(upsert(table))
    return late


def _rows_lost_that_nobody_read(before: Snapshot, after: Snapshot) -> bool:
    return 9 in before.manifest.groups and not after.manifest.groups


CELLS = {
    "replace: version": Cell(
        nothing_was_committed,
        ConflictCode.VERSION,
        _replacement_overtaken_by_an_upsert,
        _rows_lost_that_nobody_read,
    ),
    "constraints: rows": Cell(
        rows_are_as_read,
        ConflictCode.UPSERTS,
        _constraints_overtaken_by_an_upsert,
        _rows_that_nobody_checked,
    ),
    "upsert: images": Cell(
        images_were_made,
        ConflictCode.FILES,
        _upsert_that_makes_no_images_for_a_feed,
        changed_without_images,
    ),
    "upsert: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        _upsert_of_files_swept_meanwhile,
        names_what_may_be_deleted,
    ),
    "upsert: parked": Cell(
        table_is_running,
        ConflictCode.PARKED,
        _upsert_overtaken_by_parking,
        _parked_and_written,
    ),
    "upsert: rows": Cell(
        rows_are_as_read,
        ConflictCode.UPSERTS,
        _upsert_overtaken_by_another,
        _two_changes_at_one_position,
    ),
    "upsert: deltas": Cell(
        consumed_parts_still_wait,
        ConflictCode.DELTAS,
        _upsert_with_a_delta_consumed_meanwhile,
        _spliced_on,
    ),
    "upsert: groups": Cell(
        groups_are_live,
        ConflictCode.GROUPS,
        _upsert_for_a_group_that_is_gone,
        changes_wait_for_no_row,
    ),
    "upsert: index": Cell(
        index_has_no_newer_keys,
        ConflictCode.INDEX,
        _upsert_located_before_the_index_was_rebuilt,
        _rows_of_keys_that_were_there,
    ),
    "upsert: schema": Cell(
        schema_is_as_written,
        ConflictCode.SCHEMA,
        _upsert_in_the_schema_before,
        column_lost_in_new_rows,
    ),
}
BREAKING = {
    "upsert: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        _upsert_into_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
}
