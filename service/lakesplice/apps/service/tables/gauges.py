"""Sets metrics from snapshots, commits and batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakesplice.apps.service.tables.freshness import Freshness
from lakesplice.apps.table_commands.work import VERIFY
from lakesplice.model.driver_status import FreshnessGoal
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.table.protocol.commit import Committed, Conflict
from lakesplice.table.protocol.intents import (
    Backfill,
    ChangePins,
    Cluster,
    Create,
    EndVersions,
    Erase,
    Evolve,
    Expire,
    FileMerge,
    IndexMerge,
    Ingest,
    Intent,
    Note,
    Purge,
    Redirect,
    Replay,
    Restore,
    SetChangeFeed,
    Splice,
    Swap,
    Sweep,
)
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.memory import resident_bytes
from lakesplice.telemetry.registry import Metrics

_OPERATIONS: Mapping[type[Intent], str] = {
    Create: "create",
    Ingest: "ingest",
    Splice: "splice",
    FileMerge: "file-merge",
    Purge: "purge",
    Cluster: "cluster",
    IndexMerge: "index-merge",
    Evolve: "evolve",
    Redirect: "redirect",
    Replay: "replay",
    Expire: "vacuum",
    Sweep: "sweep",
    SetChangeFeed: "change-feed",
    ChangePins: "pin",
    Note: "note",
    Restore: "restore",
    Backfill: "backfill",
    Swap: "swap",
    Erase: "erase",
    EndVersions: "erase",
}
CHANGE_OPS = ("create", "update", "delete", "read")


def operation_of(intent: Intent) -> str:
    """Return how metrics, log lines and traces name what a commit does."""
    return _OPERATIONS[type(intent)]


def log_commit(log: Any, name: TableName, intent: Intent, outcome: Committed) -> None:
    """Log a commit, with the operation and version that it has in the table's history."""
    log.info(
        "committed",
        table=str(name),
        version=outcome.snapshot.version,
        operation=operation_of(intent),
        counts={what: count for what, count in getattr(intent, "counts", {}).items() if count},
    )


def count_commit(
    metrics: Metrics, name: TableName, intent: Intent, outcome: Committed | Conflict
) -> None:
    """Count a commit, and the changes of an ingest."""
    table = str(name)
    if isinstance(outcome, Conflict):
        metrics.add(metric.COMMIT_CONFLICTS, table=table, reason=outcome.reason.value)
        return
    metrics.add(metric.COMMITS, operation=operation_of(intent))
    if isinstance(intent, Note) and intent.operation == VERIFY:
        _count_verification(metrics, table, intent.counts, outcome.snapshot.timestamp_ms)
    if isinstance(intent, Erase):
        metrics.add(metric.ERASED_ROWS, intent.counts.get("rows", 0))
    if not isinstance(intent, Ingest):
        return
    counts = intent.counts
    for op in CHANGE_OPS:
        metrics.add(metric.CHANGES, counts.get(op, 0), table=table, op=op)
    metrics.add(metric.DUPLICATES, counts.get("duplicates", 0), table=table)
    metrics.add(metric.INCOMPLETE_ROWS, counts.get("incomplete", 0), table=table)
    below = counts.get("below_floor", 0)
    metrics.add(metric.IGNORED, below, table=table, reason="below-floor")
    if erased := counts.get("erased", 0):
        metrics.add(metric.IGNORED, erased, table=table, reason="erased")
    for name_, count in counts.items():
        kind, _, reason = name_.partition(":")
        if kind == "dead" and reason:
            metrics.add(metric.DEAD_LETTERS, count, table=table, reason=reason)
        elif kind == "ignored" and reason:
            metrics.add(metric.IGNORED, count, table=table, reason=reason)
    metrics.add(metric.INDEX_LOOKUPS, counts.get("updated", 0), found="yes")
    metrics.add(metric.INDEX_LOOKUPS, counts.get("inserted", 0), found="no")


def _count_verification(
    metrics: Metrics, table: str, counts: Mapping[str, int], moment: EpochMs
) -> None:
    different, unsettled = counts.get("different", 0), counts.get("unsettled", 0)
    outcome = metric.EQUAL
    if different or unsettled:
        outcome = metric.DIFFERENT if different else metric.UNSETTLED
    metrics.add(metric.VERIFICATIONS, outcome=outcome)
    metrics.add(metric.DIFFERING_ROWS, different, table=table)
    metrics.since(metric.VERIFICATION_AGE, moment / 1000, table=table)


def show_freshness(
    metrics: Metrics, name: TableName, fresh: Freshness, goal: FreshnessGoal
) -> None:
    """Set the gauges of how fresh a table is and should be."""
    table = str(name)
    metrics.since(metric.FRESHNESS, fresh.real_time, table=table, view=metric.REAL_TIME)
    metrics.since(metric.FRESHNESS, fresh.read_optimised, table=table, view=metric.READ_OPTIMISED)
    metrics.set(metric.FRESHNESS_GOAL, goal.real_time, table=table, view=metric.REAL_TIME)
    metrics.set(metric.FRESHNESS_GOAL, goal.read_optimised, table=table, view=metric.READ_OPTIMISED)


def show_snapshot(metrics: Metrics, name: TableName, snapshot: Snapshot) -> None:
    """Set the gauges that follow from a table's present version alone."""
    table = str(name)
    manifest = snapshot.manifest
    deltas, files = manifest.deltas, manifest.files.values()
    metrics.set(metric.TABLE_VERSION, snapshot.version, table=table)
    metrics.set(metric.RETAINED_FROM, manifest.retention.retained_from, table=table)
    metrics.set(metric.DELTA_FILES, len(deltas), table=table)
    metrics.set(metric.DELTA_ROWS, sum(sum(d.waiting.values()) for d in deltas), table=table)
    metrics.set(metric.DELTA_BYTES, sum(delta.file.bytes for delta in deltas), table=table)
    oldest = min((delta.committed_ms for delta in deltas), default=None)
    metrics.since(metric.DELTA_OLDEST, None if oldest is None else oldest / 1000, table=table)
    letters = sum(ref.rows for ref in manifest.dead_letters)
    metrics.set(metric.OPEN_DEAD_LETTERS, letters, table=table)
    gaps = (gap.offsets for source in manifest.sources.values() for gap in source.gaps)
    metrics.set(metric.GAP_RECORDS, sum(gaps), table=table)
    metrics.set(metric.BASE_FILES, len(manifest.files), table=table)
    metrics.set(metric.BASE_ROWS, sum(file.rows for file in files), table=table)
    metrics.set(metric.INDEX_RUNS, len(manifest.runs), table=table)
    metrics.set(metric.INDEX_ENTRIES, sum(run.entries for run in manifest.runs), table=table)
    metrics.park(table, next((parked.code.value for parked in manifest.parkings), None))


def show_memory(metrics: Metrics) -> None:
    """Set how much memory this process and its child processes use."""
    for process, count in resident_bytes().items():
        metrics.set(metric.MEMORY, count, process=process)
