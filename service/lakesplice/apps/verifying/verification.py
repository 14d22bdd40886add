"""Compares one table with its source, from sums of all rows down to the rows that differ."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from lakesplice.apps.verifying.catch_up import CatchUp, epoch_of, newest_position
from lakesplice.apps.verifying.compared_sides import ChangedMeanwhileError, ComparedSides
from lakesplice.apps.verifying.compared_table import (
    ComparedTable,
    NotComparable,
    compared_table,
)
from lakesplice.apps.verifying.differences import (
    FoundDifferences,
    differing_keys,
    proven_differences,
)
from lakesplice.apps.verifying.lake_rows import lake_sums
from lakesplice.apps.verifying.read_limit import ReadLimit
from lakesplice.apps.verifying.repairing import rows_to_repair, why_not_repaired
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.source_sums import SourceSums, add_source_sums
from lakesplice.apps.verifying.stored_sums import StoredSums
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName, possible_tables
from lakesplice.planning.source_rows.checksums import BUCKETS, BucketSums
from lakesplice.storage.source.rows import SourceConnection
from lakesplice.storage.source.tables import SourceTable
from lakesplice.storage.stores import AnyStore
from lakesplice.table.ingest.read_rows_commit import RepairedRows
from lakesplice.table.protocol.ports import UNWATCHED, Progress, Store
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.reading.table import Table

_BEGINNINGS_MAX = 3
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class VerificationRequest:
    """What to compare of a table, and how. A `share` below 1 compares another part of the buckets
    each day. At most `rows_max` of the differing rows are examined, with their `values` if
    requested. `insert_only` tables keep rows that their source deletes.
    """

    quick: bool = False
    share: float = 1.0
    insert_only: bool = False
    rows_max: int = 1_000
    values: bool = False
    repair: bool = False


@dataclass(frozen=True)
class VerificationTools:
    """The stores and the connection that a verification uses; `kept` has the sums of an interrupted
    one. `store` is the table's own if it isn't where the lake has it: a shadow's.
    """

    lake: AnyStore
    connection: SourceConnection
    read_limit: ReadLimit
    catch_up: CatchUp
    kept: StoredSums
    progress: Progress = field(default=UNWATCHED)
    store: Store | None = None


def verify_table(
    access: VerificationTools, name: TableName, topic: str, request: VerificationRequest
) -> TableReport:
    """Compare a table of a lake with the source that feeds it through a topic.

    Blocks for long, since the source is read slowly. Raises `SourceUnavailable` if the database
    doesn't answer; the progress until then is stored.
    """
    begun = access.read_limit.clock.monotonic()
    report = TableReport(
        str(name), ComparisonOutcome.NOT_COMPARED, "the source's table changes too often"
    )
    for _ in range(_BEGINNINGS_MAX):
        try:
            report = _verified(access, name, topic, request)
            break
        except ChangedMeanwhileError:
            access.kept.forget()
    seconds = access.read_limit.clock.monotonic() - begun
    return replace(report, seconds=round(seconds, 3), folder=name.path)


def _verified(
    access: VerificationTools, name: TableName, topic: str, request: VerificationRequest
) -> TableReport:
    store = access.store or access.lake.within(name.path)
    manifest = open_snapshot(store).manifest
    source = _source_table(access.connection, topic)
    if source is None:
        reason = "the database has no such table, or the user lacks SELECT on it"
        return TableReport(str(name), ComparisonOutcome.NOT_COMPARED, reason)
    source_table = f"{source.database}.{source.name}"
    table = compared_table(
        manifest.schema,
        manifest.sources[topic],
        source,
        quick=request.quick,
        insert_only=request.insert_only,
    )
    if isinstance(table, NotComparable):
        return TableReport(str(name), ComparisonOutcome.NOT_COMPARED, table.reason, source_table)
    problem = _problem(access, manifest, topic)
    if problem:
        return TableReport(str(name), ComparisonOutcome.NOT_COMPARED, problem, source_table)
    sides = ComparedSides(
        access.connection, store, topic, table, access.read_limit, access.catch_up
    )
    return replace(_compared(access, sides, str(name), request), source=source_table)


def _problem(access: VerificationTools, manifest: Manifest, topic: str) -> str:
    """Return why the lake's positions can't be compared with the database's binlog; empty if they
    can.
    """
    state = manifest.sources[topic]
    if newest_position(state) > access.connection.place().position(epoch_of(state)):
        return (
            "the lake has changes from beyond the end of this database's binlog: another server"
            " feeds it, or its binlog was reset; give the server that the connector reads"
        )
    return ""


def _source_table(connection: SourceConnection, topic: str) -> SourceTable | None:
    found = (connection.table(name.database, name.table) for name in possible_tables(topic))
    return next((table for table in found if table is not None), None)


def _compared(
    access: VerificationTools, sides: ComparedSides, name: str, request: VerificationRequest
) -> TableReport:
    table = sides.table
    buckets = _buckets_of_day(request.share, access.catch_up.clock.now_ms())
    sums = SourceSums(BucketSums(request.quick), buckets=_condition(table, buckets))
    access.kept.take_up(sums, table)
    access.progress.expect(2 * table.source.rows_about)
    access.progress.advance(sums.rows)
    changed = add_source_sums(
        access.connection, table, sums, access.read_limit, access.kept.keep, access.progress
    )
    if changed is not None or sums.places is None:
        raise ChangedMeanwhileError
    lake, ours, count = _of_lake(access, sides, buckets)
    differing = sums.sums.differing(ours)
    if differing and access.catch_up.wait(sides.store, sides.topic, sums.places[1]):
        lake, ours, count = _of_lake(access, sides, buckets)
        differing = sums.sums.differing(ours)
    found = FoundDifferences()
    if differing:
        keys = differing_keys(sides, sums, lake, differing)
        found = proven_differences(sides, keys, request.rows_max, values=request.values)
    access.kept.forget()
    repair, refusal = _repair(sides, found, request)
    return TableReport(
        repair=repair,
        not_repaired=refusal,
        table=name,
        outcome=_outcome(found),
        rows_at_source=sums.rows,
        rows_in_lake=count,
        differences=found.proven,
        unsettled=found.unsettled,
        unexamined=found.unexamined,
        not_compared=dict(sorted(table.not_compared.items())),
        place=str(found.place or sums.places[1]),
        version=lake.version,
        method="crc32" if request.quick else "sha1",
        share=len(buckets) / BUCKETS if buckets is not None else 1.0,
    )


def _repair(
    sides: ComparedSides, found: FoundDifferences, request: VerificationRequest
) -> tuple[RepairedRows | None, str]:
    """Return the rows to write over those that differ, or why there are none."""
    if not request.repair or found.keys is None:
        return None, ""
    reason = why_not_repaired(sides.table)
    return (None, reason) if reason else (rows_to_repair(sides, found.keys), "")


def _of_lake(
    access: VerificationTools, sides: ComparedSides, buckets: Collection[int] | None
) -> tuple[Table, BucketSums, int]:
    lake = sides.lake()
    return lake, *lake_sums(lake, sides.table, buckets, access.progress)


def _outcome(found: FoundDifferences) -> ComparisonOutcome:
    if found.proven:
        return ComparisonOutcome.DIFFERENT
    return (
        ComparisonOutcome.UNSETTLED
        if found.unsettled or found.unexamined
        else ComparisonOutcome.EQUAL
    )


def _buckets_of_day(share: float, now_ms: EpochMs) -> Collection[int] | None:
    """Return today's buckets: each day takes the next part, until all have been compared."""
    if share >= 1:
        return None
    count = max(1, round(share * BUCKETS))
    first = now_ms // _DAY_MS * count % BUCKETS
    return [(first + at) % BUCKETS for at in range(count)]


def _condition(table: ComparedTable, buckets: Collection[int] | None) -> str:
    if buckets is None:
        return "1"
    return f"({table.compared.bucket_sql}) in ({','.join(map(str, sorted(buckets)))})"
