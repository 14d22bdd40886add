"""The fleet: which of all tables is late, and why."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import RED, YELLOW, Ask, Column, graph, number, table, ten_tables
from dashboards.queries import (
    EACH,
    LAKE,
    TABLE_LEGEND,
    budget_left,
    highest,
    lateness,
    of,
    per_second,
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
    late = f"{of(metric.FRESHNESS)} > bool {of(metric.FRESHNESS_GOAL)}"
    return (
        number(
            "Late tables",
            "Tables of which a view is older than its goal.",
            Ask(total("", highest(EACH, late))),
            steps=((1, RED),),
        ),
        number(
            "Running, not made",
            "Tables that take in changes. Not made: topics that get no table, by"
            " `schema_changes.create_table: ignore`.",
            Ask(total("", of(metric.TABLES, state="running")), "running"),
            Ask(total("", of(metric.TABLES_NOT_MADE)), "not made"),
        ),
        number(
            "Parked",
            "Tables that take in nothing until somebody decides. `lakesplice tables` says why.",
            Ask(total("", of(metric.TABLES, state="parked"))),
            steps=((1, RED),),
        ),
        number(
            "Latest of its goal",
            "The age of the latest view, as a share of the age that its goal allows.",
            Ask(lateness("")),
            unit="percentunit",
            steps=_LATE,
        ),
        number(
            "Last batch",
            "Time since a batch ended, of the lake that waits longest.",
            Ask(highest("", of(metric.LAST_BATCH))),
            unit="s",
        ),
        number(
            "Drivers and versions",
            "Lakes by the version that drives them, and processes that wait to take over.",
            Ask(f"count by (version) ({of(metric.BUILD_INFO)})", "{{version}}"),
            Ask(total("", of(metric.DRIVER_STANDBY)), "standbys"),
        ),
    )


def _tables() -> Panel:
    def age(view: str) -> str:
        return highest(EACH, of(metric.FRESHNESS, view=view))

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
            Column(_LATEST, lateness(EACH), unit="percentunit", steps=_LATE),
            Column("Real-time age", age(metric.REAL_TIME), unit="s"),
            Column("Read-optimised age", age(metric.READ_OPTIMISED), unit="s"),
            Column("Lag", total(EACH, of(metric.LAG))),
            Column("Changes/s", per_second(metric.CHANGES, EACH)),
            Column("Waiting changes", total(EACH, of(metric.DELTA_ROWS))),
            Column("Dead letters", total(EACH, of(metric.OPEN_DEAD_LETTERS)), steps=((1, YELLOW),)),
            Column("Budget left", budget_left(EACH), unit="percentunit"),
        ),
        sorted_by=_LATEST,
        hidden=(topic_state(f"{EACH}, state"), highest(f"{EACH}, code", of(metric.PARKED))),
    )


def _budgets() -> tuple[Panel, ...]:
    least = f"bottomk(10, {budget_left(f'{EACH}, view')})"
    return (
        number(
            "Objective",
            "The share of 30 days in which each view is to keep its goal (`alerts.objective`).",
            Ask(f"min by ({LAKE}) ({of(metric.OBJECTIVE)})", "{{lake}}"),
            unit="percentunit",
        ),
        number(
            "Spent",
            "Tables that have no error budget left.",
            Ask(total("", f"{budget_left(EACH)} <= bool 0")),
            steps=((1, RED),),
        ),
        graph(
            "Error budget left, the least first",
            "The share of the minutes of 30 days in which a view may be late that is left."
            " Below 0 the objective is missed. The rules must be loaded.",
            Ask(least, f"{TABLE_LEGEND} {{{{view}}}}"),
            unit="percentunit",
            width=16,
            least=None,
        ),
    )


def _graphs() -> tuple[Panel, ...]:
    late = f"{of(metric.FRESHNESS)} > bool {of(metric.FRESHNESS_GOAL)}"
    return (
        graph(
            "The latest tables",
            "The age of the later view as a share of its goal, of the ten latest.",
            ten_tables(lateness(EACH)),
            unit="percentunit",
            steps=((1.0, RED),),
        ),
        graph(
            "Late tables",
            "How many tables have a view that is older than its goal.",
            Ask(total(LAKE, highest(EACH, late)), "{{lake}} {{namespace}}"),
        ),
        graph(
            "Topics by state",
            "Topics of kafka.topic_pattern; `lakesplice tables` says why one isn't running.",
            Ask(f"count by (state) ({of(metric.TOPIC_STATE)})", "{{state}}"),
        ),
        graph(
            "Parked tables",
            "Each with the code of its reason.",
            Ask(f"{highest(f'{EACH}, code', of(metric.PARKED))} == 1", TABLE_LEGEND + " {{code}}"),
        ),
        graph(
            "Changes",
            "Changes that were read and committed.",
            Ask(per_second(metric.CHANGES, LAKE), "{{lake}} {{namespace}}"),
            unit="cps",
        ),
        graph(
            "Lag",
            "Records that aren't committed yet.",
            Ask(total(LAKE, of(metric.LAG)), "{{lake}} {{namespace}}"),
        ),
    )
