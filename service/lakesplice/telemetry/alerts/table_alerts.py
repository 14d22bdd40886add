"""Alerts about the data that tables read."""

from __future__ import annotations

from lakesplice.telemetry.alerts.rule import EACH_TABLE, Alert, risen

TABLE_ALERTS = (
    Alert(
        "LakespliceTableParked",
        "critical",
        "lakesplice_table_parked == 1",
        "{{ $labels.table }} is parked ({{ $labels.code }}) and takes no changes.",
        "lakesplice_table_parked is 1",
        after=60,
    ),
    Alert(
        "LakespliceTableHasGap",
        "warning",
        "lakesplice_gap_records > 0",
        "{{ $labels.table }} lacks {{ $value }} records that were passed over.",
        "lakesplice_gap_records is above 0",
    ),
    Alert(
        "LakespliceTableDiffers",
        "warning",
        risen("lakesplice_differing_rows_total", "1d"),
        "{{ $labels.table }} was compared with its database, and rows differ.",
        "lakesplice_differing_rows_total rises",
    ),
    Alert(
        "LakespliceTableNotFresh",
        "warning",
        "lakesplice_table_freshness_seconds > lakesplice_table_freshness_goal_seconds",
        "The {{ $labels.view }} view of {{ $labels.table }} is {{ $value |"
        " humanizeDuration }} old.",
        "lakesplice_table_freshness_seconds is too old",
        after=300,
        why="The goal is tables[].freshness, or follows from trigger and compaction.age_max.",
    ),
    Alert(
        "LakespliceDeadLetters",
        "warning",
        risen("lakesplice_dead_letters_total", "15m"),
        "Records of {{ $labels.table }} could not be decoded.",
        "lakesplice_dead_letters_total rises",
    ),
    Alert(
        "LakespliceDeadLettersUnsent",
        "warning",
        risen("lakesplice_dead_letters_unsent_total", "15m"),
        "Dead letters of {{ $labels.table }} could not be sent to their topic.",
        "lakesplice_dead_letters_unsent_total rises",
    ),
    Alert(
        "LakespliceConflicts",
        "critical",
        f"sum by ({EACH_TABLE}) (\n"
        f'  increase(lakesplice_commit_conflicts_total{{reason="offsets"}}[15m])\n'
        f") > 3",
        "Another process commits to {{ $labels.table }}.",
        "lakesplice_commit_conflicts_total rises fast",
    ),
    Alert(
        "LakespliceSourceRepeatsItself",
        "info",
        f"sum by ({EACH_TABLE}) (rate(lakesplice_changes_stale_total[1h]))\n"
        f"> 0.5 * sum by ({EACH_TABLE}) (rate(lakesplice_changes_total[1h]))",
        "Most changes of {{ $labels.table }} are older than the rows they change.",
        "lakesplice_changes_stale_total grows steadily",
        after=3600,
    ),
    Alert(
        "LakespliceChangesMissing",
        "warning",
        risen("lakesplice_changes_unlinked_total", "1h"),
        "Changes of {{ $labels.table }} don't match its rows; some may be missing.",
        "lakesplice_changes_unlinked_total rises",
        why="After an added column each row's next change counts once.",
    ),
)
"""The alerts about what tables ingest; their thresholds depend on no setting."""
