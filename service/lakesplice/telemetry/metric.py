"""What a metric is: its kind, its labels, its meaning and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

PREFIX = "lakesplice_"
NOT_PARKED = "none"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)


class MetricKind(StrEnum):
    """How a metric changes. An age is set as a moment, and read as the seconds since then."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    AGE = "age"


@dataclass(frozen=True, slots=True)
class Label:
    """A label, and its values if they are known beforehand; other values are accepted, too."""

    name: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `name` is complete, with prefix, unit and `_total`; `remedy` is for people.

    `nothing` is the value of an age if there is nothing to be old; None means no series at all.
    `is_rare`: most tables never count it, so its series is created with the first count.
    """

    name: str
    kind: MetricKind
    unit: str
    meaning: str
    remedy: str
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()
    nothing: float | None = None
    is_rare: bool = False

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels' names, in order."""
        return tuple(label.name for label in self.labels)

    @property
    def is_per_table(self) -> bool:
        """Whether the metric has a series per table."""
        return TABLE in self.labels


TABLE = Label("table")


def counter(name: str, unit: str, meaning: str, remedy: str, *labels: Label) -> Metric:
    """A metric that only rises."""
    return Metric(f"{PREFIX}{name}_total", MetricKind.COUNTER, unit, meaning, remedy, labels)


def rare_counter(name: str, unit: str, meaning: str, remedy: str, *labels: Label) -> Metric:
    """A metric that only rises and that most tables never count. Its first count creates a series,
    which `increase` doesn't show: an alert has to compare it with its former value.
    """
    return replace(counter(name, unit, meaning, remedy, *labels), is_rare=True)


def gauge(name: str, unit: str, meaning: str, remedy: str, *labels: Label) -> Metric:
    """A metric with a present value."""
    return Metric(PREFIX + name, MetricKind.GAUGE, unit, meaning, remedy, labels)


def age(name: str, meaning: str, remedy: str, *labels: Label) -> Metric:
    """The time since something."""
    return Metric(PREFIX + name, MetricKind.AGE, "seconds", meaning, remedy, labels)


def durations(name: str, meaning: str, remedy: str, *labels: Label) -> Metric:
    """How long something takes."""
    return Metric(
        name=PREFIX + name,
        kind=MetricKind.HISTOGRAM,
        unit="seconds",
        meaning=meaning,
        remedy=remedy,
        labels=labels,
        buckets=_SECONDS,
    )
