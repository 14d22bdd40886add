"""The types of rules, the settings that their thresholds follow, and how numbers and names are
written in PromQL.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

LAKE = "lake, namespace, job"
"""The labels that tell lakes, those of a target. One that a target lacks counts as empty."""
INSTANCE = f"{LAKE}, instance"
EACH_TABLE = f"{INSTANCE}, table"

Severity = Literal["critical", "warning", "info"]
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60))


# A batch takes some seconds, however short the trigger is.
_BATCH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """Values of settings, in seconds where they are times. `objective` is the share of 30 days in
    which a view is to keep its freshness goal; `runbooks` is the address of the operations page.
    """

    trigger: float
    lease: float
    age_max: float
    back_pressure_deltas: int
    runs_max: int
    checkpoint_every: int
    merge_files_max: int
    vacuum_every: float
    objective: float
    runbooks: str

    @property
    def batch_seconds_max(self) -> float:
        """How long a batch may take."""
        return max(_BATCH_SECONDS, self.trigger)

    @property
    def silence_seconds_max(self) -> float:
        """How long the service may be without the end of a batch: three triggers."""
        return 3 * self.batch_seconds_max


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
    after: float = 0.0
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


def duration(seconds: float) -> str:
    """Return a duration in PromQL, in whole seconds or larger units."""
    whole = math.ceil(seconds)
    for unit, size in _UNITS:
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def number(value: float) -> str:
    """Return a threshold as PromQL reads it."""
    return str(round(value)) if value == round(value) else f"{value:.6g}"


def anchor(section: str) -> str:
    """Return the anchor that a heading of a Markdown page has."""
    return re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")
