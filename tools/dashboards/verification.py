"""Verification: whether tables equal their databases, and when that was last looked at."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import RED, YELLOW, Column, Query, graph, number, table, ten_tables
from dashboards.queries import PER_TABLE, highest, series, total
from dashboards.table import table_link
from lakesplice.telemetry import catalogue as metric

_COMPARED = "Time since compared"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        "lakesplice-verification",
        "verification",
        "Whether tables equal their databases, and what shows that changes are missing.",
        (
            ("At a glance", _numbers()),
            ("Every table", (_tables(),)),
            ("Comparisons with the database", _comparisons()),
            ("What shows that changes are missing", _signs()),
        ),
    )


def _numbers() -> tuple[Panel, ...]:
    compared = f"count({series(metric.VERIFICATION_AGE)})"
    return (
        number(
            "Tables that differed",
            "Tables of which a comparison found differing rows, since the start.",
            Query(f"sum({total(PER_TABLE, series(metric.DIFFERING_ROWS))} > bool 0)"),
            steps=((1, RED),),
        ),
        number(
            "Compared, of all",
            "Tables that were compared since the service started, and all that it has.",
            Query(compared, "compared"),
            Query(total("", series(metric.TABLES)), "all"),
        ),
        number(
            "Longest ago",
            "Time since the comparison of the table that was compared longest ago. Tables that"
            " were never compared don't count.",
            Query(highest("", series(metric.VERIFICATION_AGE))),
            unit="s",
        ),
        number(
            "Records passed over",
            "Records that were skipped, or that the broker lost, and that weren't read since.",
            Query(total("", series(metric.GAP_RECORDS))),
            steps=((1, RED),),
        ),
        number(
            "Dead letters",
            "Records whose changes are missing until they are replayed.",
            Query(total("", series(metric.OPEN_DEAD_LETTERS))),
            steps=((1, YELLOW),),
        ),
        number(
            "Settings that change values",
            "Settings of connectors and converters by which tables can't equal their database.",
            Query(f"count({series(metric.SUSPECT_SETTING)})"),
            steps=((1, RED),),
        ),
    )


def _tables() -> Panel:
    return table(
        "Tables, the one that was compared longest ago first",
        "A table that wasn't compared since the service started has no time. `lakesplice history`"
        " has the results (VERIFY). A click on a name leads to the table.",
        (
            Column("Table", label="table", link=table_link(), width=260),
            Column("Lake", label="lake"),
            Column("Namespace", label="namespace"),
            Column(_COMPARED, highest(PER_TABLE, series(metric.VERIFICATION_AGE)), unit="s"),
            Column(
                "Differing rows", total(PER_TABLE, series(metric.DIFFERING_ROWS)), steps=((1, RED),)
            ),
            Column(
                "Unlinked", total(PER_TABLE, series(metric.UNLINKED_CHANGES)), steps=((1, YELLOW),)
            ),
            Column(
                "Incomplete", total(PER_TABLE, series(metric.INCOMPLETE_ROWS)), steps=((1, YELLOW),)
            ),
            Column("Passed over", total(PER_TABLE, series(metric.GAP_RECORDS)), steps=((1, RED),)),
            Column(
                "Dead letters",
                total(PER_TABLE, series(metric.OPEN_DEAD_LETTERS)),
                steps=((1, YELLOW),),
            ),
            Column("Rows", total(PER_TABLE, series(metric.BASE_ROWS))),
        ),
        sorted_by=_COMPARED,
    )


def _comparisons() -> tuple[Panel, ...]:
    return (
        graph(
            "Comparisons",
            "By outcome, since the start. Unsettled: no row is proven to differ, but some changed"
            " too often to be compared.",
            Query(total("outcome", series(metric.VERIFICATIONS)), "{{outcome}}"),
            width=8,
        ),
        graph(
            "Differing rows",
            "Rows that comparisons found to differ, since the start, of ten tables. A row that"
            " two comparisons find counts twice.",
            ten_tables(total(PER_TABLE, series(metric.DIFFERING_ROWS))),
            width=8,
        ),
        graph(
            "Time since the last comparison",
            "Of the ten tables that were compared longest ago.",
            ten_tables(highest(PER_TABLE, series(metric.VERIFICATION_AGE))),
            unit="s",
            width=8,
        ),
    )


def _signs() -> tuple[Panel, ...]:
    return (
        graph(
            "Unlinked changes",
            "Changes before which one is missing, since the start, of ten tables.",
            ten_tables(total(PER_TABLE, series(metric.UNLINKED_CHANGES))),
        ),
        graph(
            "Incomplete rows",
            "New rows of which only partial images were read, since the start, of ten tables.",
            ten_tables(total(PER_TABLE, series(metric.INCOMPLETE_ROWS))),
        ),
        graph(
            "Records passed over",
            "Skipped or lost records that weren't read since, of ten tables.",
            ten_tables(total(PER_TABLE, series(metric.GAP_RECORDS))),
        ),
        graph(
            "Settings of connectors that change values",
            "Tables per setting; `lakesplice tables` says what each does.",
            Query(f"count by (setting) ({series(metric.SUSPECT_SETTING)})", "{{setting}}"),
        ),
    )
