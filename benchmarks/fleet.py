"""Hundreds of tables at once: their first load, and a restart with all of them.

Run: python -m benchmarks.fleet [--tables N] [--records N] [--more N] [--repeats N]
    [--beside TABLES] [--beside-rows N] [--beside-rate N] [--out FILE]

Three processes do the same work from nothing, one after the other. The service (`lakesplice run
--once`) makes each topic's table and commits its records. The floor starts Spark and counts the
records of the same topics. The peer starts Spark, reads the same topics and appends each topic's
records, undecoded, to a Delta table with delta-rs: what must be done by anyone who has a table per
topic. Then topics are added, and the service starts twice more, once after a record came for some
of the tables and once for each of them: from the start of its process to its first and its last
commit, beside a floor that starts and counts the records of all topics. With `--beside` so many
tables of a MariaDB are filled and compared meanwhile, in the same lake
(`benchmarks.database_work`). All of them start Spark with the options of the service and the
archive of its classes, as in the image; it is made if there is none.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.database_work import PATTERN, database_work
from benchmarks.filling import fill
from benchmarks.service import COMMAND, configuration, ingests, seconds, settings
from benchmarks.verify import DATABASE
from lakesplice.config import Settings
from lakesplice.spark.class_archive import make_archive, use_archive
from lakesplice.spark.jars import KAFKA_BROKER, SPARK_KAFKA, ensure_jars
from lakesplice.spark.jvm import QUICK_START
from lakesplice.spark.kafka.query import MANY_CONSUMERS
from lakesplice.spark.session import build_session
from lakesplice.telemetry.memory import resident_bytes
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.shop import WideTable

_SECONDS_MAX = 1200
_PATTERN = r"shop\.shop\.fleet_.*"
_SAMPLE_SECONDS = 0.5
_SOME = 10


def measure(
    work: Path, tables: int, records: int, more: int, beside: tuple[int, int, int]
) -> dict[str, Any]:
    """Load `tables` new tables with `records` in all, and restart with `more` besides. Meanwhile
    others are filled from their database and compared with it: `beside` has their number, the rows
    of each, and the rows that each command may read in a second.
    """
    shops = [
        WideTable(max(1, records // tables), table=f"fleet_{n:03d}", seed=n) for n in range(tables)
    ]
    lake = work / "lake"
    with ExitStack() as running:
        broker = LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker")
        servers = running.enter_context(broker).bootstrap_servers
        count = _add(servers, shops)
        done = {}
        if beside[0]:
            database = running.enter_context(database_work(work / "database", servers, *beside))
            done = running.enter_context(database.running(_settings(lake, servers)))
        load = {
            "floor": _timed("count", servers, work, lake)["seconds"],
            "peer": _timed("append", servers, work, work / "peer")["seconds"],
            **_served(servers, work, lake, shops),
        }
        print(load, flush=True)
        added = [WideTable(10, table=f"fleet_{tables + n:03d}", seed=n) for n in range(more)]
        if added:
            _add(servers, added)
            _served(servers, work, lake, added)
        every = [*shops, *added]
        restarts = {}
        for name, changed in (
            ("restart, some changed", every[:_SOME]),
            ("restart, all changed", every),
        ):
            fill(servers, chain.from_iterable(shop.updates(np.array([1])) for shop in changed))
            restarts[name] = {
                "floor": _timed("count", servers, work, lake)["seconds"],
                **_served(servers, work, lake, changed),
            }
            print(name, restarts[name], flush=True)
    return {
        "tables": tables,
        "records": count,
        "load": load,
        "fleet": len(every),
        **restarts,
        "beside": done,
    }


def _add(servers: str, shops: list[WideTable]) -> int:
    create_topics(servers, [shop.topic for shop in shops], partitions=1)
    return fill(servers, chain.from_iterable(shop.snapshot() for shop in shops))


def _served(servers: str, work: Path, lake: Path, shops: list[WideTable]) -> dict[str, float]:
    """Run the service until nothing is left; seconds from its start to the tables' commits."""
    began = time.time()
    done = _timed("serve", servers, work, lake)
    moments = sorted(
        seconds(entry) - began
        for shop in shops
        for entry in ingests(lake, shop.topic.rpartition(".")[2])
        if seconds(entry) >= began
    )
    if len(moments) < len(shops):
        raise RuntimeError(f"only {len(moments)} commits for {len(shops)} tables")
    started = re.search(r"^(\S+) .*query-started", (work / "serve.log").read_text(), re.MULTILINE)
    if started is None:
        raise RuntimeError("the service never started its query")
    return {
        "query_started": round(datetime.fromisoformat(started[1]).timestamp() - began, 1),
        "first_commit": round(moments[0], 1),
        "last_commit": round(moments[-1], 1),
        "ended": done["seconds"],
        "resident_mib_max": done["resident_mib_max"],
    }


