"""A batch of changes on a Spark cluster of two workers, beside one worker.

Run: python -m benchmarks.cluster [--rows N] [--size N] [--batches N] [--out FILE]

A real broker holds one topic of 23-column Debezium updates, two columns changed. The same service
takes the same records into the same table, once on a standalone cluster of one worker and once of
two, one core each, from copies of one lake. What counts is the time from one commit to the next, so
that everything between is in it; medians, without compaction. Master, broker, driver and workers
share the machine's cores, and a worker is a JVM and a process of Python: with two cores, two
workers get little more than one. So the share of serial work is told, too: of the time between the
commits on one worker, that in which no task runs, by Spark's own log of events. Amdahl's law makes
of it what two workers could gain at best.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.filling import fill
from benchmarks.service import ingests, offsets, seconds, settings
from lakesplice.apps.service import run
from lakesplice.config import Settings
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable
from lakesplice.testing.shop.tables import WIDE
from lakesplice.testing.spark_cluster import Cluster

PARTITIONS = 4
TOPIC = WideTable(0).topic
_SECONDS_MAX = 1800
_OPTIONS = {
    "spark.executor.memory": "1g",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
}


def measure(work: Path, rows: int, size: int, batches: int) -> dict[str, object]:
    """Run the batches on one worker and on two, and return the figures."""
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers, sales = broker.bootstrap_servers, WideTable(rows)
        create_topics(servers, [sales.topic], partitions=PARTITIONS)
        print(f"loading {rows:,} rows", flush=True)
        fill(servers, sales.snapshot())
        _run(work, "load", {"master": f"local[{os.cpu_count()}]"}, servers, rows)
        chosen = np.random.default_rng(7)
        for _ in range(batches + 1):
            fill(servers, sales.updates(chosen.choice(rows, size, replace=False) + 1))
        found: dict[int, list[float]] = {}
        for workers in (1, 2):
            name = f"workers-{workers}"
            shutil.copytree(work / "load" / "lake", work / name / "lake")
            events = work / name / "events"
            events.mkdir()
            with Cluster(work / f"cluster-{workers}", workers) as cluster:
                spark = cluster.section(**_OPTIONS, **{"spark.eventLog.dir": str(events)})
                moments = _run(work, name, spark, servers, size, skip=rows)
            # The first interval starts when all is warm; a last, smaller batch is left out.
            found[workers] = [b - a for a, b in pairwise(moments)][:batches]
            print(f"{workers} worker(s): {[round(one, 2) for one in found[workers]]}", flush=True)
            if workers == 1:
                idle = _share_without_tasks(events, moments[0], moments[batches])
    return _figures(size, found, idle)


def _run(
    work: Path, name: str, spark: dict[str, Any], servers: str, size: int, skip: int = 0
) -> list[float]:
    """Run the service once in a process of its own; when each batch behind `skip` was committed."""
    folder = work / name
    folder.mkdir(exist_ok=True)
    task = {"lake": str(folder / "lake"), "servers": servers, "size": size, "spark": spark}
    with (folder / "log").open("w") as sink:
        subprocess.run(
            [sys.executable, "-m", "benchmarks.cluster", "--child", json.dumps(task)],
            check=True, stdout=sink, stderr=sink, timeout=_SECONDS_MAX,
        )  # fmt: skip
    entries = ingests(folder / "lake", WIDE.name)
    return [seconds(entry) for entry in entries if sum(offsets(entry).values()) > skip]


def _child(task: dict[str, Any]) -> None:
    ours = settings(Path(task["lake"]), task["servers"], TOPIC.replace(".", "\\."), task["size"])
    told = ours.model_dump() | {"spark": task["spark"]}
    run(Settings.model_validate(told), once=True)


def _share_without_tasks(events: Path, first: float, last: float) -> float:
    """Of the seconds between two moments, those in which no task ran, as a share."""
    running: list[tuple[float, float]] = []
    for log in (path for path in events.rglob("*") if path.is_file()):
        for line in log.read_text().splitlines():
            event = json.loads(line) if line.startswith('{"Event":"SparkListenerTaskEnd"') else None
            if event is not None:
                task = event["Task Info"]
                running.append((task["Launch Time"] / 1000, task["Finish Time"] / 1000))
    busy, reached = 0.0, first
    for start, end in sorted(running):
        busy += max(0.0, min(end, last) - max(start, reached))
        reached = min(max(reached, end), last)
    return 1.0 - busy / (last - first)


def _figures(size: int, found: Mapping[int, Sequence[float]], idle: float) -> dict[str, object]:
    one, two = (statistics.median(found[workers]) for workers in (1, 2))
    return {
        "changes_per_batch": size,
        "seconds_one_worker": round(one, 3),
        "seconds_two_workers": round(two, 3),
        "times_as_fast": round(one / two, 2),
        "serial_share": round(idle, 2),
        "times_at_best": round(2 / (1 + idle), 2),
        "batches": len(found[2]),
        "cores_of_the_machine": os.cpu_count(),
    }


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child(args.child)
        return
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as work:
        found = measure(Path(work), args.rows, args.size, args.batches)
    print("  ".join(f"{name}={value}" for name, value in found.items()))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
