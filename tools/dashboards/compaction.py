"""Compaction and storage: what waits, what compactions copy and encode, and what upkeep removes."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import Query, graph, ten_tables
from dashboards.queries import (
    PER_LAKE,
    PER_TABLE,
    highest,
    per_hour,
    per_second,
    quantile,
    ratio,
    series,
    total,
)
from lakesplice.telemetry import catalogue as metric


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        "lakesplice-compaction",
        "compaction and storage",
        "What waits for compaction, what compactions do, and what the lake's files are.",
        (
            ("Waiting", _waiting()),
            ("Compactions", _compactions()),
            ("Splices", _splices()),
            ("Files", _files()),
            ("Removal", _removal()),
            ("Iceberg mirrors", _mirrors()),
        ),
    )


def _waiting() -> tuple[Panel, ...]:
    per_row = ratio(
        total(PER_TABLE, series(metric.DELTA_ROWS)), total(PER_TABLE, series(metric.BASE_ROWS))
    )
    return (
        graph(
            "Waiting deltas",
            "Of the ten tables that have most; at compaction.back_pressure_deltas ingest pauses.",
            ten_tables(total(PER_TABLE, series(metric.DELTA_FILES))),
        ),
        graph(
            "Oldest waiting delta",
            "Of ten tables. Above compaction.age_max: compaction is behind or fails.",
            ten_tables(highest(PER_TABLE, series(metric.DELTA_OLDEST))),
            unit="s",
        ),
        graph(
            "Waiting changes per row",
            "What a real-time read lays over each row of the base files, of ten tables.",
            ten_tables(per_row),
        ),
        graph(
            "Bytes of waiting deltas",
            "Of ten tables, and of all.",
            ten_tables(total(PER_TABLE, series(metric.DELTA_BYTES))),
            Query(total("", series(metric.DELTA_BYTES)), "all"),
            unit="bytes",
        ),
    )


def _compactions() -> tuple[Panel, ...]:
    return (
        graph(
            "Compactions",
            "By result, per hour.",
            Query(per_hour(metric.COMPACTIONS, "result"), "{{result}}"),
        ),
        graph(
            "Duration of compactions",
            "Half of them, and 95 of 100.",
            Query(quantile(0.5, metric.COMPACTION_SECONDS), "half"),
            Query(quantile(0.95, metric.COMPACTION_SECONDS), "95 of 100"),
            unit="s",
        ),
        graph(
            "Bytes that compactions read and wrote",
            "Much more written than the deltas have: raise compaction.ratio_max.",
            Query(per_second(metric.COMPACTION_BYTES, "direction"), "{{direction}}"),
            unit="Bps",
        ),
        graph(
            "Commits",
            "By operation, per hour, and those that lost a race since the start: some are normal.",
            Query(per_hour(metric.COMMITS, "operation"), "{{operation}}"),
            Query(total("reason", series(metric.COMMIT_CONFLICTS)), "lost race: {{reason}}"),
        ),
    )


def _splices() -> tuple[Panel, ...]:
    pages = per_second(metric.SPLICED_PAGES, "")
    return (
        graph(
            "Pages copied and encoded",
            "Copied pages are neither decoded nor encoded.",
            Query(per_second(metric.SPLICED_PAGES, "how"), "{{how}}"),
            unit="cps",
        ),
        graph(
            "Bytes copied and encoded",
            "By what they cost: copied bytes cost a read and a write.",
            Query(per_second(metric.SPLICED_BYTES, "how"), "{{how}}"),
            unit="Bps",
        ),
        graph(
            "Share of pages copied",
            "Low for long: raise compaction.ratio_max, so that a page gets more changes. Equal: it"
            " was given only values that it had.",
            Query(
                ratio(per_second(metric.SPLICED_PAGES, "", how="copied"), pages, "1e-9"), "copied"
            ),
            Query(ratio(per_second(metric.SPLICED_PAGES_EQUAL, ""), pages, "1e-9"), "equal"),
            unit="percentunit",
        ),
        graph(
            "What could not be copied",
            "Whole files and columns that were encoded again, by reason, since the start.",
            Query(total("what, reason", series(metric.SPLICE_FALLBACKS)), "{{what}}: {{reason}}"),
        ),
    )


def _files() -> tuple[Panel, ...]:
    return (*_base_files(), *_row_index(), *_log())


def _base_files() -> tuple[Panel, ...]:
    return (
        graph(
            "Rows",
            "Rows of the base files, with deleted ones.",
            Query(total(PER_LAKE, series(metric.BASE_ROWS)), "{{lake}} {{namespace}}"),
            width=8,
        ),
        graph(
            "Base files",
            "All, and those that are small for their table (merge.small_bytes).",
            Query(total(PER_LAKE, series(metric.BASE_FILES)), "{{lake}} all"),
            Query(total(PER_LAKE, series(metric.SMALL_FILES)), "{{lake}} small"),
            width=8,
        ),
        graph(
            "Small base files",
            "Of the ten tables that have most.",
            ten_tables(total(PER_TABLE, series(metric.SMALL_FILES))),
            width=8,
        ),
        graph(
            "Bytes that aren't laid out",
            "Of the ten tables with cluster_by that have most.",
            ten_tables(total(PER_TABLE, series(metric.UNCLUSTERED_BYTES))),
            unit="bytes",
            width=24,
        ),
    )


def _row_index() -> tuple[Panel, ...]:
    entries = ratio(
        total(PER_LAKE, series(metric.INDEX_ENTRIES)), total(PER_LAKE, series(metric.BASE_ROWS))
    )
    return (
        graph(
            "Runs of the row index",
            "Of the ten tables that have most. Above index.runs_max for long: index merges fail.",
            ten_tables(highest(PER_TABLE, series(metric.INDEX_RUNS))),
            width=8,
        ),
        graph(
            "Entries of the row index per row",
            "Far above 1: index merges are behind.",
            Query(entries, "{{lake}} {{namespace}}"),
            width=8,
        ),
        graph(
            "Looked up in the row index",
            "Keys that were found are updates, the others inserts.",
            Query(per_second(metric.INDEX_LOOKUPS, "found"), "found: {{found}}"),
            unit="cps",
            width=8,
        ),
    )


def _log() -> tuple[Panel, ...]:
    return (
        graph(
            "Commits since the last checkpoint",
            "Of ten tables. Far above log.checkpoint_every: checkpoints fail.",
            ten_tables(highest(PER_TABLE, series(metric.LOG_TAIL))),
        ),
        graph(
            "Versions whose files are kept",
            "Of the ten tables that have most.",
            ten_tables(
                highest(
                    PER_TABLE, f"{series(metric.TABLE_VERSION)} - {series(metric.RETAINED_FROM)}"
                )
            ),
        ),
    )


def _removal() -> tuple[Panel, ...]:
    return (
        graph(
            "Files deleted",
            "Per hour. Expired: only versions past their retention named them. Orphans: nothing"
            " did.",
            Query(per_hour(metric.VACUUMED_FILES, "kind"), "{{kind}}"),
            width=8,
        ),
        graph(
            "Bytes deleted",
            "By vacuums and sweeps.",
            Query(per_second(metric.VACUUMED_BYTES, "kind"), "{{kind}}"),
            unit="Bps",
            width=8,
        ),
        graph(
            "Orphans left to the next sweep",
            "Of the ten tables that have most.",
            ten_tables(total(PER_TABLE, series(metric.ORPHANS_LEFT))),
            width=8,
        ),
        graph(
            "Time since the last vacuum",
            "Of ten tables. Far above vacuum.every: vacuums fail, or have no time.",
            ten_tables(highest(PER_TABLE, series(metric.LAST_VACUUM))),
            unit="s",
            width=8,
        ),
        graph(
            "Merged, laid out, purged and erased",
            "Small files that were merged, rows that were laid out by columns, deleted rows that "
            "purges removed, and rows that `lakesplice erase` removed, per hour.",
            Query(per_hour(metric.MERGED_FILES, ""), "files merged"),
            Query(per_hour(metric.CLUSTERED_ROWS, ""), "rows laid out"),
            Query(per_hour(metric.PURGED_ROWS, ""), "rows purged"),
            Query(per_hour(metric.ERASED_ROWS, ""), "rows erased"),
            width=8,
        ),
        graph(
            "Bytes of merged files",
            "Many times what is ingested: raise merge.files_max.",
            Query(per_second(metric.MERGED_BYTES, ""), "bytes"),
            unit="Bps",
            width=8,
        ),
    )


def _mirrors() -> tuple[Panel, ...]:
    return (
        graph(
            "Lag of Iceberg mirrors",
            "Of the ten that are furthest behind. If it grows, the catalog doesn't answer.",
            ten_tables(highest(PER_TABLE, series(metric.ICEBERG_LAG))),
            unit="s",
            width=8,
        ),
        graph(
            "Commits to Iceberg mirrors",
            "By result, per hour.",
            Query(per_hour(metric.ICEBERG_COMMITS, "result"), "{{result}}"),
            width=8,
        ),
        graph(
            "Duration of commits to Iceberg mirrors",
            "95 of 100. Ingest and compaction don't wait for them.",
            Query(quantile(0.95, metric.ICEBERG_SECONDS), "95 of 100"),
            unit="s",
            width=8,
        ),
    )
