"""Metrics of the files that a table has: base files, index and log, and what upkeep removes."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.telemetry.metric import TABLE, Label, age, counter, gauge, rare_counter

_DELETED = Label("kind", ("expired", "orphan"))

BASE_FILES = gauge("base_files", "files", "Base files of the newest version.", "None.", TABLE)
SMALL_FILES = gauge(
    "small_base_files",
    "files",
    "Base files of the newest version that are smaller than merge.small_bytes, by default"
    " than a quarter of the size that suits the table.",
    "If it stays above merge.files_max, file merges fail; the log says why.",
    TABLE,
)
MERGED_FILES = counter(
    "merged_files", "files", "Small base files that were merged into larger ones.", "None."
)
MERGED_BYTES = counter(
    "merged_bytes",
    "bytes",
    "Bytes of the files that merges wrote.",
    "If it is many times what is ingested, raise merge.files_max.",
)
UNCLUSTERED_BYTES = replace(
    gauge(
        "unclustered_bytes",
        "bytes",
        "Bytes of base files that aren't laid out yet. Only tables with `cluster_by` have it.",
        "If it stays far above a tenth of the table, clustering fails or the table has no such"
        " columns; the log says why.",
        TABLE,
    ),
    is_rare=True,
)
CLUSTERED_ROWS = counter(
    "clustered_rows", "rows", "Rows that were laid out by the columns of cluster_by.", "None."
)
INCOMPLETE_ROWS = rare_counter(
    "incomplete_rows",
    "rows",
    "New rows of which only partial images were read, so that the value of some column is"
    " unknown. Readers don't see such a row until all its columns are known.",
    "Bootstrap the table, or take a snapshot, so that every row is sent once with all columns.",
    TABLE,
)
PURGED_ROWS = counter(
    "purged_rows", "rows", "Deleted rows that a purge removed from base files.", "None."
)
ERASED_ROWS = counter(
    "erased_rows", "rows", "Rows that `lakesplice erase` removed from base files.", "None."
)
BASE_ROWS = gauge(
    "base_rows",
    "rows",
    "Rows in the base files of the newest version, including deleted ones.",
    "None.",
    TABLE,
)
INDEX_RUNS = gauge(
    "index_runs",
    "runs",
    "Runs of the table's row index.",
    "If it stays above index.runs_max, index merges fail; the log says why.",
    TABLE,
)
INDEX_ENTRIES = gauge(
    "index_entries",
    "entries",
    "Entries in all runs of the table's row index.",
    "If it is far above base_rows, index merges are behind.",
    TABLE,
)
INDEX_LOOKUPS = counter(
    "index_lookups",
    "keys",
    "Keys looked up in the row index, by whether they were found. A key that wasn't found is"
    " inserted.",
    "If keys of updates aren't found, run `lakesplice index check`.",
    Label("found", ("yes", "no")),
)
TABLE_VERSION = gauge(
    "table_version", "version", "The newest version in the table's log.", "None.", TABLE
)
LOG_TAIL = gauge(
    "log_tail_commits",
    "commits",
    "Commits of the table's log since its last checkpoint.",
    "If it is far above log.checkpoint_every, checkpoints fail; the service's log says why.",
    TABLE,
)
RETAINED_FROM = gauge(
    "retained_from_version",
    "version",
    "The oldest version whose files are all kept. A vacuum may have deleted files of earlier"
    " versions.",
    "None.",
    TABLE,
)
VACUUMED_FILES = counter(
    "vacuumed_files",
    "files",
    "Files that vacuums deleted: those that only versions past their retention named"
    " (`expired`), and those that no version named (`orphan`).",
    "If there are many orphans, batches or compactions fail or their commits are refused, or"
    " another engine tried to write. `lakesplice_orphan_files` shows the tables.",
    _DELETED,
)
VACUUMED_BYTES = counter(
    "vacuumed_bytes",
    "bytes",
    "Bytes of the files that vacuums deleted, by kind.",
    "None.",
    _DELETED,
)
ORPHANS_LEFT = gauge(
    "orphan_files",
    "files",
    "Old files that no version names: the last sweep found them, and the next one will delete"
    " them.",
    "If it grows over days, sweeps fail or lose their races; the log says why.",
    TABLE,
)
LAST_VACUUM = age(
    "last_vacuum_age_seconds",
    "Time since the last complete vacuum of the table's expired versions.",
    "If it is far above vacuum.every, vacuums fail (the log says why), or compaction is always"
    " due and leaves them no time.",
    TABLE,
)
