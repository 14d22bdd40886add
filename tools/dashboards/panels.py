"""The kinds of panels that dashboards have: a number, a graph over time, a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as base
from grafana_foundation_sdk.builders import table as table_panel
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import (
    BigValueColorMode,
    BigValueGraphMode,
    BigValueTextMode,
    GraphDrawStyle,
    GraphThresholdsStyleMode,
    LegendDisplayMode,
    LegendPlacement,
    TooltipDisplayMode,
)
from grafana_foundation_sdk.models.dashboard import (
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.queries import SHOWN_MAX, TABLE_LEGEND

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
_STAT_HEIGHT, _GRAPH_HEIGHT = 4, 8
GREEN, YELLOW, RED = "green", "#EAB839", "red"


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and what its series are called."""

    expression: str
    legend: str = "__auto"


def ten_tables(expression: str, what: str = "") -> Query:
    """Return the query for the ten tables with the highest values at each moment; `what` names the
    value if a graph shows several.
    """
    legend = f"{what}: {TABLE_LEGEND}" if what else TABLE_LEGEND
    return Query(f"topk({SHOWN_MAX}, {expression})", legend)


def number(
    title: str,
    about: str,
    *queries: Query,
    unit: str = "short",
    width: int = 4,
    steps: Sequence[tuple[float, str]] = (),
) -> stat.Panel:
    """Return a panel of the newest values. `steps` are the values from which a colour is shown."""
    panel = (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .height(_STAT_HEIGHT)
        .span(width)
        .unit(unit)
        .no_value("none")
        .color_mode(BigValueColorMode.VALUE)
        .graph_mode(BigValueGraphMode.NONE)
        .text_mode(BigValueTextMode.VALUE_AND_NAME if len(queries) > 1 else BigValueTextMode.AUTO)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(_thresholds(steps))
    )
    for at, one in enumerate(queries):
        panel.with_target(_target(one, at).instant())
    return panel


def graph(
    title: str,
    about: str,
    *queries: Query,
    unit: str = "short",
    width: int = 12,
    least: float | None = 0,
    steps: Sequence[tuple[float, str]] = (),
) -> timeseries.Panel:
    """Return a panel of values over time. `least` is the lowest value of its axis."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .height(_GRAPH_HEIGHT)
        .span(width)
        .unit(unit)
        .draw_style(GraphDrawStyle.LINE)
        .fill_opacity(10)
        .line_width(1)
        .thresholds(_thresholds(steps))
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI))
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
        )
    )
    if least is not None:
        panel.min(least)
    if steps:
        panel.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.LINE)
        )
    for at, one in enumerate(queries):
        panel.with_target(_target(one, at).range())
    return panel


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the query whose value it shows, or the label that it shows if there is
    no query. `link` is where a click leads; `steps` as those of a number.
    """

    name: str
    expression: str = ""
    label: str = ""
    unit: str = "short"
    link: str = ""
    width: int | None = None
    steps: tuple[tuple[float, str], ...] = ()


def table(
    title: str, about: str, columns: Sequence[Column], *, sorted_by: str, hidden: Sequence[str] = ()
) -> table_panel.Panel:
    """Return a table of one row per set of labels that the queries share, over the whole width, the
    highest value of a column first. `hidden` are queries that only bring labels.
    """
    measured = [column for column in columns if column.expression]
    panel = (
        table_panel.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .height(20)
        .span(24)
        .no_value("")
        .sort_by([common.TableSortByFieldState().display_name(sorted_by).desc(True)])
    )
    expressions = [*(column.expression for column in measured), *hidden]
    for at, expression in enumerate(expressions):
        panel.with_target(_target(Query(expression), at).instant().format(PromQueryFormat.TABLE))
    fields = {f"Value #{_ref(at)}": column.name for at, column in enumerate(measured)}
    fields |= {column.label: column.name for column in columns if column.label}
    places = {name: at for at, name in enumerate(column.name for column in columns)}
    only_labels = range(len(measured), len(expressions))
    panel.with_transformation(DataTransformerConfig(id_val="merge", options={}))
    panel.with_transformation(
        DataTransformerConfig(
            id_val="organize",
            options={
                "excludeByName": {
                    "Time": True,
                    **{f"Value #{_ref(at)}": True for at in only_labels},
                },
                "indexByName": {field: places[name] for field, name in fields.items()},
                "renameByName": fields,
            },
        )
    )
    for column in columns:
        panel.override_by_name(column.name, _properties(column))
    return panel


def _properties(column: Column) -> list[DynamicConfigValue]:
    found = [DynamicConfigValue("unit", column.unit)] if column.expression else []
    if column.width:
        found.append(DynamicConfigValue("custom.width", column.width))
    if column.link:
        link = {"title": "Open", "url": column.link, "targetBlank": False}
        found.append(DynamicConfigValue("links", [link]))
    if column.steps:
        found.append(DynamicConfigValue("thresholds", _thresholds(column.steps).build()))
        found.append(DynamicConfigValue("custom.cellOptions", {"type": "color-background"}))
    return found


def _thresholds(steps: Sequence[tuple[float, str]]) -> base.ThresholdsConfig:
    found = [Threshold(value=None, color=GREEN)]
    found += [Threshold(value=value, color=colour) for value, colour in steps]
    return base.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(found)


def _target(query: Query, at: int) -> Dataquery:
    target = Dataquery().expr(query.expression).legend_format(query.legend).ref_id(_ref(at))
    return target.datasource(SOURCE)


def _ref(at: int) -> str:
    return chr(ord("A") + at)
