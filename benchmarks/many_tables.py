"""The same number of changes over 400 tables and in one: what many tables cost.

Run: python -m benchmarks.many_tables [--tables N] [--changes N] [--batches N] [--few N]
    [--out FILE]

The changes of a batch, their size and the rows they change are the same; per batch the time from
the last commit of one to the last commit of the next, and what all processes of the service used of
the processor in it, medians. Then a few changes a batch in one table that is alone, and in one
beside those many, which rest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from benchmarks.filling import fill
from benchmarks.service import ingests, seconds, settings
from benchmarks.spending import Spending
from lakesplice.apps.service import run
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable

_SECONDS_MAX = 1200
_FEW_TIMES = 3  # as many batches of a few changes as of many: they take less


def measure(
    work: Path, tables: int, changes: int, batches: int, few: int
) -> list[dict[str, object]]:
    """Run one table and many beside each other in `work`; returns a row of figures for each."""
    found: list[dict[str, object]] = []
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers = broker.bootstrap_servers
        for prefix, count in (("one", 1), ("many", tables)):
            each = changes // count
            shops = [WideTable(each, table=f"{prefix}_{n:03d}", seed=n) for n in range(count)]
            _fill(servers, shops, batches)
            spending = _serve(servers, work, prefix, each * count)
            moments = _moments(work / "lake", shops)
            found.append(_figures(count, each * count, moments, spending))
        # The tables of above are there, but nothing changes in them.
        for prefix, count in (("alone", 1), ("many", tables + 1)):
            shop = WideTable(few, table=f"{prefix}_hot")
            _fill(servers, [shop], _FEW_TIMES * batches)
            spending = _serve(servers, work, prefix, few)
            moments = _moments(work / "lake", [shop])
            found.append(_figures(count, few, moments, spending))
    return found


def _figures(
    tables: int, changes: int, moments: list[float], spending: Spending
) -> dict[str, object]:
    spent = [b - a for a, b in pairwise(moments)][1:]
    found: dict[str, object] = {
        "tables": tables,
        "changes_per_batch": changes,
        "seconds_median": round(statistics.median(spent), 3),
        "seconds_min": round(min(spent), 3),
        "seconds_max": round(max(spent), 3),
        "processor_median": round(statistics.median(spending.between(moments)[1:]), 3),
        "batches": len(spent),
    }
    print(found, flush=True)
    return found


def _fill(servers: str, shops: list[WideTable], batches: int) -> None:
    create_topics(servers, [shop.topic for shop in shops], partitions=1)
    fill(servers, chain.from_iterable(shop.snapshot() for shop in shops))
    for _ in range(batches + 1):
        fill(servers, chain.from_iterable(shop.updates(np.arange(shop.rows) + 1) for shop in shops))


def _serve(servers: str, work: Path, prefix: str, size: int) -> Spending:
    task = json.dumps([servers, str(work / "lake"), rf"shop\.shop\.{prefix}_.*", size])
    command = [sys.executable, "-m", "benchmarks.many_tables", "--serve", task]
    log = work / f"{prefix}-{size}.log"
    with log.open("w") as sink:
        done = Spending(command, sink, _SECONDS_MAX)
    if done.code:
        raise RuntimeError(f"the service failed:\n{log.read_text()[-4000:]}")
    return done


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
    parser.add_argument("--few", type=int, default=1_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        servers, lake, pattern, size = json.loads(args.serve)
        sys.exit(run(settings(Path(lake), servers, pattern, size), once=True))
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as work:
        found = measure(Path(work), args.tables, args.changes, args.batches, args.few)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
