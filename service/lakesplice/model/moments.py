"""Moments since 1970 in UTC: in milliseconds for clocks, manifests, commits and the broker, in
microseconds for changes, and in seconds for metrics. Durations are plain numbers
of seconds; ages are also written as text for people.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NewType

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))

EpochMs = NewType("EpochMs", int)
"""A moment in milliseconds; not a duration, a version or an offset."""

EpochUs = NewType("EpochUs", int)
"""A moment in microseconds, as changes have it."""

NO_MOMENT = EpochMs(0)
"""Stands for a moment that isn't set."""

EpochSeconds = NewType("EpochSeconds", float)
"""A moment in seconds."""


def epoch_seconds(moment: float) -> EpochSeconds:
    """Convert a moment from milliseconds to seconds."""
    return EpochSeconds(moment / 1000)


def epoch_us(moment: EpochMs) -> EpochUs:
    """Convert a moment from milliseconds to microseconds."""
    return EpochUs(moment * 1000)


def utc_time(moment: int) -> datetime:
    """Convert a moment from milliseconds to a time in UTC. Raises `ValueError`, `OverflowError` or
    `OSError` if it is out of range.
    """
    return datetime.fromtimestamp(moment / 1000, UTC)


def earlier(moment: EpochMs, seconds: float) -> EpochMs:
    """Return the moment that is `seconds` earlier, in whole milliseconds."""
    return EpochMs(moment - int(seconds * 1000))


def later(moment: EpochMs, seconds: float) -> EpochMs:
    """Return the moment that is `seconds` later, rounded to milliseconds."""
    return EpochMs(moment + round(seconds * 1000))


def outside(moment: EpochMs, start: EpochMs, end: EpochMs) -> float:
    """Return how many seconds a moment is after the end of an interval, or, below 0, before its
    start; 0 if it is inside.
    """
    return (max(0, moment - end) or min(0, moment - start)) / 1000


def seconds_since(moment: EpochMs | None, now: EpochMs) -> float | None:
    """Return how long ago a moment is, in seconds: 0 if it is to come, None if it isn't known."""
    return None if moment is None else max(0, now - moment) / 1000


def age(seconds: float) -> str:
    """Return an age in its two largest units, such as `3h5m`."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    rest, parts = int(seconds), []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts[:2])
