"""Metrics of waiting deltas and of compactions, which write them into base files."""

from __future__ import annotations

from dataclasses import replace

from lakesplice.telemetry.families.files import BASE_FILES as BASE_FILES
from lakesplice.telemetry.families.files import BASE_ROWS as BASE_ROWS
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
from lakesplice.telemetry.families.files import VACUUMED_BYTES as VACUUMED_BYTES
from lakesplice.telemetry.families.files import VACUUMED_FILES as VACUUMED_FILES
from lakesplice.telemetry.families.topics import CONNECTOR_AGE as CONNECTOR_AGE
from lakesplice.telemetry.families.topics import GAP_RECORDS as GAP_RECORDS
from lakesplice.telemetry.families.topics import LAG as LAG
from lakesplice.telemetry.families.topics import SUSPECT_SETTING as SUSPECT_SETTING
from lakesplice.telemetry.families.topics import TABLES_NOT_MADE as TABLES_NOT_MADE
from lakesplice.telemetry.families.topics import TOPIC_STATE as TOPIC_STATE
from lakesplice.telemetry.metric import TABLE, Label, age, counter, durations, gauge

# The first `conflict` makes its series.
_COMPACTION = Label("result", ("committed", "failed"))
DELTA_FILES = gauge(
    "delta_files",
    "files",
    "Deltas that wait for compaction.",
    "If it comes near compaction.back_pressure_deltas, ingest will soon pause: add compaction"
    " threads.",
    TABLE,
)
DELTA_ROWS = gauge(
    "delta_rows",
    "changes",
    "Changes in deltas that wait for compaction.",
    "The larger it is compared with base_rows, the slower are reads of the real-time view.",
    TABLE,
)
DELTA_BYTES = gauge(
    "delta_bytes",
    "bytes",
    "Bytes of the deltas that wait for compaction.",
    "As for delta_files.",
    TABLE,
)
DELTA_OLDEST = replace(
    age(
        "delta_oldest_age_seconds",
        "Age of the oldest waiting delta; 0 if none waits.",
        "If it is above compaction.age_max, compaction is too slow or fails.",
        TABLE,
    ),
    nothing=0.0,
)
COMPACTIONS = counter(
    "compactions",
    "compactions",
    "Compactions that ended, by result. After a `conflict` the compaction is planned again by"
    " itself.",
    "For `failed` look in the log, which names the file and the error.",
    TABLE,
    _COMPACTION,
)
COMPACTION_SECONDS = durations(
    "compaction_duration_seconds",
    "Time from a compaction's plan to its commit.",
    "If compactions take long, lower compaction.deltas_max or raise compaction.tasks_max.",
)
COMPACTION_BYTES = counter(
    "compaction_bytes",
    "bytes",
    "Bytes that compactions read and wrote.",
    "If far more bytes are written than the deltas have, raise compaction.ratio_max.",
    Label("direction", ("read", "written")),
)
SPLICED_PAGES = counter(
    "spliced_pages",
    "pages",
    "Pages of spliced base files, by how they were written: copied unchanged, or encoded again.",
    "If most pages are encoded for a long time, raise compaction.ratio_max, so that more changes"
    " share a page.",
    Label("how", ("copied", "encoded")),
)
SPLICED_PAGES_EQUAL = counter(
    "spliced_pages_equal",
    "pages",
    "Pages of base files that were given only values that they had, so they could be copied.",
    "None; many: the source sends whole rows of which little is new.",
)
SPLICED_BYTES = counter(
    "spliced_bytes",
    "bytes",
    "Bytes of pages of spliced base files, by how they were written: copied unchanged, or"
    " encoded again. The sum of both, divided by the deltas' bytes, is the write amplification.",
    "As for `lakesplice_spliced_pages_total`.",
    TABLE,
    Label("how", ("copied", "encoded")),
)
SPLICE_FALLBACKS = counter(
    "splice_fallbacks",
    "fallbacks",
    "How often a splice couldn't copy pages, by reason: a whole base file was rewritten"
    " (`file`), or a whole column of a base file was encoded again (`column`).",
    "If `file` rises, another program wrote base files: find out which. `column` needs no action.",
    TABLE,
    Label("what", ("file", "column")),
    Label("reason"),
)
