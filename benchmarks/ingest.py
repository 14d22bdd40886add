"""Ingest of changes into a 2 M row table, from topic to commit, beside its floor and its peers.

Run: python -m benchmarks.ingest [--rows N] [--batches N] [--sizes 100000,10000]
    [--malformed 0.01] [--contenders lakesplice,floor] [--out FILE]

A real broker holds one topic of 23-column Debezium updates, two columns changed, and every
contender takes the same records in the same batches with two cores: we, as the service runs; the
floor, which reads them by Spark and parses them by pyarrow into nothing; and Delta's MERGE in
foreachBatch, copy-on-write and with deletion vectors, into the same rows, tuned for two cores. What
counts is the time from one commit to the next, so that everything between is in it, and what all
processes of a contender used of the processor meanwhile; medians. Our compaction is left out of
that and measured by itself: one batch's changes, on one core. A size that is named again is
measured again with new changes, so that contenders take turns. With `--malformed` each size is
measured a second time, with that share of the records malformed (`benchmarks.malformed` says how).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from kafka import KafkaConsumer, TopicPartition

from benchmarks.filling import fill
from benchmarks.malformed import damaged
from benchmarks.spending import Spending
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable
from lakesplice.testing.shop.tables import WIDE

CONTENDERS = ("lakesplice", "compaction", "floor", "merge", "merge-vectors")
PARTITIONS = 4
TOPIC = WideTable(0).topic
_SECONDS_MAX = 1800


def measure(
    work: Path,
    rows: int,
    sizes: Sequence[tuple[int, float]],
    batches: int,
    contenders: Sequence[str],
) -> list[dict[str, object]]:
    """Run the contenders in `work` at all batch sizes, each with the share of its records that are
    malformed, and return one row of figures for each.
    """
    found: list[dict[str, object]] = []
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers = broker.bootstrap_servers
        sales = WideTable(rows)
        create_topics(servers, [sales.topic], partitions=PARTITIONS)
        _say(f"loading {rows:,} rows")
        fill(servers, sales.snapshot())
        _run(
            contender="load", servers=servers, work=work, rows=rows, size=250_000, start=0, end=rows
        )
        if set(contenders) & {"merge", "merge-vectors"}:
            _run(contender="seed", servers=servers, work=work, rows=rows, size=0, start=0, end=0)
        skip = rows
        chosen = np.random.default_rng(7)
        for size, malformed in sizes:
            count = size * (batches + 1)
            _say(f"{batches + 1} batches of {size:,} updates, {malformed:.0%} malformed")
            (work / f"starts-{size}.json").write_text(json.dumps(_ends(servers)))
            for _ in range(batches + 1):
                updates = sales.updates(chosen.choice(rows, size, replace=False) + 1)
                fill(servers, damaged(updates, malformed))
            for contender in contenders:
                moments, spending = _run(
                    contender=contender,
                    servers=servers,
                    work=work,
                    rows=rows,
                    size=size,
                    start=skip,
                    end=skip + count,
                )
                # Proportional shares are rounded down, so a small batch may be left at the end.
                seconds = [b - a for a, b in pairwise(moments)][:batches]
                processor = spending.between(moments)[:batches]
                figures = _figures(contender, size, seconds, processor)
                found.append({**figures, "malformed": malformed})
                _say(_line(found[-1]))
            skip += count
    return found


def _run(
    contender: str, servers: str, work: Path, rows: int, size: int, start: int, end: int
) -> tuple[list[float], Spending]:
    """Run one contender in a process of its own; returns when each batch was committed, seconds,
    and what it used of the processor.
    """
    out = work / f"{contender}-{size}.json"
    task = {
        "contender": contender, "servers": servers, "work": str(work), "rows": rows,
        "size": size, "start": start, "end": end, "out": str(out), "topic": TOPIC,
        "table": WIDE.name,
    }  # fmt: skip
    out.unlink(missing_ok=True)
    log = work / f"{contender}-{size}.log"
    command = [sys.executable, "-m", "benchmarks.ingest_contender", json.dumps(task)]
    with log.open("w") as sink:
        spending = Spending(command, sink, _SECONDS_MAX)
    if not out.exists():
        raise RuntimeError(f"{contender} failed:\n{log.read_text()[-4000:]}")
    moments: list[float] = json.loads(out.read_text())
    return moments, spending


def _figures(
    contender: str, size: int, seconds: Sequence[float], processor: Sequence[float]
) -> dict[str, object]:
    median = statistics.median(seconds)
    return {
        "contender": contender,
        "changes_per_batch": size,
        "seconds_median": round(median, 3),
        "seconds_min": round(min(seconds), 3),
        "seconds_max": round(max(seconds), 3),
        "processor_median": round(statistics.median(processor), 3),
        "processor_min": round(min(processor), 3),
        "batches": len(seconds),
        "changes_per_second": round(size / median),
    }


def _ends(servers: str) -> dict[str, int]:
    """Return each partition's next offset."""
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    consumer = KafkaConsumer(bootstrap_servers=servers)
    ends = consumer.end_offsets(partitions)
    consumer.close()
    return {str(at.partition): offset for at, offset in ends.items()}


def _line(figures: dict[str, object]) -> str:
    return "  ".join(f"{name}={value}" for name, value in figures.items())


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--sizes", default="100000,10000")
    parser.add_argument("--malformed", type=float, help="a share of the records, from 0 to 1")
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shares = [0.0] if args.malformed is None else [0.0, args.malformed]
    sizes = [(int(size), share) for size in args.sizes.split(",") for share in shares]
    with tempfile.TemporaryDirectory(prefix="bench-ingest-") as work:
        found = measure(Path(work), args.rows, sizes, args.batches, args.contenders.split(","))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
