"""Writes docs/metrics.md from the catalogue; the page's head says how to call it."""

from __future__ import annotations

import sys
from math import prod

from lakesplice.telemetry.catalogue import CATALOGUE, PARKED, TOPIC_STATE
from lakesplice.telemetry.metric import TABLE, Label, Metric, MetricKind

_HEAD = """\
# Metrics

The service serves its metrics on `/metrics` (`metrics.host`, `metrics.port`; 127.0.0.1:9464 unless
set). This file is written by `python -m lakesplice.telemetry.document > docs/metrics.md`; change
`service/lakesplice/telemetry/catalogue.py` instead.

The label `table` is `database.table`. A series whose labels are known beforehand starts at 0. Ages
are computed when they are scraped, so they continue to rise if the service hangs.

There are two more pages: `/healthz` answers 200 while the main loop reports within its deadline,
otherwise 503. `/readyz` answers 200 once every table is loaded and the query runs, otherwise 503.
Both give their reasons as JSON.

A table has {series} series. Others are made when there is something to count:

- one for each reason that occurred in {by_reason}; the possible reasons are a closed set for each;
- one for each outcome that occurred in {rare}.

So 400 tables have some {all} series. How long the page of so many takes is measured by
`python -m benchmarks.scrape`. The series of a table end when its topic is deleted from the broker
and none of its changes waits for compaction.
"""
# In one series per table or topic, whose other label says which value it is.
_SINGLE = (PARKED, TOPIC_STATE)


def metrics_page() -> str:
    """Return docs/metrics.md."""
    series = series_per_table()
    by_reason = ", ".join(
        f"`{metric.name}`"
        for metric in CATALOGUE
        if metric.is_per_table and _is_open(metric) and not metric.is_rare
    )
    rare = ", ".join(f"`{metric.name}`" for metric in CATALOGUE if metric.is_rare)
    head = _HEAD.format(series=series, by_reason=by_reason, rare=rare, all=f"{400 * series:,}")
    return head + "".join(_section(metric) for metric in CATALOGUE)


def series_per_table() -> int:
    """Return how many series a table of one topic has at first."""
    return sum(_count(metric) for metric in CATALOGUE if metric.is_per_table)


def _count(metric: Metric) -> int:
    if metric in _SINGLE:
        return 1
    if _is_open(metric) or metric.is_rare:
        return 0
    return prod(len(label.values) for label in metric.labels if label != TABLE)


def _is_open(metric: Metric) -> bool:
    """Whether the metric's series are created when its values occur."""
    return metric not in _SINGLE and any(
        not label.values for label in metric.labels if label != TABLE
    )


def _section(metric: Metric) -> str:
    kind = "gauge" if metric.kind is MetricKind.AGE else str(metric.kind)
    labels = ", ".join(_label(label) for label in metric.labels) or "none"
    lines = [
        f"\n## `{metric.name}`\n",
        metric.meaning,
        "",
        f"- {kind}, in {metric.unit}" if metric.unit != "1" else f"- {kind}",
        f"- labels: {labels}",
    ]
    if metric.buckets:
        lines.append(f"- buckets: {', '.join(f'{bound:g}' for bound in metric.buckets)}")
    if metric.remedy != "None.":
        lines.append(f"- what to do: {metric.remedy}")
    return "\n".join(lines) + "\n"


def _label(label: Label) -> str:
    values = f" ({', '.join(label.values)})" if label.values else ""
    return f"`{label.name}`{values}"


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
