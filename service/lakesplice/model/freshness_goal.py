"""How old the views of a table may become, for alerts and for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FreshnessGoal:
    """The freshness goals of both views: the largest age, in seconds, that each should have."""

    real_time: float
    read_optimised: float

    def lateness(self, real_time: float | None, read_optimised: float | None) -> float | None:
        """Return the larger quotient of a view's age and its goal: above 1 the table is late. An
        unknown age is None; the result is None if both are.
        """
        ages = ((real_time, self.real_time), (read_optimised, self.read_optimised))
        return max((age / goal for age, goal in ages if age is not None), default=None)


def strictest(goals: Iterable[FreshnessGoal]) -> FreshnessGoal | None:
    """Return the goal of a table whose topics have these goals; None if there are none."""
    found = list(goals)
    if not found:
        return None
    return FreshnessGoal(
        min(goal.real_time for goal in found), min(goal.read_optimised for goal in found)
    )
