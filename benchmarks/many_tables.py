"""The same number of changes over 400 tables and in one: what many tables cost.

Run: python -m benchmarks.many_tables [--tables N] [--changes N] [--batches N] [--few N]
    [--out FILE]

The changes of a batch, their size and the rows they change are the same; per batch the time from
the last commit of one to the last commit of the next, and what all processes of the service used of
the processor in it, medians. The floor reads the same records by Spark, with the service's session,
and parses them by pyarrow's JSON reader into nothing: what any streaming query pays for many
topics. Then a few changes a batch in one table that is alone, and in one beside those many, which
rest.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import DataFrame

from benchmarks.filling import fill
from benchmarks.ingest_contender import parse_all
from benchmarks.service import ingests, seconds, settings
from benchmarks.spending import Spending
from lakesplice.apps.service import run
from lakesplice.config import Settings
from lakesplice.spark.jars import KAFKA_BROKER, SPARK_KAFKA, ensure_jars
from lakesplice.spark.jvm import QUICK_START
from lakesplice.spark.kafka.query import MANY_CONSUMERS
from lakesplice.spark.session import build_session
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
            spending = _run("floor", servers, work, prefix, each * count)
            moments = json.loads((work / "moments.json").read_text())
            found.append(_figures("floor", count, each * count, moments, spending))
            spending = _run("service", servers, work, prefix, each * count)
            moments = _moments(work / "lake", shops)
            found.append(_figures("service", count, each * count, moments, spending))
        # The tables of above are there, but nothing changes in them.
        for prefix, count in (("alone", 1), ("many", tables + 1)):
            shop = WideTable(few, table=f"{prefix}_hot")
            _fill(servers, [shop], _FEW_TIMES * batches)
            spending = _run("service", servers, work, prefix, few)
            moments = _moments(work / "lake", [shop])
            found.append(_figures("service", count, few, moments, spending))
    return found


def _figures(
    contender: str, tables: int, changes: int, moments: list[float], spending: Spending
) -> dict[str, object]:
    spent = [b - a for a, b in pairwise(moments)][1:]
    found: dict[str, object] = {
        "contender": contender,
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


def _run(contender: str, servers: str, work: Path, prefix: str, size: int) -> Spending:
    task = json.dumps([contender, servers, str(work), rf"shop\.shop\.{prefix}_.*", size])
    command = [sys.executable, "-m", "benchmarks.many_tables", "--run", task]
    log = work / f"{contender}-{prefix}-{size}.log"
    with log.open("w") as sink:
        done = Spending(command, sink, _SECONDS_MAX)
    if done.code:
        raise RuntimeError(f"{contender} failed:\n{log.read_text()[-4000:]}")
    return done


def _floor(configured: Settings, work: Path) -> int:
    """Read and parse each batch; write when each was done."""
    moments: list[float] = []

    def timed(frame: DataFrame, batch: int) -> None:
        parse_all(frame, batch)
        moments.append(time.time())

    spark = build_session(
        configured.spark.master,
        configured.spark.driver_memory,
        ensure_jars(SPARK_KAFKA),
        configured.spark.options,
        java_options=QUICK_START,
    )
    options: dict[str, str] = {
        "kafka.bootstrap.servers": configured.kafka.bootstrap_servers,
        **MANY_CONSUMERS,
        "subscribePattern": configured.kafka.topic_pattern.pattern,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(configured.kafka.offsets_per_batch_max),
    }
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = spark.readStream.format("kafka").options(**options).load().writeStream
        writer = writer.foreachBatch(timed).trigger(availableNow=True)
        writer.option("checkpointLocation", checkpoint).start().awaitTermination()
    spark.stop()
    (work / "moments.json").write_text(json.dumps(moments))
    return 0


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
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        contender, servers, folder, pattern, size = json.loads(args.run)
        configured = settings(Path(folder) / "lake", servers, pattern, size)
        is_floor = contender == "floor"
        sys.exit(_floor(configured, Path(folder)) if is_floor else run(configured, once=True))
    with tempfile.TemporaryDirectory(prefix="bench-tables-") as work:
        found = measure(Path(work), args.tables, args.changes, args.batches, args.few)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
