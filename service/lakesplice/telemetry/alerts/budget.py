"""Alerts about error budgets: how fast the lateness of a table uses up what it may be late in 30
days.

Each compares two windows. The long one shows that so much of the budget is gone, the short one that
it is still being spent, so an alert ends soon after its cause. The factors are those of Google's
workbook on site reliability engineering: 14.4 for an hour is 2 % of the budget, 6 for six hours 5
%, 3 for a day 10 %, and 1 for three days 10 %.
"""

from __future__ import annotations

from lakesplice.telemetry.alerts.limits import AlertLimits, Amount
from lakesplice.telemetry.alerts.rule import LAKE, Alert, Record, RuleGroup, duration, number

LATE = "lakesplice:table_late"
_SECTION = "The error budget of a table is being used up"
_MINUTE = 60
_HOUR, _DAY = 60, 1_440  # minutes
_FAST = ((14.4, _HOUR, 5), (6.0, 6 * _HOUR, 30))
_SLOW = ((3.0, _DAY, 2 * _HOUR), (1.0, 3 * _DAY, 6 * _HOUR))


def budget_groups(limits: AlertLimits) -> tuple[RuleGroup, RuleGroup]:
    """Return the group that records late minutes and has the alerts over hours, and the group of
    the alerts over days, which cost more and may come later.
    """
    allowed = limits.objective.missing_to_one()
    percent = number(100 * limits.objective)
    late = Record(
        LATE,
        f"max by ({LAKE}, table, view) (\n"
        "  lakesplice_table_freshness_seconds > bool lakesplice_table_freshness_goal_seconds\n"
        ")",
        "1 in a minute in which a view is older than its goal. Since it is evaluated each minute, a"
        " sum over time is a number of minutes.",
    )
    fast = Alert(
        "LakespliceFreshnessBudgetBurnsFast",
        "critical",
        _burns(_FAST, allowed),
        "The {{ $labels.view }} view of {{ $labels.table }} is late so often that its error budget"
        " of 30 days would be spent within five.",
        _SECTION,
        after=2 * _MINUTE,
        why=f"The objective is {percent} % (alerts.objective).",
    )
    slow = Alert(
        "LakespliceFreshnessBudgetBurns",
        "warning",
        _burns(_SLOW, allowed),
        "The {{ $labels.view }} view of {{ $labels.table }} is late more often than its error"
        " budget of 30 days allows.",
        _SECTION,
        after=15 * _MINUTE,
        why=f"The objective is {percent} % (alerts.objective).",
    )
    return (
        RuleGroup("lakesplice-freshness", (late, fast), _MINUTE),
        RuleGroup("lakesplice-freshness-days", (slow,), 5 * _MINUTE),
    )


def _burns(windows: tuple[tuple[float, int, int], ...], allowed: Amount) -> str:
    return "\nor ".join(
        f"({_late_for(long, factor, allowed)} and {_late_for(short, factor, allowed)})"
        for factor, long, short in windows
    )


def _late_for(minutes: int, factor: float, allowed: Amount) -> str:
    window = duration(minutes * _MINUTE)
    return f"sum_over_time({LATE}[{window}]) > {number(factor * minutes * allowed)}"
