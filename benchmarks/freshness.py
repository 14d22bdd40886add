"""From an event written to its row visible, at a 1-second trigger under steady load.

Run: python -m benchmarks.freshness [--rows N] [--rate N] [--seconds N] [--out FILE]

Ours: until the commit that shows it in the real-time view. Beside it Delta's MERGE, copy-on-write,
in foreachBatch at the same trigger, on the same rows, under the same load. The load is one
producer's; what is measured is each event of the steady part, from the broker's acknowledged time
of writing.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from benchmarks.filling import fill
from benchmarks.ingest_contender import follow, seed
from benchmarks.service import ingests, offsets, seconds, settings
from lakesplice.apps.service import run
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable
from lakesplice.testing.shop.tables import WIDE

_WARM_SECONDS = 30.0
_LAST_SECONDS = 20.0
TOPIC = WideTable(0).topic
Visible = Sequence[tuple[float, int]]


def measure(work: Path, rows: int, rate: int, duration: float) -> list[dict[str, object]]:
    """Measure us and MERGE one after the other; returns a row of figures for each."""
    found = []
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers = broker.bootstrap_servers
        sales = WideTable(rows)
        # One partition, so that an event's offset says by itself when it became visible.
        create_topics(servers, [sales.topic], partitions=1)
        fill(servers, sales.snapshot())
        _child(work, servers, "load", wait=True)
        _child(work, servers, "seed", wait=True)
        for name in ("lakesplice", "merge"):
            start = _end(servers)
            child = _child(work, servers, name, wait=False, start=start)
            written = _write(servers, sales, rate, duration)
            time.sleep(_LAST_SECONDS)
            child.send_signal(signal.SIGTERM)
            child.wait(120)
            found.append(_figures(name, rate, start, written, _visible(work, name)))
            print(found[-1], flush=True)
    return found


def _write(servers: str, sales: WideTable, rate: int, duration: float) -> list[float]:
    """Write at a steady rate; returns when each event was written, in the order of offsets."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "acks": "all"})
    moments: list[float] = []
    chosen = np.random.default_rng(7)
    began = time.monotonic()
    while (passed := time.monotonic() - began) < _WARM_SECONDS + duration:
        due = int(passed * rate) - len(moments)
        for event in sales.updates(chosen.integers(1, sales.rows + 1, max(0, due))):
            producer.produce(event.topic, key=event.key, value=event.value)
            moments.append(time.time())
        producer.poll(0)
        time.sleep(0.01)
    producer.flush(30)
    return moments


def _figures(
    name: str, rate: int, start: int, written: Sequence[float], visible: Visible
) -> dict[str, object]:
    """Take the events of the steady part and how long each was not visible."""
    waits: list[float] = []
    steady = written[0] + _WARM_SECONDS
    versions = iter(sorted(visible, key=lambda version: version[1]))
    moment, end = next(versions)
    for at, wrote in enumerate(written):
        while start + at >= end:
            moment, end = next(versions, (float("inf"), sys.maxsize))
        if wrote >= steady:
            waits.append(moment - wrote)
    ranks = statistics.quantiles(waits, n=100)
    return {
        "contender": name, "events_per_second": rate, "events": len(waits),
        "p50_seconds": round(ranks[49], 2), "p99_seconds": round(ranks[98], 2),
    }  # fmt: skip


def _visible(work: Path, name: str) -> Visible:
    """When which offset (exclusive) became visible."""
    if name == "merge":
        pairs: list[tuple[float, int]] = json.loads((work / "merge.json").read_text())
        return pairs
    return [(seconds(e), offsets(e)["0"]) for e in ingests(work / "lake", WIDE.name)]


def _end(servers: str) -> int:
    consumer = KafkaConsumer(bootstrap_servers=servers)
    place = TopicPartition(TOPIC, 0)
    end: int = consumer.end_offsets([place])[place]
    consumer.close()
    return end


def _child(
    work: Path, servers: str, name: str, *, wait: bool, start: int = 0
) -> subprocess.Popen[bytes]:
    task = {
        "work": str(work),
        "servers": servers,
        "topic": TOPIC,
        "table": WIDE.name,
        "start": start,
    }
    command = [sys.executable, "-m", "benchmarks.freshness", "--child", name, json.dumps(task)]
    sink = (work / f"{name}.log").open("w")
    child = subprocess.Popen(command, stdout=sink, stderr=sink)
    if wait and child.wait(900):
        raise RuntimeError(f"{name} failed:\n{(work / f'{name}.log').read_text()[-4000:]}")
    return child


def _be(name: str, task: dict[str, object]) -> int:
    lake, servers = Path(str(task["work"])) / "lake", str(task["servers"])
    pattern = TOPIC.replace(".", "\\.")
    if name == "load":
        return run(settings(lake, servers, pattern, 250_000), once=True)
    if name == "lakesplice":
        return run(settings(lake, servers, pattern, 200_000, trigger="1s"))
    if name == "seed":
        seed({**task, "contender": name})
    else:
        follow({**task, "contender": "merge"}, Path(str(task["work"])) / "merge.json")
    return 0


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        sys.exit(_be(args.child[0], json.loads(args.child[1])))
    with tempfile.TemporaryDirectory(prefix="bench-freshness-") as work:
        found = measure(Path(work), args.rows, args.rate, args.seconds)
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
