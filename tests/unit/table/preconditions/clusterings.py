"""Preconditions of commits that move rows to other file groups, with what waits for them."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import Cluster, Evolve, Intent
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
    generation_fell,
    names_what_may_be_deleted,
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


def _of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = _clustering_of(table)
    table.committed(replace(table.ingest(), generation=2))
    return late


def _swept_meanwhile(table: TableUnderTest) -> Intent:
    return swept_since(table, _clustering_of(table))


def _of_a_file_spliced_meanwhile(table: TableUnderTest) -> Intent:
    late = _clustering_of(table)
    table.committed(table.splice())
    return late


def _of_a_row_changed_meanwhile(table: TableUnderTest) -> Intent:
    late = _clustering_of(table)
    table.committed(table.ingest(deltas=(table.delta(1),)))
    return late


def _of_columns_renamed_meanwhile(table: TableUnderTest) -> Intent:
    late, schema = _clustering_of(table), table.now().manifest.schema
    column = replace(schema.columns[-1], name="renamed")
    table.committed(Evolve.of(1, table.now().manifest, schema.with_columns((), ("id",), [column])))
    return replace(late, schema_version=schema.version)


CELLS = {
    "cluster: generation": Cell(generation_is_current, None, _of_a_deposed_driver, generation_fell),
    "cluster: swept": Cell(
        writer_began_after_sweep, ConflictCode.SWEPT, _swept_meanwhile, names_what_may_be_deleted
    ),
    "cluster: layout": Cell(
        layout_is_as_written,
        ConflictCode.FILES,
        _of_columns_renamed_meanwhile,
        lambda before, after: before.manifest.files.keys() != after.manifest.files.keys(),
    ),
    "cluster: deltas": Cell(
        changes_are_as_carried,
        ConflictCode.DELTAS,
        _of_a_row_changed_meanwhile,
        changes_wait_for_no_row,
    ),
}
# Without it the rows of a replaced file would be in the table twice; the transition breaks off.
BREAKING = {
    "cluster: files": Cell(
        sources_are_unchanged,
        ConflictCode.FILES,
        _of_a_file_spliced_meanwhile,
        lambda _before, _after: False,
    ),
}
