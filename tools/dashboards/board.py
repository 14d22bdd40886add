"""A dashboard: its variables, its links to the others, and its rows of panels."""

from __future__ import annotations

from collections.abc import Sequence

from grafana_foundation_sdk.builders.dashboard import (
    Dashboard,
    DashboardLink,
    DatasourceVariable,
    QueryVariable,
    Row,
)
from grafana_foundation_sdk.builders.stat import Panel as Stat
from grafana_foundation_sdk.builders.table import Panel as Table
from grafana_foundation_sdk.builders.timeseries import Panel as Graph
from grafana_foundation_sdk.models.dashboard import Dashboard as Made
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from dashboards.panels import SOURCE
from lakesplice.telemetry.catalogue import BUILD_INFO, FRESHNESS_GOAL

_TAG = "lakesplice"
_ALL = VariableOption(text="All", value="$__all", selected=True)
# Of each variable the values that fit those before it. A table that has no version yet has a goal.
_VARIABLES = (
    ("lake", "Lake", f"label_values({BUILD_INFO.name}, lake)"),
    ("namespace", "Namespace", f'label_values({BUILD_INFO.name}{{lake=~"$lake"}}, namespace)'),
    (
        "table",
        "Table",
        f'label_values({FRESHNESS_GOAL.name}{{lake=~"$lake",namespace=~"$namespace"}}, table)',
    ),
)
Panel = Graph | Stat | Table


def board(
    uid: str,
    title: str,
    about: str,
    rows: Sequence[tuple[str, Sequence[Panel]]],
    *,
    one_table: bool = False,
) -> Made:
    """Return a dashboard of rows of panels. `one_table`: it shows one table at a time, not all."""
    made = (
        Dashboard(f"Lakesplice: {title}")
        .uid(uid)
        .description(f"{about} docs/metrics.md explains every metric.")
        .tags([_TAG])
        .editable()
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .link(
            DashboardLink("Lakesplice")
            .type(DashboardLinkType.DASHBOARDS)
            .tags([_TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )
    for name, label, query in _VARIABLES:
        made.with_variable(_variable(name, label, query, several=name != "table" or not one_table))
    for heading, panels in rows:
        made.with_row(Row(heading))
        for panel in panels:
            made.with_panel(panel)
    built = made.build()
    for number, one in enumerate(built.panels or (), 1):
        one.id_val = number
    return built


def _variable(name: str, label: str, query: str, *, several: bool) -> QueryVariable:
    variable = (
        QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query({"query": query, "refId": name})
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )
    if several:
        # Also what has no such label: .* fits it.
        variable.multi(True).include_all(True).all_value(".*").current(_ALL)
    return variable
