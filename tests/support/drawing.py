"""How many examples a law draws: its own usual number, scaled by what the run can afford."""

from __future__ import annotations

from math import ceil

from hypothesis import settings

_USUAL = 100
_MIN = 2


def examples(usual: int) -> int:
    """Return the number for the profile in force.

    `make test` and the gate draw a sixth of the `usual` number, `make check` a
    sixteenth, and `make nightly` five times as many.
    """
    return max(_MIN, ceil(usual * settings().max_examples / _USUAL))
