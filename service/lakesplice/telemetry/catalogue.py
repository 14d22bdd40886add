"""Every metric of the service: its name, unit and labels, what it means and what to do.

The page, the documentation and the tests are made from this list; a metric that isn't here doesn't
exist. Names follow Prometheus' conventions. If a label's values are known beforehand, all its
series are exported from the start, as zeros: `rate` and `increase` would miss the first event of a
series that appears with that event.
"""

from __future__ import annotations

from lakesplice.telemetry.families.compaction import COMPACTION_BYTES as COMPACTION_BYTES
from lakesplice.telemetry.families.compaction import COMPACTION_SECONDS as COMPACTION_SECONDS
from lakesplice.telemetry.families.compaction import COMPACTIONS as COMPACTIONS
from lakesplice.telemetry.families.compaction import DELTA_BYTES as DELTA_BYTES
from lakesplice.telemetry.families.compaction import DELTA_FILES as DELTA_FILES
from lakesplice.telemetry.families.compaction import DELTA_OLDEST as DELTA_OLDEST
from lakesplice.telemetry.families.compaction import DELTA_ROWS as DELTA_ROWS
from lakesplice.telemetry.families.compaction import SPLICE_FALLBACKS as SPLICE_FALLBACKS
from lakesplice.telemetry.families.compaction import SPLICED_BYTES as SPLICED_BYTES
from lakesplice.telemetry.families.compaction import SPLICED_PAGES as SPLICED_PAGES
from lakesplice.telemetry.families.compaction import SPLICED_PAGES_EQUAL as SPLICED_PAGES_EQUAL
from lakesplice.telemetry.families.files import BASE_FILES as BASE_FILES
from lakesplice.telemetry.families.files import BASE_ROWS as BASE_ROWS
from lakesplice.telemetry.families.files import CLUSTERED_ROWS as CLUSTERED_ROWS
from lakesplice.telemetry.families.files import ERASED_ROWS as ERASED_ROWS
from lakesplice.telemetry.families.files import INCOMPLETE_ROWS as INCOMPLETE_ROWS
from lakesplice.telemetry.families.files import INDEX_ENTRIES as INDEX_ENTRIES
from lakesplice.telemetry.families.files import INDEX_LOOKUPS as INDEX_LOOKUPS
from lakesplice.telemetry.families.files import INDEX_RUNS as INDEX_RUNS
from lakesplice.telemetry.families.files import LAST_VACUUM as LAST_VACUUM
from lakesplice.telemetry.families.files import LOG_TAIL as LOG_TAIL
from lakesplice.telemetry.families.files import MERGED_BYTES as MERGED_BYTES
from lakesplice.telemetry.families.files import MERGED_FILES as MERGED_FILES
from lakesplice.telemetry.families.files import ORPHANS_LEFT as ORPHANS_LEFT
from lakesplice.telemetry.families.files import PURGED_ROWS as PURGED_ROWS
from lakesplice.telemetry.families.files import RETAINED_FROM as RETAINED_FROM
from lakesplice.telemetry.families.files import SMALL_FILES as SMALL_FILES
from lakesplice.telemetry.families.files import TABLE_VERSION as TABLE_VERSION
from lakesplice.telemetry.families.files import UNCLUSTERED_BYTES as UNCLUSTERED_BYTES
from lakesplice.telemetry.families.files import VACUUMED_BYTES as VACUUMED_BYTES
from lakesplice.telemetry.families.files import VACUUMED_FILES as VACUUMED_FILES
from lakesplice.telemetry.families.mirrors import ICEBERG_COMMITS as ICEBERG_COMMITS
from lakesplice.telemetry.families.mirrors import ICEBERG_LAG as ICEBERG_LAG
from lakesplice.telemetry.families.mirrors import ICEBERG_SECONDS as ICEBERG_SECONDS
from lakesplice.telemetry.families.mirrors import MIRROR_BEGUN as MIRROR_BEGUN
from lakesplice.telemetry.families.mirrors import MIRROR_COMMITTED as MIRROR_COMMITTED
from lakesplice.telemetry.families.mirrors import MIRROR_FAILED as MIRROR_FAILED
from lakesplice.telemetry.families.topics import CONNECTOR_AGE as CONNECTOR_AGE
from lakesplice.telemetry.families.topics import GAP_RECORDS as GAP_RECORDS
from lakesplice.telemetry.families.topics import LAG as LAG
from lakesplice.telemetry.families.topics import SUSPECT_SETTING as SUSPECT_SETTING
from lakesplice.telemetry.families.topics import TABLES_NOT_MADE as TABLES_NOT_MADE
from lakesplice.telemetry.families.topics import TOPIC_STATE as TOPIC_STATE
from lakesplice.telemetry.families.verification import DIFFERENT as DIFFERENT
from lakesplice.telemetry.families.verification import DIFFERING_ROWS as DIFFERING_ROWS
from lakesplice.telemetry.families.verification import EQUAL as EQUAL
from lakesplice.telemetry.families.verification import UNLINKED_CHANGES as UNLINKED_CHANGES
from lakesplice.telemetry.families.verification import UNSETTLED as UNSETTLED
from lakesplice.telemetry.families.verification import VERIFICATION_AGE as VERIFICATION_AGE
from lakesplice.telemetry.families.verification import VERIFICATION_FAILED as VERIFICATION_FAILED
from lakesplice.telemetry.families.verification import VERIFICATIONS as VERIFICATIONS
from lakesplice.telemetry.metric import (
    TABLE,
    Label,
    Metric,
    age,
    counter,
    durations,
    gauge,
    rare_counter,
)

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
        "cluster",
        "index-merge",
        "evolve",
        "redirect",
        "replay",
        "vacuum",
        "sweep",
        "pin",
        "restore",
        "change-feed",
        "erase",
    ),
)


