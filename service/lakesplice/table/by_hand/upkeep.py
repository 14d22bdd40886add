"""Upkeep of a table fed by hand, in the caller's process: what the service's threads do for others.

Contracts and errors are those of the methods of `HandFedTable` that call these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lakesplice.errors import UsageError
from lakesplice.model.manifest import Manifest
from lakesplice.planning.rows.row_images import require_feedable
from lakesplice.planning.upkeep.clustering import ClusterPolicy
from lakesplice.planning.upkeep.compaction import tasks, work
from lakesplice.planning.upkeep.file_merge import FileMergePolicy, plan_file_merge
from lakesplice.table.by_hand.results import (
    Clustered,
    Compacted,
    FilesMerged,
    Purged,
    compacted_by,
    planned,
)
from lakesplice.table.by_hand.upserts.upsert_request import require_fed_by_hand
from lakesplice.table.by_hand.writer import Writer
from lakesplice.table.protocol.intents import Cluster, FileMerge, Purge, SetChangeFeed, Splice
from lakesplice.table.protocol.ports import Progress
from lakesplice.table.upkeep import compact
from lakesplice.table.upkeep.clustering.clustering import Clustering, columns_of
from lakesplice.table.upkeep.file_merge import file_merge, merge_base_files
from lakesplice.table.upkeep.purge import PurgeRules, purge
from lakesplice.table.upkeep.vacuum import (
    Vacuumed,
    plan_vacuum,
    require_hours,
    require_safe_retention,
    time_for_deletion,
    vacuum,
)

# Each file gets a thread as long as there are threads.
_TASK_BYTES = 1


def compact_table(writer: Writer, threads: int, progress: Progress) -> Compacted:
    """Merge all waiting changes into the base files."""
    _require_threads(threads)

    def plan(manifest: Manifest) -> Splice | None:
        return plan_splice(writer, manifest, threads, progress) if manifest.deltas else None

    before = writer.version
    splice = writer.commit_with_retries(plan)
    done = Compacted(before) if splice is None else compacted_by(writer.version, splice)
    writer.tidy()
    return done


def _require_threads(given: object) -> None:
    if not isinstance(given, int) or given < 1:
        raise UsageError("give a number of threads, 1 or more", threads=given)


def plan_splice(writer: Writer, manifest: Manifest, threads: int, progress: Progress) -> Splice:
    """Write the base files with their waiting changes, and return the intent to commit."""
    shares = tasks(work(manifest), _TASK_BYTES, threads)
    progress.expect(sum(manifest.files[path].bytes for paths in shares for path in paths))

    def rewritten(paths: tuple[str, ...]) -> compact.Compacted:
        tools = writer.tools
        return compact.compact_files(
            writer.store, manifest, paths, tools.rewriter, tools.entropy, progress=progress
        )

    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(rewritten, shares))
    return compact.splice_of(manifest.generation, writer.version, parts)


def vacuum_table(
    writer: Writer, hours: float, *, dry_run: bool, readers_may_fail: bool
) -> Vacuumed:
    """Delete files that no retained version names."""
    require_hours(hours)
    seconds = hours * 3600
    require_safe_retention(seconds, readers_may_fail=readers_may_fail)
    snapshot = writer.refresh()
    tools = writer.tools
    if dry_run:
        return plan_vacuum(writer.store, snapshot, tools.clock.now_ms(), seconds)
    require_fed_by_hand(snapshot.manifest)
    now_ms = time_for_deletion(writer.store, tools.clock, tools.entropy)
    return vacuum(writer.store, snapshot, writer.commit, now_ms, seconds)


def merge_small_files(writer: Writer, policy: FileMergePolicy, progress: Progress) -> FilesMerged:
    """Merge base files as long as `policy` says that there are too many small ones."""

    def plan(manifest: Manifest) -> FileMerge | None:
        chosen = plan_file_merge(manifest.files.values(), policy)
        if chosen is None:
            return None
        paths = [file.path for file in chosen]
        size = sum(file.bytes for file in chosen)
        progress.expect(size)
        entropy, open_sink = writer.tools.entropy, writer.tools.open_sink
        inputs, output = merge_base_files(writer.store, manifest, paths, entropy, open_sink)
        progress.advance(size)
        return file_merge(manifest.generation, writer.version, inputs, output, manifest)

    files = 0
    while (merged := writer.commit_with_retries(plan)) is not None:
        files += len(merged.inputs)
    return FilesMerged(writer.version, files)


def optimize_table(
    writer: Writer,
    by: Sequence[str],
    policy: ClusterPolicy,
    progress: Progress,
    *,
    whole: bool,
    dry_run: bool,
) -> Clustered:
    """Lay out files by some columns, until no file is new."""
    tools = writer.tools
    clustering = Clustering(
        writer.store,
        columns_of(writer.refresh().manifest, by),
        tools.entropy,
        whole=whole,
        policy=policy,
        open_scratch=tools.open_scratch,
        progress=progress,
    )
    if dry_run:
        return planned(writer.version, clustering.files(writer.snapshot))

    def plan(manifest: Manifest) -> Cluster | None:
        return clustering.plan(writer.snapshot, manifest.generation)

    done = Clustered(writer.version)
    while (made := writer.commit_with_retries(plan)) is not None:
        done = done.with_more(writer.version, made.counts)
    writer.tidy()
    return done


def purge_table(writer: Writer, older_than_hours: float, progress: Progress) -> Purged:
    """Rewrite base files without rows that were deleted longer ago."""
    require_hours(older_than_hours)
    tools = writer.tools
    now_ms = time_for_deletion(writer.store, tools.clock, tools.entropy)
    rules = PurgeRules.older_than(older_than_hours * 3600, now_ms)

    def plan(manifest: Manifest) -> Purge | None:
        number, entropy = manifest.generation, tools.entropy
        return purge(
            writer.store, manifest, rules, writer.version, number, entropy, progress=progress
        )

    files, rows = 0, 0
    while (done := writer.commit_with_retries(plan)) is not None:
        files, rows = files + len(done.inputs), rows + done.counts["rows"]
    return Purged(writer.version, files, rows)


def switch_change_feed(writer: Writer, *, on: bool) -> None:
    """Begin or end the change feed, unless it is so already."""

    def plan(manifest: Manifest) -> SetChangeFeed | None:
        if (manifest.feed is not None) == on:
            return None
        if on:
            require_feedable(manifest.schema)
        return SetChangeFeed(manifest.generation, on)

    writer.commit_with_retries(plan)
