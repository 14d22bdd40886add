"""Alerts about compaction, maintenance and vacuum."""

from __future__ import annotations

from lakesplice.telemetry.alerts.limits import AlertLimits
from lakesplice.telemetry.alerts.rule import INSTANCE, Alert, number

# The alerts whose thresholds depend on no setting.
_FIXED = (
    Alert(
        "LakespliceCompactionFails",
        "warning",
        'increase(lakesplice_compactions_total{result="failed"}[30m]) > 0',
        "A compaction of {{ $labels.table }} failed.",
        "lakesplice_delta_oldest_age_seconds is above compaction.age_max, or"
        " lakesplice_delta_files nears compaction.back_pressure_deltas",
    ),
    Alert(
        "LakespliceIcebergBehind",
        "warning",
        "lakesplice_iceberg_lag_seconds > 3600",
        "The Iceberg mirror of {{ $labels.table }} lacks what the table has had for"
        " {{ $value | humanizeDuration }}.",
        "lakesplice_iceberg_lag_seconds grows",
        after=600,
    ),
    Alert(
        "LakespliceManyOrphans",
        "warning",
        f"sum by ({INSTANCE}) (\n"
        f'  increase(lakesplice_vacuumed_files_total{{kind="orphan"}}[1d])\n'
        f") > 1000",
        "Many files are written and never committed.",
        'lakesplice_vacuumed_files_total{kind="orphan"} rises fast',
    ),
)


def upkeep_alerts(limits: AlertLimits) -> tuple[Alert, ...]:
    """Return the alerts about compaction, maintenance and vacuum."""
    return (
        *_FIXED,
        Alert(
            "LakespliceCompactionBehind",
            "warning",
            f"lakesplice_delta_oldest_age_seconds > {number(2 * limits.age_max)}\n"
            f"or lakesplice_delta_files > {number(0.75 * limits.back_pressure_deltas)}",
            "Changes of {{ $labels.table }} wait too long for compaction.",
            "lakesplice_delta_oldest_age_seconds is above compaction.age_max, or"
            " lakesplice_delta_files nears compaction.back_pressure_deltas",
            after=300,
            why="Twice compaction.age_max, and three quarters of compaction.back_pressure_deltas.",
        ),
        Alert(
            "LakespliceUpkeepFails",
            "warning",
            f"lakesplice_index_runs > {number(2 * limits.runs_max)}\n"
            f"or lakesplice_log_tail_commits > {number(5 * limits.checkpoint_every)}",
            "Maintenance of {{ $labels.table }} (index merges, checkpoints) is behind.",
            "lakesplice_index_runs stays above index.runs_max, or"
            " lakesplice_log_tail_commits far above log.checkpoint_every",
            after=1800,
            why="Twice index.runs_max, five times log.checkpoint_every.",
        ),
        Alert(
            "LakespliceSmallFilesStay",
            "info",
            f"lakesplice_small_base_files > {number(3 * limits.merge_files_max)}",
            "{{ $labels.table }} has {{ $value }} small base files that aren't merged.",
            "lakesplice_small_base_files stays above merge.files_max",
            after=3600,
            why="Three times merge.files_max.",
        ),
        Alert(
            "LakespliceVacuumLate",
            "warning",
            f"lakesplice_last_vacuum_age_seconds > {number(4 * limits.vacuum_every)}",
            "{{ $labels.table }} was last vacuumed {{ $value | humanizeDuration }} ago.",
            "lakesplice_last_vacuum_age_seconds is far above vacuum.every",
            after=600,
            why="Four times vacuum.every.",
        ),
    )
