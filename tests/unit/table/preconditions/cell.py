"""A late commit, the precondition that refuses it, and the harm that it would do without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.model.schema import Column
from lakesplice.model.types import ColumnType, Primitive
from lakesplice.planning.upkeep.retention import files_by_path
from lakesplice.table.protocol.commit import ConflictCode
from lakesplice.table.protocol.intents import (
    Cluster,
    Erase,
    Evolve,
    FileMerge,
    Intent,
    Purge,
    SetChangeFeed,
    Splice,
    Sweep,
)
from lakesplice.table.protocol.snapshot import Snapshot
from tests.support.tables import TableUnderTest

SCORE = Column(3, "score", "score", ColumnType(Primitive.DOUBLE), "double")
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


def generation_fell(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.generation < before.manifest.generation


def changes_wait_for_no_row(before: Snapshot, after: Snapshot) -> bool:
    waiting = {group for delta in after.manifest.deltas for group in delta.waiting}
    return not waiting <= after.manifest.groups


def column_lost_in_new_rows(before: Snapshot, after: Snapshot) -> bool:
    return after.manifest.schema.version == 1 and 9 in after.manifest.groups


def swept_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(Sweep(1))
    return late


def names_what_may_be_deleted(before: Snapshot, after: Snapshot) -> bool:
    return files_by_path(after.manifest).keys() - files_by_path(before.manifest).keys() != set()


def driver_changed_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(replace(table.ingest(), generation=2))
    return late


def spliced_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(table.splice())
    return late


def row_changed_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(table.ingest(deltas=(table.delta(1),)))
    return late


def column_renamed_since(
    table: TableUnderTest, late: Cluster | Erase | FileMerge | Purge | Splice
) -> Intent:
    schema = table.now().manifest.schema
    column = replace(schema.columns[-1], name="renamed")
    table.committed(Evolve.of(1, table.now().manifest, schema.with_columns((), ("id",), [column])))
    return replace(late, schema_version=schema.version)


def other_files(before: Snapshot, after: Snapshot) -> bool:
    return before.manifest.files.keys() != after.manifest.files.keys()


def feed_begun_since(table: TableUnderTest, late: Intent) -> Intent:
    table.committed(SetChangeFeed(1, on=True))
    return late


def changed_without_images(before: Snapshot, after: Snapshot) -> bool:
    """Readers of the feed would take all rows of these files for changed."""
    feed = after.manifest.feed
    return feed is not None and not feed.files and before.manifest.files != after.manifest.files
