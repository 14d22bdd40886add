"""Every metric of the service: its name, unit and labels, what it means and what to do about it.

The page, the documentation and the tests are made from this list; a metric that isn't here doesn't
exist. Names follow Prometheus' conventions. Where a label's values are known beforehand they are
exported from the start, as zeros, since a series that appears with its first event hides that event
from `rate` and `increase`.
"""

from __future__ import annotations

from dataclasses import replace

from lakesplice.telemetry.metric import TABLE, Label, Metric, age, counter, durations, gauge
from lakesplice.telemetry.topic_metrics import CONNECTOR_AGE as CONNECTOR_AGE
from lakesplice.telemetry.topic_metrics import LAG as LAG
from lakesplice.telemetry.topic_metrics import SUSPECT_SETTING as SUSPECT_SETTING
from lakesplice.telemetry.topic_metrics import TABLES_NOT_MADE as TABLES_NOT_MADE
from lakesplice.telemetry.topic_metrics import TOPIC_STATE as TOPIC_STATE

READ_OPTIMISED = "read_optimised"
REAL_TIME = "real_time"

_VIEW = Label("view", (READ_OPTIMISED, REAL_TIME))
_OP = Label("op", ("create", "update", "delete", "read"))
_PHASE = Label("phase", ("plan", "job", "commit", "whole"))
_COMMIT = Label(
    "operation",
    (
        "create",
        "ingest",
        "splice",
        "file-merge",
        "purge",
        "index-merge",
        "evolve",
        "redirect",
        "replay",
        "vacuum",
        "sweep",
        "restore",
    ),
)
_DELETED = Label("kind", ("expired", "orphan"))
_COMPACTION = Label("result", ("committed", "conflict", "failed"))


