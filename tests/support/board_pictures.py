"""A dashboard drawn as a page without Grafana: its panels at their places, with the answers of a
real Prometheus to their queries.

Grafana's pictures look better. But queries, places, units, the table's columns and its order are
those of the dashboard's file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.prometheus import Prometheus, filled

WIDTH = 1440
_COLUMN, _ROW, _GAP = WIDTH // 24, 30, 6
_POINTS = 150
_ROWS_SHOWN = 18
_COLOURS = ("#7EB26D", "#EAB839", "#6ED0E0", "#EF843C", "#E24D42", "#1F78C1", "#BA43A9", "#705DA0")
_STYLE = """
body {margin: 0; background: #f4f5f5; color: #24292e; font: 12px sans-serif}
.panel {position: absolute; background: #fff; border: 1px solid #dde; overflow: hidden;
  box-sizing: border-box; padding: 4px 8px}
h2 {font-size: 12px; margin: 2px 0} h1 {font-size: 14px; margin: 8px 4px 0}
.stat {font-size: 24px; line-height: 1.1} .stat small {font-size: 12px; color: #777}
.legend {white-space: nowrap} .legend span {margin-right: 10px}
table {border-collapse: collapse; width: 100%} th, td {text-align: left; padding: 3px 8px;
  border-bottom: 1px solid #eee; white-space: nowrap}
text {font-size: 10px; fill: #777}
"""
Series = list[tuple[str, list[tuple[float, float]]]]


def page(board: Mapping[str, Any], prometheus: Prometheus, table: str, seconds: float) -> str:
    """Return the dashboard as HTML, of the last seconds; where it shows one table, `table`."""
    one = not board["templating"]["list"][-1].get("multi")
    shown = _Shown(prometheus, table if one else ".*", seconds)
    panels = "".join(_placed(panel, shown) for panel in board["panels"])
    return f"<!doctype html><meta charset='utf-8'><style>{_STYLE}</style>{panels}"


def height(board: Mapping[str, Any]) -> int:
    """Return the height of its page in pixels."""
    places = (panel["gridPos"] for panel in board["panels"])
    return _ROW * max(int(place["y"]) + int(place["h"]) for place in places)


class _Shown:
    """Asks what is shown."""

    def __init__(self, prometheus: Prometheus, table: str, seconds: float) -> None:
        self._prometheus = prometheus
        self._table = table
        self._seconds = seconds

    def now(self, target: Mapping[str, Any]) -> list[tuple[dict[str, str], float]]:
        found = self._prometheus.query(self._text(target))
        return [(one["metric"], float(one["value"][1])) for one in found]

    def over_time(self, target: Mapping[str, Any]) -> Series:
        step = max(1.0, self._seconds / _POINTS)
        return [
            (_legend(target, one["metric"]), [(at, float(value)) for at, value in one["values"]])
            for one in self._prometheus.over_time(self._text(target), self._seconds, step)
        ]

    def _text(self, target: Mapping[str, Any]) -> str:
        return filled(target["expr"].replace("$table", self._table))


def _placed(panel: Mapping[str, Any], shown: _Shown) -> str:
    place, title = panel["gridPos"], html.escape(panel["title"])
    left, top = place["x"] * _COLUMN, place["y"] * _ROW
    width, high = place["w"] * _COLUMN - _GAP, place["h"] * _ROW - _GAP
    where = f"left: {left}px; top: {top}px; width: {width}px; height: {high}px"
    if panel["type"] == "row":
        return f'<h1 style="position: absolute; {where}">{title}</h1>'
    draw: dict[str, Callable[[], str]] = {
        "stat": lambda: _stat(panel, shown),
        "table": lambda: _table(panel, shown),
        "timeseries": lambda: _graph(panel, shown, width - 20, high - 50),
    }
    return f'<div class="panel" style="{where}"><h2>{title}</h2>{draw[panel["type"]]()}</div>'


def _stat(panel: Mapping[str, Any], shown: _Shown) -> str:
    unit, steps = panel["fieldConfig"]["defaults"]["unit"], _steps(panel["fieldConfig"]["defaults"])
    values = [
        (_legend(target, labels), value)
        for target in panel["targets"]
        for labels, value in shown.now(target)
    ]
    return "".join(
        f'<span class="stat" style="color: {_colour(value, steps)}">'
        f"<small>{html.escape(name)}</small> {_written(value, unit)} </span>"
        for name, value in values
    )


def _graph(panel: Mapping[str, Any], shown: _Shown, width: int, high: int) -> str:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    series = [one for target in panel["targets"] for one in shown.over_time(target)]
    points = [point for _, line in series for point in line]
    if not points:
        return "No data"
    left, right = min(at for at, _ in points), max(at for at, _ in points)
    low = min(0.0, *(value for _, value in points))
    top = max([value for _, value in points] + [low + 1e-9]) * 1.05 or 1.0

    def drawn(line: list[tuple[float, float]]) -> str:
        return " ".join(
            f"{50 + (width - 50) * (at - left) / ((right - left) or 1):.1f},"
            f"{high - (high - 8) * (value - low) / (top - low):.1f}"
            for at, value in line
        )

    lines = "".join(
        f'<polyline fill="none" stroke-width="1.5" stroke="{_COLOURS[at % len(_COLOURS)]}"'
        f' points="{drawn(line)}"/>'
        for at, (_, line) in enumerate(series)
    )
    names = "".join(
        f'<span style="color: {_COLOURS[at % len(_COLOURS)]}">{html.escape(name)}</span>'
        for at, (name, _) in enumerate(series)
    )
    scale = (
        f'<text x="0" y="14">{_written(top, unit)}</text>'
        f'<text x="0" y="{high}">{_written(low, unit)}</text>'
        f'<line x1="50" x2="{width}" y1="{high}" y2="{high}" stroke="#ccc"/>'
    )
    return f'<svg width="{width}" height="{high + 2}">{scale}{lines}</svg>' + (
        f'<div class="legend">{names}</div>'
    )


def _table(panel: Mapping[str, Any], shown: _Shown) -> str:
    rows = _merged(panel["targets"], shown)
    organise = panel["transformations"][-1]["options"]
    names, places = organise["renameByName"], organise["indexByName"]
    fields = sorted(places, key=lambda field: int(places[field]))
    (order,) = panel["options"]["sortBy"]
    (sorting,) = [field for field, name in names.items() if name == order["displayName"]]
    rows.sort(key=lambda row: float(row.get(sorting, 0)), reverse=order["desc"])
    styles = {
        one["matcher"]["options"]: one["properties"] for one in panel["fieldConfig"]["overrides"]
    }
    head = "".join(f"<th>{html.escape(names[field])}</th>" for field in fields)
    body = "".join(
        f"<tr>{''.join(_cell(row.get(field), styles[names[field]]) for field in fields)}</tr>"
        for row in rows[:_ROWS_SHOWN]
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _merged(targets: Sequence[Mapping[str, Any]], shown: _Shown) -> list[dict[str, Any]]:
    """Rows as Grafana's transformation `merge` makes them, one per set of labels."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for target in targets:
        for labels, value in shown.now(target):
            key = tuple(labels.get(name, "") for name in ("lake", "namespace", "table"))
            rows.setdefault(key, {}).update({**labels, f"Value #{target['refId']}": value})
    return list(rows.values())


def _cell(value: str | float | None, style: Sequence[Mapping[str, Any]]) -> str:
    properties = {one["id"]: one["value"] for one in style}
    if not isinstance(value, float):
        return f"<td>{html.escape(value or '')}</td>"
    steps = properties.get("thresholds")
    colour = _colour(value, _steps({"thresholds": steps})) if steps else "none"
    return f'<td style="background: {colour}">{_written(value, properties["unit"])}</td>'


def _steps(config: Mapping[str, Any]) -> list[tuple[float, str]]:
    found = config["thresholds"]["steps"]
    return [
        (float("-inf") if one["value"] is None else one["value"], one["color"]) for one in found
    ]


def _colour(value: float, steps: Sequence[tuple[float, str]]) -> str:
    chosen = [colour for least, colour in steps if value >= least][-1]
    return {"green": "#73BF69", "red": "#F2705B"}.get(chosen, chosen)


def _legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    wanted = target.get("legendFormat", "__auto")
    if wanted == "__auto":
        return ", ".join(labels.values())
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found[1], ""), wanted).strip()


def _written(value: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{100 * value:.0f} %"
    if unit == "s":
        return f"{value:.1f} s" if value < 120 else f"{value / 60:.0f} min"
    if unit in ("bytes", "Bps"):
        size, steps = value, 0
        while abs(size) >= 1024 and steps < 3:
            size, steps = size / 1024, steps + 1
        return f"{size:.0f} {('B', 'KiB', 'MiB', 'GiB')[steps]}{'/s' if unit == 'Bps' else ''}"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"
