"""How long a scrape of the metrics of hundreds of tables takes.

Run: python -m benchmarks.scrape [--tables N] [--out FILE]

The service's own web server answers on this machine. Each table has what it has after its first
batches and its first comparison with the database, in one topic. Beside it, as the floor, the same
server sends the same bytes without making them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.endpoints import application, endpoints
from lakesplice.telemetry.health import Health
from lakesplice.telemetry.http import WebServer
from lakesplice.telemetry.registry import Metrics

_ROUNDS = 30
_SECONDS_MAX = 60.0
_VIEWS = (metric.REAL_TIME, metric.READ_OPTIMISED)


def measure(tables: int) -> dict[str, object]:
    """Measure scrapes of a service with that many tables; returns the figures."""
    metrics = _filled(tables)
    page = metrics.page()
    served = application(endpoints(metrics, Health(60.0)))
    ready = Starlette(routes=[Route("/metrics", _sends(page))])
    return {
        "tables": tables,
        "series": sum(not line.startswith(b"#") for line in page.splitlines()),
        "bytes": len(page),
        "processor_ms": _processor_milliseconds(metrics),
        "scrape_ms": _milliseconds(served),
        "floor_ms": _milliseconds(ready),
    }


def _filled(tables: int) -> Metrics:
    metrics, now = Metrics(), time.time()
    topics: list[tuple[str, str, str]] = []
    for number in range(tables):
        table = f"shop.table_{number:04}"
        metrics.register_table(table)
        for view in _VIEWS:
            metrics.since(metric.FRESHNESS, now - number, table=table, view=view)
            metrics.set(metric.FRESHNESS_GOAL, 600, table=table, view=view)
        for age in (metric.LAST_VACUUM, metric.DELTA_OLDEST, metric.VERIFICATION_AGE):
            metrics.since(age, now - number, table=table)
        for op in ("create", "update", "delete", "read"):
            metrics.add(metric.CHANGES, 12_345.0 * number, table=table, op=op)
        topics.append((f"source.shop.{table}", table, "running"))
    metrics.show_topics(topics)
    return metrics


def _sends(page: bytes) -> Callable[[Request], Response]:
    def send(_: Request) -> Response:
        return Response(page, media_type="text/plain")

    return send


def _processor_milliseconds(metrics: Metrics) -> float:
    """The processor's time for one page, which other work on the machine doesn't lengthen."""
    started = time.process_time()
    for _ in range(_ROUNDS):
        metrics.page()
    return round(1_000 * (time.process_time() - started) / _ROUNDS, 1)


def _milliseconds(app: Starlette) -> float:
    """The median of some scrapes, the first one left out."""
    taken = []
    with WebServer(app, "127.0.0.1", 0) as server:
        for _ in range(_ROUNDS + 1):
            started = time.perf_counter()
            address = f"http://127.0.0.1:{server.port}/metrics"
            with urllib.request.urlopen(address, timeout=_SECONDS_MAX) as answer:
                answer.read()
            taken.append(time.perf_counter() - started)
    return round(1_000 * statistics.median(taken[1:]), 1)


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = measure(args.tables)
    print(json.dumps(found, indent=2))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
