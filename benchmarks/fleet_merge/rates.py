"""How many changes a second each contender commits while a backlog of the whole fleet waits."""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from deltalake import DeltaTable, write_deltalake

from benchmarks.filling import fill
from benchmarks.fleet_merge.contenders import Commit
from benchmarks.service import seconds
from benchmarks.soak.comparing import is_equal
from benchmarks.soak.fleet import DATABASE, Fleet
from benchmarks.spending import Spending
from lakesplice.spark.jars import KAFKA_BROKER, ensure_jars
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.history import history
from lakesplice.table.protocol.snapshot import open_snapshot
from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.compare import compare
from lakesplice.testing.producer import create_topics

CONTENDERS = ("lakesplice", "merge-loop", "merge-queries")
# A table has so many times the rows of the smallest, whatever its heat; the first is the hottest.
_SIZES = (20, 1, 1, 2, 1, 5, 1, 2, 1, 1)
_COMPARED = 10
# A batch counts as committed with this share of its changes: shares of topics are rounded.
_NEARLY = 0.98
_SECONDS_MAX = 4 * 3600.0
_MERGE_MEMORY = "6g"
_CAUSE = re.compile(r"^\S*(Error|Exception)\b")


def sizes(tables: int, rows: int) -> list[int]:
    """Return how many rows each table of a fleet has, if the smallest have `rows`."""
    return [rows * _SIZES[number % len(_SIZES)] for number in range(tables)]


