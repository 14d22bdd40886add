"""All rule groups, and their text: the YAML of a Prometheus rule file."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

from lakesplice.telemetry.alerts.budget import budget_groups
from lakesplice.telemetry.alerts.limits import AlertLimits
from lakesplice.telemetry.alerts.rule import Alert, Record, RuleGroup, anchor, duration
from lakesplice.telemetry.alerts.service_alerts import service_alerts
from lakesplice.telemetry.alerts.table_alerts import TABLE_ALERTS
from lakesplice.telemetry.alerts.topic_alerts import topic_alerts
from lakesplice.telemetry.alerts.upkeep_alerts import upkeep_alerts

_HEAD = """\
# Alerts of Lakesplice, written by `lakesplice rules`. With its option --config the thresholds
# follow the settings of a configuration. docs/operations.md has a section for each alert. `lake`,
# `namespace` and `job` are labels of the targets.
"""
_WIDTH = 90


def rule_groups(limits: AlertLimits) -> tuple[RuleGroup, ...]:
    """Return the groups of rules under these settings."""
    alerts = (
        *service_alerts(limits),
        *topic_alerts(limits),
        *TABLE_ALERTS,
        *upkeep_alerts(limits),
    )
    return (RuleGroup("lakesplice", alerts), *budget_groups(limits))


def rules_text(groups: Iterable[RuleGroup], runbooks: str) -> str:
    """Return a rule file; `runbooks` is the address of the operations page."""
    lines = [line for group in groups for line in _group(group, runbooks)]
    return "\n".join([f"{_HEAD}groups:", *lines]) + "\n"


def _group(group: RuleGroup, runbooks: str) -> Iterator[str]:
    yield f"  - name: {group.name}"
    if group.interval is not None:
        yield f"    interval: {duration(group.interval)}"
    yield "    rules:"
    for rule in group.rules:
        lines = _alert(rule, runbooks) if isinstance(rule, Alert) else _record(rule)
        yield from (" " * 6 + line for line in lines)


def _alert(alert: Alert, runbooks: str) -> Iterator[str]:
    yield f"- alert: {alert.name}"
    yield from _why(alert.why)
    yield from _expression(alert.expression)
    if alert.after:
        yield f"  for: {duration(alert.after)}"
    yield f"  labels: {{severity: {alert.severity}}}"
    yield "  annotations:"
    yield f"    summary: {json.dumps(alert.summary)}"
    yield f"    section: {json.dumps(alert.section)}"
    yield f"    runbook_url: {json.dumps(f'{runbooks}#{anchor(alert.section)}')}"


def _record(record: Record) -> Iterator[str]:
    yield f"- record: {record.name}"
    yield from _why(record.why)
    yield from _expression(record.expression)


def _why(why: str) -> Iterator[str]:
    return (f"  # {line}" for line in textwrap.wrap(why, _WIDTH))


def _expression(expression: str) -> Iterator[str]:
    if "\n" not in expression and ": " not in expression and " #" not in expression:
        yield f"  expr: {expression}"
        return
    yield "  expr: >-"
    yield from (f"    {line}" for line in expression.split("\n"))
