"""Spark and memory: how long batches take, whether they end, and what the processes hold."""

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.board import Panel, board
from dashboards.panels import Query, graph, number
from dashboards.queries import PER_LAKE, highest, per_hour, per_second, quantile, series, total
from lakesplice.telemetry import catalogue as metric

_LAKE_LEGEND = "{{lake}} {{namespace}}"


def dashboard() -> Dashboard:
    """Return the dashboard."""
    return board(
        "lakesplice-spark",
        "Spark and memory",
        "How long batches and commits take, whether they end, and what the processes hold.",
        (("Drivers", _drivers()), ("Batches", _batches()), ("Processes", _processes())),
    )


def _drivers() -> tuple[Panel, ...]:
    return (
        number(
            "Last batch",
            "Time since a batch ended, or since there was nothing to read.",
            Query(highest(PER_LAKE, series(metric.LAST_BATCH)), _LAKE_LEGEND),
            unit="s",
            width=8,
        ),
        number(
            "Generation",
            "A number that rises while nobody restarted the service: two of them fight.",
            Query(
                highest(f"{PER_LAKE}, instance", series(metric.DRIVER_GENERATION)),
                "{{lake}} {{instance}}",
            ),
            width=8,
        ),
        number(
            "Versions and standbys",
            "Processes by version, and those that wait for another driver.",
            Query(f"count by (version) ({series(metric.BUILD_INFO)})", "{{version}}"),
            Query(total("", series(metric.DRIVER_STANDBY)), "standbys"),
            width=8,
        ),
    )


def _batches() -> tuple[Panel, ...]:
    return (
        graph(
            "Duration of batches",
            "Half of the batches, and 95 of 100, by phase. The whole above the trigger: give"
            " spark.master more cores, or lengthen the trigger.",
            Query(quantile(0.5, metric.BATCH_SECONDS, "phase"), "half: {{phase}}"),
            Query(quantile(0.95, metric.BATCH_SECONDS, "phase"), "95 of 100: {{phase}}"),
            unit="s",
        ),
        graph(
            "Batches",
            "By result, per hour.",
            Query(per_hour(metric.BATCHES, "result"), "{{result}}"),
        ),
        graph(
            "Restarts of the query",
            "By reason, per hour. More than one for `error`: the log names the error.",
            Query(per_hour(metric.QUERY_RESTARTS, "reason"), "{{reason}}"),
        ),
        graph(
            "Time since the last batch",
            "Well above the trigger: no batch ends.",
            Query(highest(PER_LAKE, series(metric.LAST_BATCH)), _LAKE_LEGEND),
            unit="s",
        ),
        graph(
            "Changes",
            "What the batches of a lake read and committed.",
            Query(per_second(metric.CHANGES, PER_LAKE), _LAKE_LEGEND),
            unit="cps",
        ),
        graph(
            "Duration of commits",
            "With lost races. If it is long, the storage is slow, or logs lack checkpoints.",
            Query(quantile(0.5, metric.COMMIT_SECONDS), "half"),
            Query(quantile(0.95, metric.COMMIT_SECONDS), "95 of 100"),
            unit="s",
        ),
    )


def _processes() -> tuple[Panel, ...]:
    return (
        graph(
            "Errors of threads",
            "That nobody expected, by thread, per hour. The log has each as `thread-failed`.",
            Query(per_hour(metric.THREAD_ERRORS, "thread"), "{{thread}}"),
        ),
        graph(
            "Memory",
            "Of the driver, Spark's JVM, and its Python workers. Near the limit of the machine or"
            " pod: give spark.master fewer cores, or make batches smaller.",
            Query(total("process", series(metric.MEMORY)), "{{process}}"),
            unit="bytes",
        ),
        graph(
            "Clock of the store",
            "How far it is ahead of the service's; below 0 it is behind.",
            Query(series(metric.CLOCK_DIFFERENCE), "{{lake}} {{namespace}}"),
            unit="s",
        ),
        graph(
            "Memory of lakes",
            "All processes of a lake's driver.",
            Query(total(PER_LAKE, series(metric.MEMORY)), _LAKE_LEGEND),
            unit="bytes",
        ),
    )
