"""Source and Kafka: what comes in, how far it is behind, and what is wrong with it."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import Query, graph, ten_tables
from dashboards.queries import PER_LAKE, PER_TABLE, TABLE_LEGEND, highest, per_second, series, total
from lakesplice.telemetry import catalogue as metric


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        "lakesplice-source",
        "source and Kafka",
        "What comes from connectors and topics, how far tables are behind, and what is wrong.",
        (("Topics", _topics()), ("Changes", _changes()), ("Trouble", _trouble())),
    )


def _topics() -> tuple[Panel, ...]:
    return (
        graph(
            "Lag",
            "Records that aren't committed yet, of the ten tables that have most.",
            ten_tables(total(PER_TABLE, series(metric.LAG))),
        ),
        graph(
            "Lag of lakes",
            "Records that aren't committed yet.",
            Query(total(PER_LAKE, series(metric.LAG)), "{{lake}} {{namespace}}"),
        ),
        graph(
            "Age of each connector's newest record",
            "With heartbeats, a connector that stands still is told from a source in which nothing"
            " happens.",
            Query(
                highest(f"{PER_LAKE}, connector, heartbeats", series(metric.CONNECTOR_AGE)),
                "{{connector}}, heartbeats: {{heartbeats}}",
            ),
            unit="s",
        ),
        graph(
            "Topics by state",
            "Topics of kafka.topic_pattern, and those that get no table by"
            " `schema_changes.create_table`.",
            Query(f"count by (state) ({series(metric.TOPIC_STATE)})", "{{state}}"),
            Query(total("", series(metric.TABLES_NOT_MADE)), "not made"),
        ),
    )


def _changes() -> tuple[Panel, ...]:
    return (
        graph(
            "Changes",
            "Changes that were read and committed, by kind.",
            Query(per_second(metric.CHANGES, "op"), "{{op}}"),
            unit="cps",
        ),
        graph(
            "Changes of tables",
            "Of the ten tables that change most.",
            ten_tables(per_second(metric.CHANGES, PER_TABLE)),
            unit="cps",
        ),
        graph(
            "Ignored records",
            "They contain no change, such as tombstones, or are at or below the purge floor.",
            Query(per_second(metric.IGNORED, "reason"), "{{reason}}"),
            unit="cps",
        ),
        graph(
            "Changes without effect",
            "Stale: their row has a later position. Duplicates: an insert-only table has their"
            " key. Since the start, of ten tables each.",
            ten_tables(total(PER_TABLE, series(metric.STALE_CHANGES)), "stale"),
            ten_tables(total(PER_TABLE, series(metric.DUPLICATES)), "duplicates"),
        ),
    )


def _trouble() -> tuple[Panel, ...]:
    return (
        graph(
            "Dead letters",
            "Open ones, of the ten tables that have most; and all by reason, since the start.",
            ten_tables(total(PER_TABLE, series(metric.OPEN_DEAD_LETTERS)), "open"),
            Query(total("reason", series(metric.DEAD_LETTERS)), "{{reason}}"),
            Query(total("", series(metric.UNSENT_DEAD_LETTERS)), "not sent to their topic"),
        ),
        graph(
            "Missing before them",
            "Unlinked: changes before which one is missing. Incomplete: rows of which only partial"
            " images were read. Since the start, of ten tables each.",
            ten_tables(total(PER_TABLE, series(metric.UNLINKED_CHANGES)), "unlinked"),
            ten_tables(total(PER_TABLE, series(metric.INCOMPLETE_ROWS)), "incomplete"),
        ),
        graph(
            "Settings of connectors that change values",
            "Tables per setting; `lakesplice tables` says what each does.",
            Query(f"count by (setting) ({series(metric.SUSPECT_SETTING)})", "{{setting}}"),
        ),
        graph(
            "Dropped tables",
            "DROPs at the source by what was done, since the start.",
            Query(
                total(f"{PER_TABLE}, outcome", series(metric.TABLE_DROPS)),
                TABLE_LEGEND + " {{outcome}}",
            ),
        ),
    )
