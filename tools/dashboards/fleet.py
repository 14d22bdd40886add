"""The fleet: which of all tables is late, and why."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import RED, YELLOW, Column, Query, graph, number, table, ten_tables
from dashboards.queries import (
    PER_LAKE,
    PER_TABLE,
    TABLE_LEGEND,
    budget_left,
    highest,
    lateness,
    per_second,
    series,
    topic_state,
    total,
)
from dashboards.table import table_link
from lakesplice.telemetry import catalogue as metric

_LATE = ((0.8, YELLOW), (1.0, RED))
_LATEST = "Of its goal"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        "lakesplice-fleet",
        "fleet",
        "Which tables are late, and why; the rest of their error budgets.",
        (
            ("At a glance", _numbers()),
            ("Every table", (_tables(),)),
            ("Error budgets", _budgets()),
            ("Over time", _graphs()),
        ),
    )


def _numbers() -> tuple[Panel, ...]:
    late = f"{series(metric.FRESHNESS)} > bool {series(metric.FRESHNESS_GOAL)}"
    return (
        number(
            "Late tables",
            "Tables of which a view is older than its goal.",
            Query(total("", highest(PER_TABLE, late))),
            steps=((1, RED),),
        ),
        number(
            "Running, not made",
            "Tables that take in changes. Not made: topics that get no table, by"
            " `schema_changes.create_table: ignore`.",
            Query(total("", series(metric.TABLES, state="running")), "running"),
            Query(total("", series(metric.TABLES_NOT_MADE)), "not made"),
        ),
        number(
            "Parked",
            "Tables that take in nothing until somebody decides. `lakesplice tables` says why.",
            Query(total("", series(metric.TABLES, state="parked"))),
            steps=((1, RED),),
        ),
        number(
            "Latest of its goal",
            "The age of the latest view, as a share of the age that its goal allows.",
            Query(lateness("")),
            unit="percentunit",
            steps=_LATE,
        ),
        number(
            "Last batch",
            "Time since a batch ended, of the lake that waits longest.",
            Query(highest("", series(metric.LAST_BATCH))),
            unit="s",
        ),
        number(
            "Drivers and versions",
            "Lakes by the version that drives them, and processes that wait to take over.",
            Query(f"count by (version) ({series(metric.BUILD_INFO)})", "{{version}}"),
            Query(total("", series(metric.DRIVER_STANDBY)), "standbys"),
        ),
    )


def _tables() -> Panel:
    def age(view: str) -> str:
        return highest(PER_TABLE, series(metric.FRESHNESS, view=view))

    return table(
        "Tables, the latest against its goal first",
        "Above 100 % a view is late. State is that of the topic; a parked table has a reason."
        " A click on a name leads to the table.",
        (
            Column("Table", label="table", link=table_link(), width=260),
            Column("Lake", label="lake"),
            Column("Namespace", label="namespace"),
            Column("State", label="state"),
            Column("Parked because", label="code"),
            Column(_LATEST, lateness(PER_TABLE), unit="percentunit", steps=_LATE),
            Column("Real-time age", age(metric.REAL_TIME), unit="s"),
            Column("Read-optimised age", age(metric.READ_OPTIMISED), unit="s"),
            Column("Lag", total(PER_TABLE, series(metric.LAG))),
            Column("Changes/s", per_second(metric.CHANGES, PER_TABLE)),
            Column("Waiting changes", total(PER_TABLE, series(metric.DELTA_ROWS))),
            Column(
                "Dead letters",
                total(PER_TABLE, series(metric.OPEN_DEAD_LETTERS)),
                steps=((1, YELLOW),),
            ),
            Column("Budget left", budget_left(PER_TABLE), unit="percentunit"),
        ),
        sorted_by=_LATEST,
        hidden=(
            topic_state(f"{PER_TABLE}, state"),
            highest(f"{PER_TABLE}, code", series(metric.PARKED)),
        ),
    )


def _budgets() -> tuple[Panel, ...]:
    least = f"bottomk(10, {budget_left(f'{PER_TABLE}, view')})"
    return (
        number(
            "Objective",
            "The share of 30 days in which each view is to keep its goal (`alerts.objective`).",
            Query(f"min by ({PER_LAKE}) ({series(metric.OBJECTIVE)})", "{{lake}}"),
            unit="percentunit",
        ),
        number(
            "Spent",
            "Tables that have no error budget left.",
            Query(total("", f"{budget_left(PER_TABLE)} <= bool 0")),
            steps=((1, RED),),
        ),
        graph(
            "Error budget left, the least first",
            "The share of the minutes of 30 days in which a view may be late that is left."
            " Below 0 the objective is missed. The rules must be loaded.",
            Query(least, f"{TABLE_LEGEND} {{{{view}}}}"),
            unit="percentunit",
            width=16,
            least=None,
        ),
    )


def _graphs() -> tuple[Panel, ...]:
    late = f"{series(metric.FRESHNESS)} > bool {series(metric.FRESHNESS_GOAL)}"
    return (
        graph(
            "The latest tables",
            "The age of the later view as a share of its goal, of the ten latest.",
            ten_tables(lateness(PER_TABLE)),
            unit="percentunit",
            steps=((1.0, RED),),
        ),
        graph(
            "Late tables",
            "How many tables have a view that is older than its goal.",
            Query(total(PER_LAKE, highest(PER_TABLE, late)), "{{lake}} {{namespace}}"),
        ),
        graph(
            "Topics by state",
            "Topics of kafka.topic_pattern; `lakesplice tables` says why one isn't running.",
            Query(f"count by (state) ({series(metric.TOPIC_STATE)})", "{{state}}"),
        ),
        graph(
            "Parked tables",
            "Each with the code of its reason.",
            Query(
                f"{highest(f'{PER_TABLE}, code', series(metric.PARKED))} == 1",
                TABLE_LEGEND + " {{code}}",
            ),
        ),
        graph(
            "Changes",
            "Changes that were read and committed.",
            Query(per_second(metric.CHANGES, PER_LAKE), "{{lake}} {{namespace}}"),
            unit="cps",
        ),
        graph(
            "Lag",
            "Records that aren't committed yet.",
            Query(total(PER_LAKE, series(metric.LAG)), "{{lake}} {{namespace}}"),
        ),
    )
