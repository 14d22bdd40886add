"""One table: all that is known of it."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import RED, YELLOW, Query, graph, number
from dashboards.queries import (
    PER_TABLE,
    budget_left,
    highest,
    lateness,
    per_hour,
    per_second,
    ratio,
    series,
    topic_state,
    total,
)
from lakesplice.telemetry import catalogue as metric

_UID = "lakesplice-table"


def table_link() -> str:
    """Return where a click on a row leads that has the columns Table, Lake and Namespace."""
    return (
        f"/d/{_UID}?${{datasource:queryparam}}&${{__url_time_range}}"
        "&var-lake=${__data.fields.Lake}&var-namespace=${__data.fields.Namespace}"
        "&var-table=${__data.fields.Table}"
    )


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        _UID,
        "table",
        "One table: its state, freshness, changes, compaction and files.",
        (
            ("State", _numbers()),
            ("Freshness", _freshness()),
            ("Changes", _changes()),
            ("Compaction", _compaction()),
            ("Files", _files()),
        ),
        one_table=True,
    )


def _numbers() -> tuple[Panel, ...]:
    return (
        number(
            "State",
            "The state of the table's topic; `lakesplice tables` says why it isn't running.",
            Query(topic_state("state"), "{{state}}"),
            Query(highest("code", series(metric.PARKED)), "parked: {{code}}"),
        ),
        number(
            "Of its goal",
            "The age of the later view, as a share of the age that its goal allows.",
            Query(lateness("view"), "{{view}}"),
            unit="percentunit",
            steps=((0.8, YELLOW), (1.0, RED)),
        ),
        number(
            "Error budget left",
            "Of the minutes of 30 days in which a view may be late. The rules must be loaded.",
            Query(budget_left("view"), "{{view}}"),
            unit="percentunit",
        ),
        number("Lag", "Records that aren't committed yet.", Query(total("", series(metric.LAG)))),
        number(
            "Dead letters",
            "Those that were neither replayed nor dropped.",
            Query(total("", series(metric.OPEN_DEAD_LETTERS))),
            steps=((1, YELLOW),),
        ),
        number("Rows", "Of the base files.", Query(total("", series(metric.BASE_ROWS)))),
    )


def _freshness() -> tuple[Panel, ...]:
    return (
        graph(
            "Age of the views, and their goals",
            "Every change that was made longer ago is in the view. A saw-tooth as long as the"
            " trigger is normal.",
            Query(highest("view", series(metric.FRESHNESS)), "{{view}}"),
            Query(f"min by (view) ({series(metric.FRESHNESS_GOAL)})", "goal of {{view}}"),
            unit="s",
        ),
        graph(
            "Lag",
            "Records of the topic that aren't committed yet.",
            Query(total("", series(metric.LAG)), "records"),
        ),
    )


def _changes() -> tuple[Panel, ...]:
    return (
        graph(
            "Changes",
            "Changes that were read and committed, before several of one row become one.",
            Query(per_second(metric.CHANGES, "op"), "{{op}}"),
            unit="cps",
            width=8,
        ),
        graph(
            "Without effect",
            "Changes of rows that have a later position, changes of insert-only tables that were"
            " stored before, and records that contain no change. Since the start.",
            Query(total("", series(metric.STALE_CHANGES)), "stale"),
            Query(total("", series(metric.DUPLICATES)), "duplicates"),
            Query(total("reason", series(metric.IGNORED)), "ignored: {{reason}}"),
            width=8,
        ),
        graph(
            "Missing before them",
            "Changes before which one is missing, and rows of which only partial images were read:"
            " since the start. Records that were passed over and not read since. Rows that"
            " `lakesplice verify` found to differ.",
            Query(total("", series(metric.UNLINKED_CHANGES)), "unlinked"),
            Query(total("", series(metric.INCOMPLETE_ROWS)), "incomplete rows"),
            Query(total("", series(metric.GAP_RECORDS)), "passed over"),
            Query(total("", series(metric.DIFFERING_ROWS)), "unlike the database"),
            width=8,
        ),
        graph(
            "Dead letters and drops",
            "Records that couldn't be decoded, by reason; those that couldn't be sent to their"
            " topic; drops of the table at the source. Since the start.",
            Query(total("reason", series(metric.DEAD_LETTERS)), "{{reason}}"),
            Query(total("", series(metric.OPEN_DEAD_LETTERS)), "open"),
            Query(total("", series(metric.UNSENT_DEAD_LETTERS)), "not sent"),
            Query(total("outcome", series(metric.TABLE_DROPS)), "drops: {{outcome}}"),
        ),
        graph(
            "Settings of the connector that change values",
            "1 for each that an event of the last day shows.",
            Query(highest("setting", series(metric.SUSPECT_SETTING)), "{{setting}}"),
        ),
    )


def _compaction() -> tuple[Panel, ...]:
    return (
        graph(
            "Waiting deltas",
            "At compaction.back_pressure_deltas ingest pauses.",
            Query(total("", series(metric.DELTA_FILES)), "deltas"),
            width=8,
        ),
        graph(
            "Oldest waiting delta",
            "Above compaction.age_max: compaction is behind or fails.",
            Query(highest("", series(metric.DELTA_OLDEST)), "age"),
            unit="s",
            width=8,
        ),
        graph(
            "Waiting changes per row",
            "What a real-time read lays over each row of the base files.",
            Query(
                ratio(total("", series(metric.DELTA_ROWS)), total("", series(metric.BASE_ROWS))),
                "changes",
            ),
            width=8,
        ),
        graph(
            "Compactions",
            "By result, per hour; and commits that lost a race, since the start.",
            Query(per_hour(metric.COMPACTIONS, "result"), "{{result}}"),
            Query(total("reason", series(metric.COMMIT_CONFLICTS)), "lost race: {{reason}}"),
        ),
        graph(
            "Bytes copied and encoded",
            "Of pages of base files: copied ones were neither decoded nor encoded.",
            Query(per_second(metric.SPLICED_BYTES, "how"), "{{how}}"),
            unit="Bps",
        ),
        graph(
            "Bytes of waiting deltas",
            "What the next compactions read, beside base files.",
            Query(total("", series(metric.DELTA_BYTES)), "bytes"),
            unit="bytes",
        ),
        graph(
            "What could not be copied",
            "Whole files and columns that were encoded again, by reason, since the start.",
            Query(total("what, reason", series(metric.SPLICE_FALLBACKS)), "{{what}}: {{reason}}"),
        ),
    )


def _files() -> tuple[Panel, ...]:
    kept = (
        f"{highest('', series(metric.TABLE_VERSION))} - {highest('', series(metric.RETAINED_FROM))}"
    )
    index = ratio(total("", series(metric.INDEX_ENTRIES)), total("", series(metric.BASE_ROWS)))
    return (
        graph(
            "Rows",
            "Of the base files, with deleted ones.",
            Query(total("", series(metric.BASE_ROWS)), "rows"),
            width=8,
        ),
        graph(
            "Base files",
            "Small ones are small for the table (merge.small_bytes). Orphans are old files that no"
            " version names; the next sweep deletes them.",
            Query(total("", series(metric.BASE_FILES)), "all"),
            Query(total("", series(metric.SMALL_FILES)), "small"),
            Query(total("", series(metric.ORPHANS_LEFT)), "orphans"),
            width=8,
        ),
        graph(
            "Row index",
            "Runs, and entries per row of the base files.",
            Query(total("", series(metric.INDEX_RUNS)), "runs"),
            Query(index, "entries per row"),
            width=8,
        ),
        graph(
            "Versions",
            "Versions whose files are all kept, and commits since the log's last checkpoint.",
            Query(kept, "kept"),
            Query(highest("", series(metric.LOG_TAIL)), "since the checkpoint"),
        ),
        graph(
            "Time since the last vacuum",
            "Since versions past their retention were looked through to the end.",
            Query(highest(PER_TABLE, series(metric.LAST_VACUUM)), "age"),
            unit="s",
        ),
    )
