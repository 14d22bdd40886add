"""Preconditions of an erasure, and of the end of older versions."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.manifest import ErasedRef, FileRef, Pin
from lakesplice.model.moments import EpochMs
from lakesplice.model.position import Position
from lakesplice.table.protocol.intents import (
    ChangePins,
    EndVersions,
    Erase,
    Expire,
    Intent,
    Redirect,
    Rewritten,
)
from lakesplice.table.protocol.outcomes import ConflictCode
from lakesplice.table.protocol.preconditions.files import (
    erased_keys_are_as_read,
    layout_is_as_written,
    nothing_is_pinned,
    nothing_waits_for_sources,
    rewritten_files_are_live,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.tables import (
    generation_is_current,
    retention_is_as_read,
)
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import TableUnderTest
from tests.unit.table.preconditions.cell import (
    Cell,
    changes_wait_for_no_row,
    column_renamed_since,
    driver_changed_since,
    generation_fell,
    names_what_may_be_deleted,
    other_files,
    row_changed_since,
    spliced_since,
    swept_since,
)


def erasure_of(table: TableUnderTest, **changes: object) -> Erase:
    """An erasure of all there is but two rows."""
    now = table.now()
    intent = Erase(
        generation=1,
        inputs=tuple(now.manifest.files),
        outputs=(table.file(5, 2),),
        run=table.run(),
        rewritten=Rewritten(),
        keys=frozenset(),
        erased=None,
        read=now.manifest.erased,
        planned_on=now.version,
        schema_version=now.manifest.schema.version,
    )
    return replace(intent, **changes)  # type: ignore[arg-type]  # of any fields


def _of_columns_renamed_meanwhile(table: TableUnderTest) -> Intent:
    late = erasure_of(table)
    column_renamed_since(table, late)
    return late


def _of_an_index_rebuilt_meanwhile(table: TableUnderTest) -> Intent:
    first = table.now().manifest.runs[0].file.path
    late = erasure_of(table, rewritten=Rewritten(runs={first: table.run()}))
    table.committed(Redirect(1, table.now().version, runs=(table.run(),)))
    return late


def _index_keeps_what_was_erased(before: Snapshot, after: Snapshot) -> bool:
    return {run.file.path for run in before.manifest.runs} <= {
        run.file.path for run in after.manifest.runs
    }


def _beside_a_pin(table: TableUnderTest) -> Intent:
    late = erasure_of(table)
    pin = Pin("p", 1, EpochMs(0), FileRef("_lakesplice/pins/0.json", 1, ""))
    table.committed(ChangePins(1, table.now().manifest.retention, (pin,), "PIN"))
    return late


def _a_pin_keeps_the_rows(_before: Snapshot, after: Snapshot) -> bool:
    return bool(after.manifest.retention.pins)


def _beside_another_erasure(table: TableUnderTest) -> Intent:
    late = erasure_of(table, inputs=(), outputs=(), run=None)
    other = ErasedRef(FileRef("_lakesplice/erased/0.json", 1, ""), 1, Position(0, 1))
    table.committed(erasure_of(table, inputs=(), outputs=(), run=None, erased=other))
    return late


def _keys_are_forgotten(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.erased is not None and after.manifest.erased is None


def _end_by_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(0), generation=2))
    return EndVersions(1, table.now().manifest.retention, 0)


def _end_beside_a_vacuum(table: TableUnderTest) -> Intent:
    late = EndVersions(1, table.now().manifest.retention, 0)
    table.committed(Expire(1, table.now().manifest.retention, 1, 1))
    return late


def _vacuums_again(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.retention.vacuumed < before.manifest.retention.vacuumed


CELLS = {
    "erase: generation": Cell(
        generation_is_current,
        None,
        lambda table: driver_changed_since(table, erasure_of(table)),
        generation_fell,
    ),
    "erase: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        lambda table: swept_since(table, erasure_of(table)),
        names_what_may_be_deleted,
    ),
    "erase: deltas": Cell(
        nothing_waits_for_sources,
        ConflictCode.DELTAS,
        lambda table: row_changed_since(table, erasure_of(table)),
        changes_wait_for_no_row,
    ),
    "erase: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        _of_columns_renamed_meanwhile,
        other_files,
    ),
    "erase: rewritten": Cell(
        rewritten_files_are_live,
        ConflictCode.FILES,
        _of_an_index_rebuilt_meanwhile,
        _index_keeps_what_was_erased,
    ),
    "erase: pins": Cell(
        nothing_is_pinned, ConflictCode.RETENTION, _beside_a_pin, _a_pin_keeps_the_rows
    ),
    "erase: erased": Cell(
        erased_keys_are_as_read,
        ConflictCode.RETENTION,
        _beside_another_erasure,
        _keys_are_forgotten,
    ),
    "end: generation": Cell(generation_is_current, None, _end_by_a_deposed_driver, generation_fell),
    "end: retention": Cell(
        retention_is_as_read, ConflictCode.RETENTION, _end_beside_a_vacuum, _vacuums_again
    ),
}
BREAKING = {
    "erase: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        lambda table: spliced_since(table, erasure_of(table)),
        lambda _before, _after: False,
    ),
}
