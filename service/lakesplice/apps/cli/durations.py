"""Durations on the command line, written as in the configuration."""

from __future__ import annotations

import math
from collections.abc import Callable

import typer


def duration(least: float, most: float, unit: float = 1.0) -> Callable[[str | float], float]:
    """Return what reads `90s`, `1h30m`, or a bare number of `unit` seconds each, as seconds.

    It raises `typer.BadParameter` for anything else and for what isn't between `least` and `most`;
    an option's default, a number, is taken as it is.
    """

    def read(given: str | float) -> float:
        if not isinstance(given, str):
            return given
        # The settings take a while to import, and help needs none.
        from lakesplice.config.quantities import duration_text

        seconds = _seconds(given, unit)
        if not (math.isfinite(seconds) and least <= seconds <= most):
            bounds = f"{duration_text(least)} to {duration_text(most)}"
            raise typer.BadParameter(f"{given!r} is out of range; allowed: {bounds}")
        return seconds

    read.__name__ = "duration"  # what help shows in the value's place
    return read


def _seconds(text: str, unit: float) -> float:
    from lakesplice.config.quantities import DURATION_HINT, seconds_of

    try:
        return float(text) * unit
    except ValueError:
        pass
    try:
        return seconds_of(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} isn't a duration; write {DURATION_HINT}") from None