def measure(
    work: Path,
    fleet: Fleet,
    changes: int,
    batches: int,
    merge_batches: int,
    queries_tables: int,
    contenders: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Run the contenders one after the other; yields the figures of each."""
    with LocalBroker(ensure_jars(KAFKA_BROKER), work / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(servers, [fleet.database.topic(name) for name in fleet.names], partitions=1)
        fill(servers, fleet.snapshot())
        starts = {name: len(fleet.database.rows(name)) for name in fleet.names}
        task: dict[str, Any] = {
            "servers": servers, "work": str(work), "starts": starts, "size": changes,
            "batches": batches, "measured": batches, "memory": _MERGE_MEMORY,
            "columns": fleet.database.declared_types()[fleet.names[0]],
        }  # fmt: skip
        chosen = dict.fromkeys(contenders, fleet.names)
        for name in set(contenders) - {"lakesplice"}:
            for table in fleet.names:
                write_deltalake(work / name / table, fleet.database.truth(table))
        if "lakesplice" in contenders:
            _run(work, {**task, "contender": "load", "names": fleet.names})
        counts = _backlog(fleet, servers, changes, batches + 1)
        if "merge-queries" in chosen:
            chosen["merge-queries"] = _spread(fleet.names, counts, queries_tables)
        for name in contenders:
            measured = batches if name == "lakesplice" else merge_batches
            yield _figures(work, fleet, {
                **task, "contender": name, "names": chosen[name], "counts": counts,
                "measured": measured, "compared": _sample(chosen[name]),
            })  # fmt: skip


def _backlog(fleet: Fleet, servers: str, changes: int, batches: int) -> dict[str, int]:
    """Fill the topics with so many batches, without tombstones; how many changes each table has."""
    counts: Counter[str] = Counter()
    for _ in range(batches):
        events = [event for event in fleet.changes(changes) if event.value is not None]
        counts.update(event.topic.rpartition(".")[2] for event in events)
        fill(servers, events)
    return dict(counts)


def _spread(names: Sequence[str], counts: dict[str, int], wanted: int) -> list[str]:
    """Choose tables over the whole range of heat that have as many changes each as all have."""
    step = max(1, len(names) // wanted)
    mean = sum(counts.values()) / len(names)
    return min(
        ([*names[first::step]][:wanted] for first in range(step)),
        key=lambda some: abs(statistics.mean(counts[name] for name in some) - mean),
    )


def _sample(names: Sequence[str]) -> list[str]:
    return list(names[:: max(1, len(names) // _COMPARED)])


def _figures(work: Path, fleet: Fleet, task: dict[str, Any]) -> dict[str, Any]:
    """Run a contender, and say what it did; a failure of a peer is a finding, too."""
    contender, names = task["contender"], task["names"]
    changes = sum(task["counts"][name] for name in names)
    size, found = changes / (task["batches"] + 1), {"contender": contender, "tables": len(names)}
    load = os.getloadavg()[0]
    try:
        commits, spending = _run(work, task)
    except RuntimeError as error:
        return {**found, "failed": str(error)}
    moments = _moments(commits, size, task["measured"] + 1)
    taken = [later - earlier for earlier, later in pairwise(moments)]
    processor = spending.between(moments)
    median, spent = statistics.median(taken), statistics.median(processor)
    afterwards, upkeep = spending.since(moments[-1]), dict[str, int]()
    if contender == "lakesplice":
        upkeep = _upkeep(work / "lake", names, moments[0], moments[-1])
        # As if all that was compacted after the last batch belonged to those that count.
        least = len(taken) * size / (sum(processor) + afterwards)
        upkeep["changes_per_processor_second_at_least"] = round(least)
    return {
        **found,
        "changes_per_batch": round(size),
        "batches": len(taken),
        "seconds": [round(one, 2) for one in taken],
        "processor_seconds": [round(one, 2) for one in processor],
        "changes_per_second": round(size / median),
        "changes_per_processor_second": round(size / spent),
        "processor_seconds_afterwards": round(afterwards, 2),
        **upkeep,
        **_compared(work, fleet, task),
        "load_before": round(load, 1),
        "load_after": round(os.getloadavg()[0], 1),
    }


def _moments(commits: Sequence[Commit], size: float, batches: int) -> list[float]:
    """When the changes of each batch had been committed, over all tables."""
    found, done = list[float](), 0
    for moment, count in commits:
        done += count
        while len(found) < batches and done >= size * (len(found) + _NEARLY):
            found.append(moment)
    if len(found) < batches:
        raise RuntimeError(f"only {done} changes were committed")
    return found


def _upkeep(lake: Path, names: Sequence[str], start: float, end: float) -> dict[str, int]:
    """What compaction did while the batches that count were committed and afterwards, and left."""
    stores = [LocalStore(lake / DATABASE / name) for name in names]
    moments = [
        seconds(entry)
        for store in stores
        for entry in history(store)
        if entry.info.operation != "INGEST"
    ]
    return {
        "upkeep_commits": sum(start < moment <= end for moment in moments),
        "upkeep_commits_afterwards": sum(moment > end for moment in moments),
        "waiting_deltas": sum(len(open_snapshot(store).manifest.deltas) for store in stores),
    }


def _compared(work: Path, fleet: Fleet, task: dict[str, Any]) -> dict[str, int]:
    """Compare the tables with the truth: all of ours, of a peer's some."""
    if task["contender"] == "lakesplice":
        equal = sum(is_equal(fleet, work / "lake", name) for name in task["names"])
        return {"tables_compared": len(task["names"]), "tables_equal": equal}
    equal = 0
    for name in task["compared"]:
        found = DeltaTable(work / task["contender"] / name).to_pyarrow_table()
        difference = compare(fleet.database.truth(name), found, ["id"])
        equal += difference is None
        if difference is not None:
            print(f"{task['contender']}, {name}: {difference}", flush=True)
    return {"tables_compared": len(task["compared"]), "tables_equal": equal}


def _run(work: Path, task: dict[str, Any]) -> tuple[list[Commit], Spending]:
    """Run one contender in a process of its own; returns its commits, and what it used."""
    out, log, described = (work / f"{task['contender']}.{end}" for end in ("json", "log", "task"))
    described.write_text(json.dumps({**task, "out": str(out)}))
    command = [sys.executable, "-m", "benchmarks.fleet_merge.contenders", str(described)]
    with log.open("w") as sink:
        spending = Spending(command, sink, _SECONDS_MAX)
    if not out.exists():
        causes = [line for line in log.read_text().splitlines() if _CAUSE.search(line)]
        print(log.read_text()[-40_000:], file=sys.stderr)
        raise RuntimeError(f"{task['contender']} failed: {causes[-3:]}")
    commits: list[Commit] = [(moment, count) for moment, count in json.loads(out.read_text())]
    return commits, spending
