"""Writes docs/metrics.md from the catalogue; its head says how to call it."""

from __future__ import annotations

import sys

from lakesplice.telemetry.catalogue import CATALOGUE
from lakesplice.telemetry.metric import Kind, Label, Metric

_HEAD = """\
# Metrics

Served on `/metrics` (`metrics.host`, `metrics.port`; 127.0.0.1:9464 unless set). This file is
written by `python -m lakesplice.telemetry.document > docs/metrics.md`; change
`service/lakesplice/telemetry/catalogue.py` instead.

A table is `database.table`. Series whose labels are known beforehand start at 0. Ages are computed
when they are scraped, so they grow on when the service hangs.

Beside `/metrics`: `/healthz` answers 200 while the main loop ticks and 503 when it is silent past
its deadline; `/readyz` answers 200 once every table is loaded and the query runs, else 503. Both
give their reasons as JSON.
"""


def metrics_page() -> str:
    """Return docs/metrics.md."""
    return _HEAD + "".join(_section(metric) for metric in CATALOGUE)


def _section(metric: Metric) -> str:
    kind = "gauge" if metric.kind is Kind.AGE else str(metric.kind)
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
