"""At which rate of changes compaction keeps up beside ingest, and how old the views are then.

Run: python -m benchmarks.sustained [--tables 400] [--rates 100,400] [--minutes 30] [--faster 1]
     [--out FILE]

For each rate a service with the default policy follows a fleet of tables of differing heat, with a
broker of its own. It keeps up if in the last third of the time no change waits longer than twice
`compaction.age_max`. `--faster 10` shortens the trigger and `compaction.age_max` to a tenth, and so
the run: it has ten times as many deltas a second, and three minutes stand for 30.

At last waiting deltas are compacted once more in this process, without a commit, beside the floor:
pyarrow reads the same deltas and base files, and writes all rows into one file. Seconds are those
of the processor.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from benchmarks.filling import fill
from benchmarks.service import seconds
from benchmarks.soak.fleet import DATABASE, SERVER, Fleet
from benchmarks.soak.report import median_of
from benchmarks.soak.running import changing, service
from benchmarks.soak.samples import Sample, sample
from lakesplice.config.sections.upkeep import CompactionSettings
from lakesplice.planning.upkeep.compaction import work
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.storage.local import LocalStore
from lakesplice.storage.stores import open_sink
from lakesplice.storage.system import SystemEntropy
from lakesplice.table.files.page_rewriter import best_rewriter
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.table.upkeep.compact import compact_files
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.producer import create_topics
from lakesplice.testing.servers.process import free_port

_TRIGGER_SECONDS = 300.0
_SAMPLE_SECONDS = 5.0
_COMPARED_TABLES_MAX = 40


def measure(
    work_folder: Path, tables: int, rows: int, rate: int, minutes: float, faster: float
) -> dict[str, Any]:
    """Run a service at one rate, and return what was measured."""
    fleet, port, lake = Fleet(tables, rows, seed=1), free_port(), work_folder / "lake"
    age_max = CompactionSettings().age_max / faster
    trigger = _TRIGGER_SECONDS / faster
    with LocalBroker(ensure_jars(KAFKA_BROKER), work_folder / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(servers, fleet.topics, partitions=1)
        fill(servers, fleet.snapshot())
        config = work_folder / "lakesplice.yaml"
        config.write_text(yaml.safe_dump(_settings(servers, lake, port, trigger, age_max)))
        with (
            service(config, work_folder / "service.log") as process,
            changing(fleet, servers, rate) as sent,
        ):
            began, samples = time.monotonic(), list[Sample]()
            while (passed := time.monotonic() - began) < 60 * minutes:
                if process.poll() is not None:
                    raise RuntimeError((work_folder / "service.log").read_text()[-4_000:])
                samples.append({"seconds": passed, **sample(process.pid, port, lake)})
                time.sleep(_SAMPLE_SECONDS)
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    waiting, before = median_of(last, "waiting_deltas"), median_of(middle, "waiting_deltas")
    oldest = max((one.get("delta_oldest_s", 0.0) for one in last), default=0.0)
    return {
        "changes_per_second": round(sum(sent) / (60 * minutes), 1),
        "deltas_per_second": round(_deltas(fleet, lake, 20 * minutes), 2),
        "waiting_deltas_middle_third": before,
        "waiting_deltas_last_third": waiting,
        "oldest_delta_seconds_max": oldest,
        "age_max_seconds": age_max,
        "keeps_up": 0 < oldest <= 2 * age_max,
        "real_time_age_median_seconds": median_of(last, "age_median_s"),
        "read_optimised_age_median_seconds": median_of(last, "optimised_age_median_s"),
        "load": round(os.getloadavg()[2], 1),
        **_beside_floor(fleet, lake),
    }


def _settings(
    servers: str, lake: Path, port: int, trigger: float, age_max: float
) -> dict[str, Any]:
    return {
        "kafka": {"bootstrap_servers": servers, "topic_pattern": rf"{SERVER}\.{DATABASE}\..*"},
        "lake": {"root": str(lake)},
        "trigger": f"{trigger}s",
        "spark": {"master": "local[2]"},
        "metrics": {"port": port},
        "compaction": {"age_max": f"{age_max}s"},
    }


def _deltas(fleet: Fleet, lake: Path, length: float) -> float:
    """How many deltas a second were committed in the last `length` seconds."""
    commits = [
        seconds(entry)
        for name in fleet.names
        for entry in history(LocalStore(lake / DATABASE / name))
        if entry.info.operation == "INGEST"
    ]
    end = max(commits)
    return sum(moment > end - length for moment in commits) / length


def _beside_floor(fleet: Fleet, lake: Path) -> dict[str, float]:
    """Compact the tables with the most waiting deltas, and do the least that could be done."""
    stores = [LocalStore(lake / DATABASE / name) for name in fleet.names]
    found = [(store, open_snapshot(store).manifest) for store in stores]
    found.sort(key=lambda one: -len(one[1].deltas))
    ours = floor = 0.0
    deltas = 0
    for store, manifest in found[:_COMPARED_TABLES_MAX]:
        paths = [one.path for one in work(manifest)]
        deltas += len(manifest.deltas)
        began = time.process_time()
        compact_files(
            store, manifest, paths, best_rewriter(open_sink), SystemEntropy(), files_min=1
        )
        ours += time.process_time() - began
        began = time.process_time()
        for delta in manifest.deltas:
            pq.ParquetFile(pa.BufferReader(store.read(delta.file.path))).read()
        rows = [pq.ParquetFile(store.open(path)).read() for path in paths]
        if rows:
            with store.writer(f"base/floor-{SystemEntropy().bits(64)}.parquet") as sink:
                pq.write_table(pa.concat_tables(rows), sink, compression="zstd")
        floor += time.process_time() - began
    return {
        "compared_deltas": deltas,
        "compaction_ms_per_delta": round(1_000 * ours / max(deltas, 1), 2),
        "floor_ms_per_delta": round(1_000 * floor / max(deltas, 1), 2),
        "times_the_floor": round(ours / max(floor, 1e-9), 2),
    }


def main() -> None:
    """Read the arguments, measure each rate, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=400)
    parser.add_argument("--rows", type=int, default=500, help="rows of each table at first")
    parser.add_argument("--rates", default="100,400", help="changes a second, of all tables")
    parser.add_argument("--minutes", type=float, default=30.0, help="for each rate")
    parser.add_argument("--faster", type=float, default=1.0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = []
    for rate in map(int, args.rates.split(",")):
        with tempfile.TemporaryDirectory(
            prefix="bench-sustained-", ignore_cleanup_errors=True
        ) as folder:
            found.append(
                measure(Path(folder), args.tables, args.rows, rate, args.minutes, args.faster)
            )
        print(json.dumps(found[-1]), flush=True)
    if args.out:
        kept = {"tables": args.tables, "minutes": args.minutes, "faster": args.faster}
        args.out.write_text(json.dumps({**kept, "rates": found}, indent=2))


if __name__ == "__main__":
    main()
