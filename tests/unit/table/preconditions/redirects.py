"""Preconditions of commits that change a table's schema, offsets or parking."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import Evolve, Intent, Redirect, SetChangeFeed
from lakesplice.table.protocol.preconditions.files import (
    deltas_are_as_read,
    files_are_as_read,
    writer_began_after_sweep,
)
from lakesplice.table.protocol.preconditions.tables import (
    feed_is_the_other_way,
    generation_is_current,
    nothing_was_committed,
    schema_is_the_one_before,
)
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import SCHEMA, TableUnderTest
from tests.unit.table.preconditions.cell import (
    PARKED,
    SCORE,
    Cell,
    feed_begun_since,
    generation_fell,
    names_what_may_be_deleted,
    swept_since,
)

FLAG = Column(3, "flag", "flag", ColumnType(Primitive.BOOLEAN), "tinyint(1)")


def _evolve_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    late = Evolve.of(1, table.now().manifest, SCHEMA.with_columns([SCORE], SCHEMA.key))
    table.committed(replace(table.ingest(0), generation=2))
    return late


def _redirect_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    snapshot = table.committed(replace(table.ingest(0), generation=2))
    return Redirect(1, snapshot.version, parked=PARKED)


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


def _evolve_of_files_swept_meanwhile(table: TableUnderTest) -> Intent:
    now = table.now()
    replaced = table.splice().replaced
    grown = SCHEMA.with_columns([SCORE], SCHEMA.key)
    return swept_since(table, Evolve.of(1, now.manifest, grown, replaced, now.version))


def _feed_of_a_deposed_driver(table: TableUnderTest) -> Intent:
    table.committed(replace(table.ingest(), generation=2))
    return SetChangeFeed(1, on=True)


def _feed_that_began_already(table: TableUnderTest) -> Intent:
    return feed_begun_since(table, SetChangeFeed(1, on=True))


def _earlier_versions_lost_their_feed(before: Snapshot, after: Snapshot) -> bool:
    then, now = before.manifest.feed, after.manifest.feed
    return then is not None and now is not None and now.since > then.since


CELLS = {
    "evolve: generation": Cell(
        generation_is_current, None, _evolve_of_a_deposed_driver, generation_fell
    ),
    "evolve: files": Cell(
        files_are_as_read,
        ConflictCode.FILES,
        _evolve_with_a_file_come_meanwhile,
        _evolved_unseen,
    ),
    "evolve: deltas": Cell(
        deltas_are_as_read,
        ConflictCode.DELTAS,
        _evolve_with_a_delta_come_meanwhile,
        _evolved_unseen,
    ),
    "evolve: schema": Cell(
        schema_is_the_one_before,
        ConflictCode.SCHEMA,
        _evolve_of_a_schema_evolved_meanwhile,
        _column_swallowed,
    ),
    "evolve: swept": Cell(
        writer_began_after_sweep,
        ConflictCode.SWEPT,
        _evolve_of_files_swept_meanwhile,
        names_what_may_be_deleted,
    ),
    "feed: generation": Cell(
        generation_is_current, None, _feed_of_a_deposed_driver, generation_fell
    ),
    "feed: other way": Cell(
        feed_is_the_other_way,
        ConflictCode.FEED,
        _feed_that_began_already,
        _earlier_versions_lost_their_feed,
    ),
    "redirect: generation": Cell(
        generation_is_current, None, _redirect_of_a_deposed_driver, generation_fell
    ),
    "redirect: version": Cell(
        nothing_was_committed,
        ConflictCode.VERSION,
        _reset_after_a_later_ingest,
        _offsets_fell_back,
    ),
}
