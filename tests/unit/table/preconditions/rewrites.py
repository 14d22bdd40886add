"""Preconditions of commits that rewrite files: splices, merges and purges."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.position import BEFORE_ALL, Position
from lakesplice.planning.upkeep.purging import purge_bound
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import (
    FileMerge,
    IndexMerge,
    Intent,
    Purge,
    Redirect,
)
from lakesplice.table.protocol.preconditions.files import (
    consumed_parts_still_wait,
    floor_is_below_all_to_come,
    images_were_made,
    inputs_are_adjacent,
    layout_is_as_written,
    nothing_waits_for_sources,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.tables import generation_is_current
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import TableUnderTest
from tests.unit.table.preconditions.cell import (
    Cell,
    changed_without_images,
    changes_wait_for_no_row,
    column_renamed_since,
    driver_changed_since,
    feed_begun_since,
    generation_fell,
    names_what_may_be_deleted,
    other_files,
    row_changed_since,
    spliced_since,
    swept_since,
)


def _merge_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    return driver_changed_since(table, IndexMerge(1, inputs, table.run()))


def _splice_of_a_file_replaced_meanwhile(table: TableUnderTest) -> Intent:
    late = table.splice()
    table.committed(replace(table.splice(), consumed={}))
    return replace(late, consumed={})


def _splice_of_a_delta_consumed_meanwhile(table: TableUnderTest) -> Intent:
    table.committed(table.ingest(deltas=(table.delta(1),)))
    first = table.splice()
    table.committed(first)
    # Planned on the replaced file by a process that missed only what was consumed.
    return replace(table.splice(), consumed=first.consumed)


def _merge_of_runs_rebuilt_meanwhile(table: TableUnderTest) -> Intent:
    inputs = tuple(run.file.path for run in table.now().manifest.runs)
    late = IndexMerge(1, inputs, table.run())
    table.committed(Redirect(1, table.now().version, runs=(table.run(), table.run())))
    return late


def _merge_into_a_run_swept_meanwhile(table: TableUnderTest) -> Intent:
    now = table.now()
    inputs = tuple(run.file.path for run in now.manifest.runs)
    return swept_since(table, IndexMerge(1, inputs, table.run(), now.version))


def merge_of_files(table: TableUnderTest) -> FileMerge:
    """A merge of the one file there is: what is merged does not matter here."""
    now = table.now()
    (file,) = now.manifest.files.values()
    return FileMerge(1, (file.path,), table.next_file(file), planned_on=now.version)


def purge_of(table: TableUnderTest, floor: Position = BEFORE_ALL) -> Purge:
    snapshot = table.now()
    inputs = tuple(snapshot.manifest.files)
    floors = dict.fromkeys(snapshot.manifest.sources, floor)
    return Purge(1, inputs, (table.file(5, 2),), table.run(), floors, snapshot.version)


def _floor_above_what_is_to_come(_before: Snapshot, after: Snapshot) -> bool:
    bound = purge_bound(after.manifest)
    return bound is not None and after.manifest.purge_floor >= bound


CELLS = {
    "splice: images": Cell(
        images_were_made,
        ConflictCode.FILES,
        lambda table: feed_begun_since(table, table.splice()),
        changed_without_images,
    ),
    "purge: generation": Cell(
        generation_is_current,
        None,
        lambda table: driver_changed_since(table, purge_of(table)),
        generation_fell,
    ),
    "purge: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        lambda table: swept_since(table, purge_of(table)),
        names_what_may_be_deleted,
    ),
    "purge: deltas": Cell(
        nothing_waits_for_sources,
        ConflictCode.DELTAS,
        lambda table: row_changed_since(table, purge_of(table)),
        changes_wait_for_no_row,
    ),
    "purge: floor": Cell(
        floor_is_below_all_to_come,
        ConflictCode.FLOOR,
        lambda table: purge_of(table, Position(1, 5)),
        _floor_above_what_is_to_come,
    ),
    "filemerge: generation": Cell(
        generation_is_current,
        None,
        lambda table: driver_changed_since(table, merge_of_files(table)),
        generation_fell,
    ),
    "filemerge: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        lambda table: swept_since(table, merge_of_files(table)),
        names_what_may_be_deleted,
    ),
    "splice: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        lambda table: swept_since(table, table.splice()),
        names_what_may_be_deleted,
    ),
    "merge: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        _merge_into_a_run_swept_meanwhile,
        names_what_may_be_deleted,
    ),
    "splice: generation": Cell(
        generation_is_current,
        None,
        lambda table: driver_changed_since(table, table.splice()),
        generation_fell,
    ),
    "splice: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        lambda table: column_renamed_since(table, replace(table.splice(), consumed={})),
        other_files,
    ),
    "filemerge: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        lambda table: column_renamed_since(table, merge_of_files(table)),
        other_files,
    ),
    "purge: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        lambda table: column_renamed_since(table, purge_of(table)),
        other_files,
    ),
    "splice: deltas": Cell(
        consumed_parts_still_wait,
        ConflictCode.DELTAS,
        _splice_of_a_delta_consumed_meanwhile,
        other_files,
    ),
    "merge: generation": Cell(
        generation_is_current, None, _merge_of_a_deposed_driver, generation_fell
    ),
}


# Without these a late commit would name a file or a run that is not in the manifest any more; the
# transition then breaks off, or would write a file's rows into the table a second time.
BREAKING = {
    "purge: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        lambda table: spliced_since(table, purge_of(table)),
        lambda _before, _after: False,
    ),
    "filemerge: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        lambda table: spliced_since(table, merge_of_files(table)),
        lambda _before, _after: False,
    ),
    "splice: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        _splice_of_a_file_replaced_meanwhile,
        lambda _before, _after: False,
    ),
    "merge: runs": Cell(
        inputs_are_adjacent,
        ConflictCode.RUNS,
        _merge_of_runs_rebuilt_meanwhile,
        lambda _before, _after: False,
    ),
}
