"""The types of rules, and how their numbers and names are written in PromQL."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from lakesplice.telemetry.alerts.limits import Amount, hole

LAKE = "lake, namespace, job"
"""The labels of a target that identify its lake. A label that a target lacks counts as empty."""
INSTANCE = f"{LAKE}, instance"
EACH_TABLE = f"{INSTANCE}, table"

Severity = Literal["critical", "warning", "info"]
# What is less is an error of the computation.
_DECIMALS = 9
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert. `expression` must hold for `after` seconds; `section` is a heading of the
    operations page without its backquotes; `why` explains the threshold.
    """

    name: str
    severity: Severity
    expression: str
    summary: str
    section: str
    after: float | Amount = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A series that Prometheus computes for alerts."""

    name: str
    expression: str
    why: str


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """Rules that are evaluated one after the other, every `interval` seconds; None: in Prometheus'
    default interval.
    """

    name: str
    rules: tuple[Alert | Record, ...]
    interval: float | None = None


def risen(counter: str, window: str) -> str:
    """Return a condition: the counter of a table rose within the window. It also holds if the
    counter's series began in the window, which `increase` doesn't show.
    """
    summed = f"sum by ({EACH_TABLE}) ({counter}"
    return f"{summed})\n> ({summed} offset {window})\nor {summed}) * 0)"


def duration(seconds: float | Amount) -> str:
    """Return a duration in PromQL, in whole seconds or larger units."""
    if isinstance(seconds, Amount):
        if seconds.formula:
            return hole("lakesplice.promDuration", seconds.formula)
        seconds = seconds.value
    whole = math.ceil(round(seconds, _DECIMALS))
    for unit, size in _UNITS:
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def number(amount: Amount) -> str:
    """Return a threshold as PromQL reads it."""
    if amount.formula:
        return hole("lakesplice.promNumber", amount.formula)
    value = round(amount.value, _DECIMALS)
    return str(round(value)) if value == round(value) else f"{value:.6g}"


def anchor(section: str) -> str:
    """Return the anchor that a heading of a Markdown page has."""
    return re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")
