"""Preconditions of commits that move rows to other file groups, with what waits for them."""

from __future__ import annotations

from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import Cluster
from lakesplice.table.protocol.preconditions.files import (
    changes_are_as_carried,
    layout_is_as_written,
    sources_are_unchanged,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.tables import generation_is_current
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


def _clustering_of(table: TableUnderTest) -> Cluster:
    snapshot = table.now()
    return Cluster(
        generation=1,
        inputs=tuple(snapshot.manifest.files),
        outputs=(table.file(5),),
        run=table.run(),
        taken={},
        carried={},
        planned_on=snapshot.version,
    )


CELLS = {
    "cluster: generation": Cell(
        generation_is_current,
        None,
        lambda table: driver_changed_since(table, _clustering_of(table)),
        generation_fell,
    ),
    "cluster: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        lambda table: swept_since(table, _clustering_of(table)),
        names_what_may_be_deleted,
    ),
    "cluster: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        lambda table: column_renamed_since(table, _clustering_of(table)),
        other_files,
    ),
    "cluster: deltas": Cell(
        changes_are_as_carried,
        ConflictCode.DELTAS,
        lambda table: row_changed_since(table, _clustering_of(table)),
        changes_wait_for_no_row,
    ),
}
# Without it the rows of a replaced file would be in the table twice; the transition breaks off.
BREAKING = {
    "cluster: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        lambda table: spliced_since(table, _clustering_of(table)),
        lambda _before, _after: False,
    ),
}
