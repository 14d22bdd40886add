"""The same number of changes over 400 tables and in one: what many tables cost.

Run: python -m benchmarks.many_tables [--tables N] [--changes N] [--batches N] [--out FILE]

The changes of a batch, their size and the rows they change are the same; per batch the time from
the last commit of one to the last commit of the next, medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from benchmarks.filling import fill
from benchmarks.service import ingests, seconds, settings
from lakesplice.apps.service import run
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable

_SECONDS_MAX = 1200


def measure(work: Path, tables: int, changes: int, batches: int) -> list[dict[str, object]]:
    """Run one table and many beside each other in `work`; returns a row of figures for each."""
    found: list[dict[str, object]] = []
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        for prefix, count in (("one", 1), ("many", tables)):
            each = changes // count
            shops = [WideTable(each, table=f"{prefix}_{n:03d}", seed=n) for n in range(count)]
            _fill(broker.bootstrap_servers, shops, batches)
            _serve(broker.bootstrap_servers, work, prefix, each * count)
            moments = _moments(work / "lake", shops)
            spent = [b - a for a, b in pairwise(moments)][1:]
            found.append(
                {
                    "tables": count,
                    "changes_per_batch": each * count,
                    "seconds_median": round(statistics.median(spent), 3),
                    "seconds_min": round(min(spent), 3),
                    "seconds_max": round(max(spent), 3),
                    "batches": len(spent),
                }
            )
            print(found[-1], flush=True)
    return found


def _fill(servers: str, shops: list[WideTable], batches: int) -> None:
    create_topics(servers, [shop.topic for shop in shops], partitions=1)
    fill(servers, chain.from_iterable(shop.snapshot() for shop in shops))
    for _ in range(batches + 1):
        fill(servers, chain.from_iterable(shop.updates(np.arange(shop.rows) + 1) for shop in shops))


def _serve(servers: str, work: Path, prefix: str, size: int) -> None:
    task = json.dumps([servers, str(work / "lake"), rf"shop\.shop\.{prefix}_.*", size])
    command = [sys.executable, "-m", "benchmarks.many_tables", "--serve", task]
    log = work / f"{prefix}.log"
    with log.open("w") as sink:
        done = subprocess.run(command, stdout=sink, stderr=sink, timeout=_SECONDS_MAX, check=False)
    if done.returncode:
        raise RuntimeError(f"the service failed:\n{log.read_text()[-4000:]}")


def _moments(lake: Path, shops: list[WideTable]) -> list[float]:
    """When each batch was committed whole, the snapshot's batch first."""
    each = [[seconds(e) for e in ingests(lake, s.topic.rpartition(".")[2])] for s in shops]
    return [max(moments) for moments in zip(*each, strict=False)]


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        servers, lake, pattern, size = json.loads(args.serve)
        sys.exit(run(settings(Path(lake), servers, pattern, size), once=True))
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as work:
        found = measure(Path(work), args.tables, args.changes, args.batches)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