BUILD_INFO = gauge(
    "build_info",
    "1",
    "Always 1; the label says which version runs.",
    "None.",
    Label("version"),
)
DRIVER_GENERATION = gauge(
    "driver_generation",
    "number",
    "The generation this driver took in the lake.",
    "Two pages with different numbers: the lower one is fenced and about to stop.",
)
DRIVER_STANDBY = gauge(
    "driver_standby",
    "processes",
    "1 while this process waits for the lake's driver to end, 0 once it drives.",
    "1 on every page for longer than `lease`: no driver runs; see why the waiting one can't start.",
)
QUERY_RESTARTS = counter(
    "query_restarts",
    "restarts",
    "How often the streaming query was restarted, by reason.",
    "Restarts for `error` more than once an hour: the log names the error.",
    Label(
        "reason",
        ("new-topics", "lanes", "redirect", "refused-commit", "rested", "request", "error"),
    ),
)
BATCHES = counter(
    "batches",
    "batches",
    "Batches ended, by result; a batch is `ok` if every table it touched committed.",
    "`partial`: look for parked tables and conflicts. `failed`: the log names the error.",
    Label("result", ("ok", "partial", "failed")),
)
BATCH_SECONDS = durations(
    "batch_duration_seconds",
    "Time a batch takes, by phase: planning, the Spark job, the commits, and the whole.",
    "`whole` above the trigger: raise spark.master's cores or lengthen the trigger.",
    _PHASE,
)
LAST_BATCH = age(
    "last_batch_age_seconds",
    "Time since a batch last ended, or since there was last nothing to read.",
    "Well above the trigger: the query hangs or restarts; see /healthz and the log.",
)
FRESHNESS = age(
    "table_freshness_seconds",
    "How old the view's state may be: the time since which every change is sure to be in it.",
    "real_time: see lag and batches. read_optimised: see deltas and compactions.",
    TABLE,
    _VIEW,
)
CHANGES = counter(
    "changes",
    "changes",
    "Changes read from the topic and committed, by kind, before the fold.",
    "None; a table that should move and doesn't has a silent source.",
    TABLE,
    _OP,
)
STALE_CHANGES = counter(
    "changes_stale",
    "changes",
    "Changes that did nothing, since their row already stood at their position or a later one.",
    "Some after a restart or repetition; steady growth means that a source repeats itself.",
    TABLE,
)
DUPLICATES = counter(
    "duplicates_skipped",
    "changes",
    "Changes of insert-only tables that were skipped, since their key was already stored.",
    "None if the source delivers at least once; a share that grows means that it sends again.",
    TABLE,
)
UNLINKED_CHANGES = counter(
    "changes_unlinked",
    "changes",
    "Changes made to another state of their row than the table had: one before them is missing.",
    "Some after an ALTER or from several partitions; else changes are lost: take a new snapshot.",
    TABLE,
)
IGNORED = counter(
    "records_ignored",
    "records",
    "What carries no change, such as topic compaction's tombstones, or is a repetition at or below"
    " the purge floor (`below-floor`), by reason.",
    "None.",
    TABLE,
    Label("reason"),
)
DEAD_LETTERS = counter(
    "dead_letters",
    "records",
    "Records that could not be decoded and were set aside, by reason.",
    "Look at them with `lakesplice dlq list`; correct the source.",
    TABLE,
    Label("reason"),
)
OPEN_LETTERS = gauge(
    "dead_letters_open",
    "records",
    "Dead letters that the table holds now, neither replayed nor dropped.",
    "Remove the cause, then `lakesplice dlq replay`, or drop them.",
    TABLE,
)
UNSENT_LETTERS = counter(
    "dead_letters_unsent",
    "records",
    "Dead letters that kafka.dead_letter_topic didn't take; the lake has them.",
    "The log's `dead-letters-unsent` says why; they aren't sent again.",
    TABLE,
)
PARKED = gauge(
    "table_parked",
    "1",
    "1 for a table that is parked, with the reason's code, and doesn't move; else 0 and `none`.",
    "`lakesplice tables` says why; correct it, then `lakesplice unpark`.",
    TABLE,
    Label("code"),
)
TABLE_DROPS = counter(
    "table_drops",
    "drops",
    "DROPs of the source's table: its rows are deleted (`fenced`) or `kept`, or it is `parked`.",
    "`schema_changes.drop_table` says which; the log's `table-dropped` names the place.",
    TABLE,
    Label("outcome", ("fenced", "kept", "parked")),
)
TABLES = gauge(
    "tables",
    "tables",
    "Tables of the lake, by state.",
    "See table_parked.",
    Label("state", ("running", "parked")),
)
COMMITS = counter(
    "commits",
    "commits",
    "Versions committed, by operation.",
    "None.",
    TABLE,
    _COMMIT,
)
COMMIT_CONFLICTS = counter(
    "commit_conflicts",
    "commits",
    "Commits given up because what they had read was no longer so, by reason.",
    "A few are normal. Many: another process writes to the lake, or compaction chases ingest.",
    TABLE,
    Label("reason"),
)
COMMIT_SECONDS = durations(
    "commit_duration_seconds",
    "Time of one commit, lost races and repetitions included.",
    "Slow storage, or a long log tail.",
)
DELTA_FILES = gauge(
    "delta_files",
    "files",
    "Deltas that wait for compaction.",
    "Near compaction.back_pressure_deltas: ingest is about to pause; add compaction threads.",
    TABLE,
)
DELTA_ROWS = gauge(
    "delta_rows",
    "changes",
    "Changes in deltas that wait for compaction.",
    "Real-time reads slow down as it grows against base_rows.",
    TABLE,
)
DELTA_BYTES = gauge(
    "delta_bytes",
    "bytes",
    "Bytes of the deltas that wait for compaction.",
    "As delta_files.",
    TABLE,
)
DELTA_OLDEST = replace(
    age(
        "delta_oldest_age_seconds",
        "Age of the oldest waiting delta; 0 when none waits.",
        "Above compaction.age_max: compaction is behind or keeps failing.",
        TABLE,
    ),
    nothing=0.0,
)
COMPACTIONS = counter(
    "compactions",
    "compactions",
    "Compactions ended, by result; a conflict is planned again by itself.",
    "`failed`: the log names the file and the error.",
    TABLE,
    _COMPACTION,
)
COMPACTION_SECONDS = durations(
    "compaction_duration_seconds",
    "Time from a compaction's plan to its commit.",
    "Long ones: fewer deltas per compaction, or more tasks.",
)
COMPACTION_BYTES = counter(
    "compaction_bytes",
    "bytes",
    "Bytes that compactions read and wrote.",
    "Written bytes far above the deltas' bytes: raise compaction.ratio_max.",
    TABLE,
    Label("direction", ("read", "written")),
)
SPLICED_PAGES = counter(
    "spliced_pages",
    "pages",
    "Pages of spliced base files: copied as they were, or re-encoded.",
    "Most of them encoded, for long: raise compaction.ratio_max, so that a page gets more changes.",
    TABLE,
    Label("how", ("copied", "encoded")),
)
SPLICED_BYTES = counter(
    "spliced_bytes",
    "bytes",
    "Bytes of pages of spliced base files: copied as they were, or re-encoded. Both together, "
    "divided by the deltas' bytes, are the write amplification.",
    "As for `lakesplice_spliced_pages_total`.",
    TABLE,
    Label("how", ("copied", "encoded")),
)
SPLICE_FALLBACKS = counter(
    "splice_fallbacks",
    "fallbacks",
    "What a splice could not leave alone, by reason: `file`, a base file rewritten whole; "
    "`column`, a column of a base file re-encoded.",
    "`file`: something else wrote base files; look who did. Reasons of `column` are part of the "
    "work.",
    TABLE,
    Label("what", ("file", "column")),
    Label("reason"),
)
BASE_FILES = gauge("base_files", "files", "Base files of the present version.", "None.", TABLE)
SMALL_FILES = gauge(
    "small_base_files",
    "files",
    "Base files of the present version that are smaller than merge.small_bytes.",
    "Above merge.files_max for long: file merges fail; the log says why.",
    TABLE,
)
MERGED_FILES = counter(
    "merged_files", "files", "Small base files that were merged into larger ones.", "None.", TABLE
)
MERGED_BYTES = counter(
    "merged_bytes",
    "bytes",
    "Bytes of the files that merges wrote.",
    "Many times what comes in: raise merge.files_max.",
    TABLE,
)
INCOMPLETE_ROWS = counter(
    "incomplete_rows",
    "rows",
    "New rows that only partial images describe, so that not every column is known; no reader sees"
    " them until it is.",
    "Bootstrap the table, or take a snapshot, so that every row is sent whole once.",
    TABLE,
)
PURGED_ROWS = counter(
    "purged_rows", "rows", "Deleted rows that left base files for good.", "None.", TABLE
)
BASE_ROWS = gauge(
    "base_rows",
    "rows",
    "Rows in the base files of the present version, deleted ones included.",
    "None.",
    TABLE,
)
INDEX_RUNS = gauge(
    "index_runs",
    "runs",
    "Runs of the table's row index.",
    "Above index.runs_max for long: index merges fail; the log says why.",
    TABLE,
)
INDEX_ENTRIES = gauge(
    "index_entries",
    "entries",
    "Entries in all runs of the table's row index.",
    "Far above base_rows: index merges are behind.",
    TABLE,
)
INDEX_LOOKUPS = counter(
    "index_lookups",
    "keys",
    "Keys looked up in the row index, by whether they were found; those that weren't are inserts.",
    "Updates that aren't found: run `lakesplice index check`.",
    TABLE,
    Label("found", ("yes", "no")),
)
TABLE_VERSION = gauge(
    "table_version", "version", "The present version of the table's log.", "None.", TABLE
)
LOG_TAIL = gauge(
    "log_tail_commits",
    "commits",
    "Commits of the table's log since its last checkpoint.",
    "Far above log.checkpoint_every: checkpoints fail; the log says why.",
    TABLE,
)
MEMORY = gauge(
    "memory_resident_bytes",
    "bytes",
    "Memory that the service's processes hold, by what they are: the driver itself, Spark's JVM, "
    "and the workers that it starts. Pages that workers share are counted in each; 0 where the "
    "system doesn't tell.",
    "Near the machine's or the pod's limit: fewer cores in spark.master, or less in a batch.",
    Label("process", ("driver", "jvm", "workers")),
)

RETAINED_FROM = gauge(
    "retained_from_version",
    "version",
    "The oldest version whose files are all kept; those before it may have lost some to a vacuum.",
    "None.",
    TABLE,
)
VACUUMED_FILES = counter(
    "vacuumed_files",
    "files",
    "Files deleted: `expired`, which only versions past their retention named; `orphan`, which "
    "nothing named.",
    "Many orphans: batches or compactions fail or are refused; or another engine tried to write.",
    TABLE,
    _DELETED,
)
VACUUMED_BYTES = counter(
    "vacuumed_bytes", "bytes", "Bytes of the files deleted, by kind.", "None.", TABLE, _DELETED
)
ORPHANS_LEFT = gauge(
    "orphan_files",
    "files",
    "Old files that nothing names, found by the last sweep and left to the next one.",
    "Growing over days: sweeps conflict or fail; the log says why.",
    TABLE,
)
LAST_VACUUM = age(
    "last_vacuum_age_seconds",
    "Time since the table's expired versions were last looked through to the end.",
    "Far above vacuum.every: vacuums fail, the log says why; or compaction leaves them no turn.",
    TABLE,
)

CATALOGUE = tuple(one for one in tuple(globals().values()) if isinstance(one, Metric))
