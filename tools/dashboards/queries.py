"""PromQL, written from the metrics of the catalogue, under the variables that all dashboards have.

What is shown per table is told apart by `PER_TABLE`, since tables of two lakes may have one name.
"""

from __future__ import annotations

from lakesplice.telemetry.catalogue import FRESHNESS, FRESHNESS_GOAL, OBJECTIVE, TOPIC_STATE
from lakesplice.telemetry.metric import Metric

PER_LAKE = "lake, namespace"
PER_TABLE = f"{PER_LAKE}, table"
TABLE_LEGEND = "{{table}} {{lake}}"
SHOWN_MAX = 10
"""How many tables a graph shows; the fleet's table shows all."""
_LAKES = 'lake=~"$lake",namespace=~"$namespace"'
_TABLES = f'{_LAKES},table=~"$table"'
_TARGET = "lake, namespace, job"
_BUDGET_MINUTES = 30 * 24 * 60


def series(metric: Metric, part: str = "", **labels: str) -> str:
    """Return the selector of a metric's series that the variables choose. `part` is that of a
    histogram (`_bucket`, …); a value that begins with ~ is a regular expression.
    """
    scope = _TABLES if metric.is_per_table else _LAKES
    named = "".join(f",{name}={_value(value)}" for name, value in labels.items())
    return f"{metric.name}{part}{{{scope}{named}}}"


def _value(value: str) -> str:
    return f'~"{value[1:]}"' if value.startswith("~") else f'"{value}"'


def total(by: str, expression: str) -> str:
    """Return the sum by labels; none gives one series."""
    return f"sum by ({by}) ({expression})" if by else f"sum({expression})"


def highest(by: str, expression: str) -> str:
    """Return the maximum by labels; none gives one series."""
    return f"max by ({by}) ({expression})" if by else f"max({expression})"


def per_second(metric: Metric, by: str, **labels: str) -> str:
    """Return how fast a counter rises."""
    return total(by, f"rate({series(metric, **labels)}[$__rate_interval])")


def per_hour(metric: Metric, by: str, **labels: str) -> str:
    """Return how fast a counter rises, of what is too seldom to be shown by the second."""
    return f"{per_second(metric, by, **labels)} * 3600"


def quantile(share: float, metric: Metric, by: str = "") -> str:
    """Return a quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    buckets = total(labels, f"rate({series(metric, '_bucket')}[$__rate_interval])")
    return f"histogram_quantile({share}, {buckets})"


def ratio(above: str, below: str, least: str = "1") -> str:
    """Return a quotient, with at least `least` below the line."""
    return f"{above} / clamp_min({below}, {least})"


def lateness(by: str, **labels: str) -> str:
    """Return how old a view is, as a share of the age that its goal allows."""
    return highest(by, f"{series(FRESHNESS, **labels)} / {series(FRESHNESS_GOAL, **labels)}")


def budget_left(by: str) -> str:
    """Return which share of the error budget of 30 days is left: below 0 there is none. It needs
    the rules, which count late minutes.
    """
    late = f"sum_over_time(lakesplice:table_late{{{_TABLES}}}[30d])"
    allowed = f"{_BUDGET_MINUTES} * (1 - {highest(_TARGET, series(OBJECTIVE))})"
    return f"min by ({by}) (1 - {late} / on ({_TARGET}) group_left () ({allowed}))"


def topic_state(by: str) -> str:
    """Return a series per table with the state of its topic as a label; of one of them, if several
    topics share the table.
    """
    return highest(by, f"topk by ({PER_TABLE}) (1, {series(TOPIC_STATE)})")