BUILD_INFO = gauge(
    "build_info",
    "1",
    "Always 1. The label shows which version runs.",
    "None.",
    Label("version"),
)
DRIVER_GENERATION = gauge(
    "driver_generation",
    "number",
    "The generation of this driver in the lake.",
    "If two pages show different numbers, two services run on one lake; the lower one will stop.",
)
DRIVER_STANDBY = gauge(
    "driver_standby",
    "processes",
    "1 while this process waits because another driver has the lake, 0 once it is the driver.",
    "If it is 1 on every page for longer than `lease`, no driver runs: see why the waiting one"
    " can't start.",
)
QUERY_RESTARTS = counter(
    "query_restarts",
    "restarts",
    "How often the streaming query was restarted, by reason.",
    "If restarts for `error` happen more than once an hour, look in the log for the error.",
    Label(
        "reason",
        ("new-topics", "lanes", "redirect", "refused-commit", "rested", "request", "error"),
    ),
)
THREAD_ERRORS = counter(
    "thread_errors",
    "errors",
    "Errors that nobody expected in threads of the service beside the main loop, by thread. Each is"
    " in the log as `thread-failed`, and the thread tries again.",
    "It is a defect of Lakesplice or of a library: report it with the log. While it rises, the"
    " thread's work isn't done.",
    Label(
        "thread",
        (
            *("compactor", "verifier", "mirrors", "heartbeat"),
            *("web", "workers", "read-ahead", "other"),
        ),
    ),
)
BATCHES = counter(
    "batches",
    "batches",
    "Batches that ended, by result. A batch is `ok` if the commits of all its tables succeeded.",
    "`partial`: look for parked tables and conflicts. `failed`: the log names the error.",
    Label("result", ("ok", "partial", "failed")),
)
BATCH_SECONDS = durations(
    "batch_duration_seconds",
    "Time a batch takes, by phase: planning, the Spark job, the commits, and the whole.",
    "If `whole` is above the trigger, give spark.master more cores or lengthen the trigger.",
    _PHASE,
)
LAST_BATCH = age(
    "last_batch_age_seconds",
    "Time since a batch last ended, since there was nothing to read, or since this driver began.",
    "If it is well above the trigger, the query hangs or restarts; see /healthz and the log.",
)
CLOCK_DIFFERENCE = gauge(
    "clock_difference_seconds",
    "seconds",
    "How far the store's clock is ahead of this machine's, by the time of a file that the service"
    " writes there each minute; below 0 it is behind. If the lake is in a folder, also how far this"
    " machine's clock has jumped since the service began; what differs more is shown.",
    "If it is far from 0, one of the clocks is wrong: let both follow a time server. Age counts by"
    " the earlier of the two where something is deleted.",
)
FRESHNESS = age(
    "table_freshness_seconds",
    "How old the view's state may be: every change that was made longer ago is certainly in the"
    " view. A table has no such series before its first batch.",
    "For `real_time` see lag and batches, for `read_optimised` deltas and compactions.",
    TABLE,
    _VIEW,
)
FRESHNESS_GOAL = gauge(
    "table_freshness_goal_seconds",
    "seconds",
    "How old the view's state may become: the goal that `tables[].freshness` sets, or that follows"
    " from `trigger` and `compaction.age_max`.",
    "None; `lakesplice_table_freshness_seconds` is to stay below it.",
    TABLE,
    _VIEW,
)
OBJECTIVE = gauge(
    "freshness_objective",
    "1",
    "The share of 30 days in which each view is to keep its goal: `alerts.objective`.",
    "None; what is missing to 1 is the error budget.",
)
CHANGES = counter(
    "changes",
    "changes",
    "Changes read from the topic and committed, by kind. Several changes of one row are all"
    " counted.",
    "None. If a table should change and this doesn't rise, the source sends nothing.",
    TABLE,
    _OP,
)
STALE_CHANGES = rare_counter(
    "changes_stale",
    "changes",
    "Changes that had no effect, since their row already had their position or a later one.",
    "Some are normal after a restart. Steady growth means that the source repeats changes.",
    TABLE,
)
DUPLICATES = rare_counter(
    "duplicates_skipped",
    "changes",
    "Changes of insert-only tables that were skipped, since their key was already stored.",
    "None, if the source delivers at least once. A growing share means that it repeats records.",
    TABLE,
)
IGNORED = counter(
    "records_ignored",
    "records",
    "Records that have no effect, by reason: they contain no change, such as tombstones for the"
    " topic's compaction, or are repetitions at or below the purge floor (`below-floor`), or of"
    " rows that were erased (`erased`).",
    "None.",
    TABLE,
    Label("reason"),
)
DEAD_LETTERS = counter(
    "dead_letters",
    "records",
    "Records that could not be decoded and were stored as dead letters, by reason.",
    "Look at them with `lakesplice dlq list`, and correct the cause.",
    TABLE,
    Label("reason"),
)
OPEN_DEAD_LETTERS = gauge(
    "dead_letters_open",
    "records",
    "Dead letters that the table has now: those that were neither replayed nor dropped.",
    "Remove the cause, then `lakesplice dlq replay`, or drop them.",
    TABLE,
)
UNSENT_DEAD_LETTERS = rare_counter(
    "dead_letters_unsent",
    "records",
    "Dead letters that could not be sent to kafka.dead_letter_topic. The lake has them.",
    "The log event `dead-letters-unsent` says why. They aren't sent again.",
    TABLE,
)
PARKED = gauge(
    "table_parked",
    "1",
    "1 for a parked table, with the code of the reason; otherwise 0 with the code `none`.",
    "`lakesplice tables` says why. Correct it, then give `lakesplice unpark`.",
    TABLE,
    Label("code"),
)
TABLE_DROPS = rare_counter(
    "table_drops",
    "drops",
    "DROPs of the table at the source, by what happened: its rows were deleted (`fenced`) or"
    " `kept`, or the table was `parked`.",
    "`schema_changes.drop_table` decides what happens. The log event `table-dropped` shows the"
    " position.",
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
    _COMMIT,
)
COMMIT_CONFLICTS = counter(
    "commit_conflicts",
    "commits",
    "Commits that lost a race: what they were based on had changed meanwhile. By reason.",
    "A few are normal. If there are many, another process writes to the lake, or compaction and"
    " ingest change the same files.",
    TABLE,
    Label("reason"),
)
COMMIT_SECONDS = durations(
    "commit_duration_seconds",
    "Time of one commit, including lost races and retries.",
    "If it is long, the storage is slow, or the log has many commits since its last checkpoint.",
)
MEMORY = gauge(
    "memory_resident_bytes",
    "bytes",
    "Memory of the service's processes: of the driver itself, of Spark's JVM, and of the Python"
    " workers that Spark starts. Memory that workers share is counted for each of them. 0 if the"
    " system doesn't report it.",
    "If it comes near the limit of the machine or pod, give spark.master fewer cores or make"
    " batches smaller.",
    Label("process", ("driver", "jvm", "workers")),
)

CATALOGUE = tuple(one for one in tuple(globals().values()) if isinstance(one, Metric))
