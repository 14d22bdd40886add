"""Hours of the service beside a fleet of tables of differing heat.

Run: python -m benchmarks.soak [--hours N] [--tables N] [--rows N] [--rate N] [--out FOLDER]

A real broker has a topic per table; changes come by the second while the service ingests and
compacts. On the way a table is parked, the broker is away for 20 seconds, and the lake's disk is
full for 30 seconds (only as root, who may make a volume for it). Every five seconds memory, files,
threads, series and latency are measured from outside. At last each table is compared with the
truth. There is no peer: the question is whether anything grows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.filling import fill
from benchmarks.soak.comparing import catch_up, is_equal
from benchmarks.soak.fleet import DATABASE, SERVER, Fleet
from benchmarks.soak.incidents import fill_disk, restart, volume
from benchmarks.soak.report import drawing, growth
from benchmarks.soak.running import changing, service
from benchmarks.soak.samples import Sample, sample
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.servers.process import free_port

_SAMPLE_SECONDS = 5.0
# When each incident comes, as a share of the run.
_PARKED, _AWAY, _FULL = 0.2, 0.4, 0.6
Trouble = Callable[[], object]


def soak(
    work: Path, seconds: float, tables: int, rows: int, rate: int, trigger: str
) -> dict[str, Any]:
    """Run it, and return what was measured."""
    fleet, port = Fleet(tables, rows, seed=1), free_port()
    broker = LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker")
    with volume(work / "volume", "8g") as is_volume, broker:
        servers, lake = broker.bootstrap_servers, work / "volume" / "lake"
        create_topics(servers, fleet.topics, partitions=1)
        fill(servers, fleet.snapshot())
        keyless = fleet.keyless()
        troubles: dict[str, tuple[float, Trouble]] = {
            "parked": (_PARKED * seconds, lambda: fill(servers, [keyless])),
            "broker away": (_AWAY * seconds, lambda: restart(broker)),
        }
        if is_volume:
            troubles["disk full"] = (_FULL * seconds, lambda: fill_disk(work / "volume"))
        config = work / "lakesplice.yaml"
        config.write_text(yaml.safe_dump(_settings(servers, lake, port, trigger, seconds)))
        with service(config, work / "service.log") as process:
            with changing(fleet, servers, rate) as sent:
                samples = _watched(process, port, lake, seconds, troubles)
            caught_up = catch_up(fleet, fleet.names, servers, lake, process)
        equal = sum(is_equal(fleet, lake, name) for name in fleet.names)
    return {
        "tables": tables,
        "rows_each": rows,
        "changes_per_second": rate,
        "trigger": trigger,
        "changes": sum(sent),
        "seconds": seconds,
        "incidents": {name: at for name, (at, _) in troubles.items()},
        "growth": growth(samples),
        "caught_up_after_seconds": caught_up,
        "tables_equal": equal,
        "samples": samples,
    }


def _settings(servers: str, lake: Path, port: int, trigger: str, seconds: float) -> dict[str, Any]:
    # Often enough that even a short run has many compactions of each table.
    age = max(120, round(seconds / 24))
    return {
        "kafka": {"bootstrap_servers": servers, "topic_pattern": rf"{SERVER}\.{DATABASE}\..*"},
        "lake": {"root": str(lake)},
        "trigger": trigger,
        "spark": {"master": "local[2]"},
        "metrics": {"port": port},
        "compaction": {"deltas_max": 4, "age_max": f"{age}s"},
        "log": {"retention": "5m", "readers_may_fail": True},
        "vacuum": {"every": "2m"},
    }


def _watched(
    process: subprocess.Popen[bytes],
    port: int,
    lake: Path,
    seconds: float,
    troubles: Mapping[str, tuple[float, Trouble]],
) -> list[Sample]:
    """Take samples for so long, and make trouble when it is time."""
    began, samples, left = time.monotonic(), list[Sample](), dict(troubles)
    threads: list[threading.Thread] = []
    while (passed := time.monotonic() - began) < seconds:
        if process.poll() is not None:
            raise RuntimeError(f"the service ended after {passed:.0f} s; see service.log")
        for name in [name for name, (at, _) in left.items() if at <= passed]:
            threads.append(threading.Thread(target=left.pop(name)[1], name=name))
            threads[-1].start()
            print(f"{passed:.0f} s: {name}", flush=True)
        samples.append({"seconds": round(passed, 1), **sample(process.pid, port, lake)})
        time.sleep(_SAMPLE_SECONDS)
    for thread in threads:
        thread.join()
    return samples


def main() -> None:
    """Read the arguments, run, and keep what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--rows", type=int, default=500, help="rows of each table at first")
    parser.add_argument("--rate", type=int, default=400, help="changes a second, of all tables")
    parser.add_argument("--trigger", default="10s", help="how often a batch begins")
    parser.add_argument("--out", type=Path, help="a folder for the figures and their drawing")
    parser.add_argument("--log", type=Path, help="where to keep the service's log")
    args = parser.parse_args()
    if args.out:  # before hours have passed
        args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-soak-", ignore_cleanup_errors=True) as work:
        log = Path(work) / "service.log"
        try:
            found = soak(
                Path(work), 3_600 * args.hours, args.tables, args.rows, args.rate, args.trigger
            )
        except RuntimeError:
            print(log.read_text()[-4_000:], file=sys.stderr)
            raise
        if args.log:
            shutil.copy(log, args.log)
    print(json.dumps({name: value for name, value in found.items() if name != "samples"}, indent=2))
    if args.out:
        minutes = round(found["seconds"] / 60)
        title = f"{args.tables} tables, {args.rate} changes a second, {minutes} minutes"
        (args.out / "soak.json").write_text(json.dumps(found))
        (args.out / "soak.svg").write_text(drawing(title, found["samples"], found["incidents"]))


if __name__ == "__main__":
    main()