def _timed(what: str, servers: str, work: Path, lake: Path) -> dict[str, float]:
    """Run one of the contenders as a process; its seconds, and what all its processes held."""
    log = work / f"{what}.log"
    if what == "serve":
        config = work / "service.yaml"
        config.write_text(yaml.safe_dump(configuration(_settings(lake, servers))))
        command = [*COMMAND, "run", "--once", "--config", str(config)]
    else:
        task = json.dumps([what, servers, str(lake)])
        command = [sys.executable, "-m", "benchmarks.fleet", "--run", task]
    began, highest = time.monotonic(), 0
    with log.open("w") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
        while process.poll() is None:
            if time.monotonic() - began > _SECONDS_MAX:
                process.kill()
            highest = max(highest, sum(resident_bytes(process.pid).values()))
            time.sleep(_SAMPLE_SECONDS)
    if process.returncode:
        raise RuntimeError(f"{what} failed:\n{log.read_text()[-4000:]}")
    return {
        "seconds": round(time.monotonic() - began, 1),
        "resident_mib_max": round(highest / 2**20),
    }


def _run(what: str, servers: str, lake: Path) -> int:
    """Be the floor or the peer."""
    configured = _settings(lake, servers)
    return sum(1 for _ in _read(configured, lake if what == "append" else None)) == 0


def _settings(lake: Path, servers: str) -> Settings:
    """Return settings for the fleet, and for tables that `lakesplice bootstrap` makes."""
    filled = {"match": f"{DATABASE}.*", "schema_changes": {"create_table": "ignore"}}
    return settings(lake, servers, f"{_PATTERN}|{PATTERN}", 10_000_000, tables=[filled])


def _read(configured: Settings, lake: Path | None) -> Iterator[int]:
    """Start Spark, read all topics once, and count or append each one to a Delta table."""
    spark = build_session(
        configured.spark.master,
        configured.spark.driver_memory,
        ensure_jars(SPARK_KAFKA),
        configured.spark.options,
        java_options=f"{QUICK_START} {use_archive()}",
    )
    options = {
        "kafka.bootstrap.servers": configured.kafka.bootstrap_servers,
        **MANY_CONSUMERS,
        "subscribePattern": _PATTERN,
        "startingOffsets": "earliest",
    }
    frame = spark.read.format("kafka").options(**options).load()
    if lake is None:
        yield frame.coalesce(2).selectExpr("sum(length(value))").collect()[0][0]
    else:
        yield _append_each(frame.select("topic", "key", "value", "offset").toArrow(), lake)
    spark.stop()


def _append_each(records: object, lake: Path) -> int:
    import deltalake  # the peer alone needs it
    import pyarrow as pa

    assert isinstance(records, pa.Table)
    topics = records["topic"].unique().to_pylist()
    ordered = records.sort_by("topic")
    names = ordered["topic"].to_numpy(zero_copy_only=False)
    for topic in topics:
        start, end = np.searchsorted(names, [topic, topic + "\0"])
        deltalake.write_deltalake(
            str(lake / topic), ordered.slice(start, end - start), mode="append"
        )
    return len(topics)


def main() -> None:
    """Read the arguments, measure, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=351)
    parser.add_argument("--records", type=int, default=412_000)
    parser.add_argument("--more", type=int, default=49, help="topics added before the restart")
    parser.add_argument("--beside", type=int, default=0, help="tables filled meanwhile")
    parser.add_argument("--beside-rows", type=int, default=1_000_000, help="rows of each of them")
    parser.add_argument("--beside-rate", type=int, default=0, help="rows a second they may read")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        what, servers, lake = json.loads(args.run)
        sys.exit(_run(what, servers, Path(lake)))
    ensure_jars(SPARK_KAFKA)
    if not use_archive():
        make_archive()
    found: list[dict[str, Any]] = []
    for _ in range(args.repeats):
        with tempfile.TemporaryDirectory(prefix="bench-fleet-") as work:
            beside = args.beside, args.beside_rows, args.beside_rate
            found.append(measure(Path(work), args.tables, args.records, args.more, beside))
    parts = {
        "load": "last_commit",
        "restart, some changed": "first_commit",
        "restart, all changed": "first_commit",
    }
    for part, name in parts.items():
        median = statistics.median(one[part][name] for one in found)
        print(f"{part}: {name} after {median} s (median of {len(found)})")
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
