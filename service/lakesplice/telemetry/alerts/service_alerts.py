"""Alerts about the service as a whole."""

from __future__ import annotations

from lakesplice.telemetry.alerts.limits import AlertLimits
from lakesplice.telemetry.alerts.rule import INSTANCE, LAKE, Alert, duration, number

# The alerts whose thresholds depend on no setting.
_FIXED = (
    Alert(
        "LakespliceDown",
        "critical",
        f"absent(last_over_time(lakesplice_build_info[1d]))\n"
        f"or (group by ({LAKE}) (last_over_time(lakesplice_build_info[1d]))\n"
        f"unless group by ({LAKE}) (lakesplice_build_info))",
        'No metrics page of {{ or $labels.lake $labels.job "Lakesplice" }} can be scraped.',
        "/healthz is not 200",
        after=300,
        why="A standby answers too: if nothing answers, nothing runs. A lake that is taken"
        " away for good stays known for a day.",
    ),
    Alert(
        "LakespliceNoTopics",
        "warning",
        f"lakesplice_driver_standby == 0\nunless on ({INSTANCE}) lakesplice_topic_state",
        "The service of {{ $labels.instance }} finds no topic to read.",
        "No series of lakesplice_topic_state",
        after=900,
    ),
    Alert(
        "LakespliceQueryRestarts",
        "warning",
        'increase(lakesplice_query_restarts_total{reason="error"}[1h]) > 1',
        "The query failed and was restarted more than once within an hour.",
        "lakesplice_query_restarts_total rises",
    ),
    Alert(
        "LakespliceThreadErrors",
        "warning",
        "increase(lakesplice_thread_errors_total[1h]) > 1",
        "The thread {{ $labels.thread }} of the service met more than one error within an hour that"
        " nobody expected.",
        "lakesplice_thread_errors_total rises",
    ),
    Alert(
        "LakespliceClockDiffers",
        "warning",
        "abs(lakesplice_clock_difference_seconds) > 60",
        "The clocks of the service and of the lake's store differ by {{ $value | humanizeDuration"
        " }}.",
        "lakesplice_clock_difference_seconds is far from 0",
        after=120,
    ),
    Alert(
        "LakespliceTwoDrivers",
        "critical",
        f"count by ({LAKE}) (\n"
        f'  count_values by ({LAKE}) ("generation", lakesplice_driver_generation > 0)\n'
        f") > 1",
        "Two services act as the driver of one lake.",
        "lakesplice_driver_generation differs between two pages",
        after=120,
        why="A standby shows 0.",
    ),
)


def service_alerts(limits: AlertLimits) -> tuple[Alert, ...]:
    """Return the alerts about the service as a whole."""
    # Several batches, so that one of them alone counts little.
    window = duration((6 * limits.batch_seconds_max).at_least(1_800))
    return (
        *_FIXED,
        Alert(
            "LakespliceNobodyDrives",
            "critical",
            f"min by ({LAKE}) (lakesplice_driver_standby) == 1",
            "Every service of {{ or $labels.lake $labels.job }} waits for another driver of"
            " its lake.",
            "lakesplice_driver_standby is 1 on every page",
            after=(3 * limits.lease).at_least(300),
            why="Far above lease. A command that works for longer on a lake without a service"
            " raises it too.",
        ),
        Alert(
            "LakespliceNoBatch",
            "critical",
            f"lakesplice_last_batch_age_seconds > {number(limits.silence_seconds_max)}",
            "No batch has ended for {{ $value | humanizeDuration }}.",
            "lakesplice_last_batch_age_seconds is well above trigger",
            after=60,
            why="Three times trigger.",
        ),
        Alert(
            "LakespliceBatchesTooLong",
            "warning",
            f"histogram_quantile(0.5, sum by (le, {INSTANCE}) (\n"
            f'  rate(lakesplice_batch_duration_seconds_bucket{{phase="whole"}}[{window}])\n'
            f")) >= {number(limits.batch_seconds_max)}",
            "Half of the batches take {{ $value | humanizeDuration }} or more.",
            'lakesplice_batch_duration_seconds{phase="whole"} is above trigger',
            after=900,
            why="As long as trigger.",
        ),
    )
