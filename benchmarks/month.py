"""A month of a table's life on a clock that is set: does anything grow that shouldn't?

Run: python -m benchmarks.month [--days N] [--batches N] [--new-rows N] [--store FOLDER | --bucket]
         [--out FILE]

One driver, in this process and without Spark and Kafka, takes a small batch every two minutes of
simulated time, into rows that stay as many once the first batches filled the table, and sees to the
table as the service does, by the service's own plans: compaction, merges of index runs and of small
files, checkpoints and clean-up of the log, vacuum every hour, a sweep for orphans every day. Old
versions are kept for a day. Once a simulated day it is measured: what opening the table takes,
memory of the process, files and bytes of the lake, length of the log, size of the manifest. Growth
is the mean of the last third over the mean of the first one, the first two days left out. In the
end every row is compared with the truth.

Beside it: opening the table after 100 commits and after 10,000.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from random import Random

from lakesplice.planning.upkeep.compaction import CompactionPolicy, backlog, pressure
from lakesplice.storage.stores import AnyStore, log_keeper, open_store
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.layout import MANIFESTS
from lakesplice.table.protocol.snapshot import Snapshot, manifest_ref, open_snapshot
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.expiry import Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.table.upkeep.vacuum import orphans_before_ms
from lakesplice.telemetry.memory import DRIVER, resident_bytes
from lakesplice.testing.compare import compare
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import FaultyStore
from lakesplice.testing.s3_server import S3Server, options
from lakesplice.testing.shop import Database, TableSpec
from lakesplice.testing.shop.columns import bigint, integer, varchar
from lakesplice.testing.shop.database import Row
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

GOODS = TableSpec("goods", (bigint("id", optional=False), varchar("name"), integer("n")), ("id",))
KEYS = 2_000
CHANGES_PER_BATCH = 5
FILLED_BY = 20
SECONDS_PER_BATCH = 120.0
DAY_SECONDS = 86_400.0
RETENTION_SECONDS = DAY_SECONDS
CHECKPOINT_EVERY = 10
DELTAS_MAX = 5
WARM_DAYS = 2
OPENED_AT = (100, 10_000)
_OPENINGS = 15


@dataclass(frozen=True, slots=True)
class Reading:
    """What was measured at the end of one simulated day."""

    day: int
    version: int
    open_seconds: float
    open_calls: int
    resident_bytes: int
    files: int
    bytes: int
    log_files: int
    manifests: int
    manifest_bytes: int
    base_files: int
    index_runs: int


class Month:
    """The table, its driver and their clock; `turn` is one batch and what is due after it."""

    def __init__(self, lake: AnyStore, seed: int = 0, new_rows: int = 0) -> None:
        self._random = Random(f"month-{seed}")
        self.clock = FixedClock()
        self._database = Database([GOODS], seed=seed)
        self._topic = SimulatedTopic(self._database.topic(GOODS.name), partitions=2)
        self._driver = SimulatedDriver(lake, self._topic, self.clock, SeededEntropy(seed))
        self.store = lake.within(self._driver.name.path)
        self._policy = CompactionPolicy(deltas_max=DELTAS_MAX)
        table = self._driver.table
        self._expiry = Expiry(table.store, table.commit, table.generation)
        self._orphans = Orphans(table.store, table.commit, table.generation)
        self._log = Maintenance(
            table.store,
            log_keeper(self.store),
            self.clock,
            checkpoint_every=CHECKPOINT_EVERY,
            retention_seconds=RETENTION_SECONDS,
            expiry=self._expiry,
        )
        self._vacuum_at, self._sweep_at = 3_600.0, DAY_SECONDS
        self._new_rows, self._keys = new_rows, 0
        self.batches = self.compactions = 0

    @property
    def version(self) -> int:
        """The table's version."""
        return self._driver.table.version

    def turn(self) -> None:
        """Let two minutes pass, take a batch, and do what is due."""
        self.clock.advance(SECONDS_PER_BATCH)
        self._change_rows()
        self._driver.batch()
        self._topic.forget(self._topic.ends)
        self.batches += 1
        waiting = backlog(self._driver.table.manifest, self._policy.rows_per_page)
        if pressure(waiting, self._policy, self.clock.now_ms()).score >= 1:
            self.compactions += isinstance(self._driver.compact(), Committed)
        self._driver.merge_runs()
        self._driver.merge_files()
        self._see_to_old_versions()

    def read(self, day: int) -> Reading:
        """Measure the table as it stands."""
        gc.collect()
        resident = resident_bytes()[DRIVER]
        lake = {path: self.store.size(path) or 0 for path in self.store.list("")}
        snapshot = open_snapshot(self.store)
        return Reading(
            day=day,
            version=snapshot.version,
            open_seconds=round(self.open_seconds(), 6),
            open_calls=self.open_calls(),
            resident_bytes=resident,
            files=len(lake),
            bytes=sum(lake.values()),
            log_files=sum(path.startswith("_delta_log/") for path in lake),
            manifests=sum(path.startswith(f"{MANIFESTS}/") for path in lake),
            manifest_bytes=manifest_ref(snapshot).bytes,
            base_files=len(snapshot.manifest.files),
            index_runs=len(snapshot.manifest.runs),
        )

    def open_seconds(self) -> float:
        """How long opening the newest version takes who knows nothing of it; a median."""
        taken = []
        for _ in range(_OPENINGS):
            started = time.perf_counter()
            open_snapshot(self.store)
            taken.append(time.perf_counter() - started)
        return statistics.median(taken)

    def open_calls(self) -> int:
        """How often opening the newest version asks the store."""
        counted = FaultyStore(self.store)
        open_snapshot(counted)
        return len(counted.calls)

    def difference(self) -> str | None:
        """Where the real-time view isn't the truth; None if it is."""
        found = compare(self._database.truth(GOODS.name), Table(self.store).read(), ["id"])
        return None if found is None else str(found)

    def _change_rows(self) -> None:
        database, rows = self._database, self._database.rows(GOODS.name)
        new = KEYS // FILLED_BY if self.batches < FILLED_BY else self._new_rows
        for key in range(self._keys, self._keys + new):
            database.insert(GOODS.name, [(key, f"name {key}", key)])
        self._keys += new
        for _ in range(CHANGES_PER_BATCH):
            key = self._random.randrange(self._keys)
            value = self._random.randrange(1_000_000)
            if (key,) not in rows:
                database.insert(GOODS.name, [(key, f"name {value}", value)])
            elif value % 20 == 0:
                database.delete(GOODS.name, [(key,)])
            else:
                database.update(GOODS.name, [(key,)], partial(_with, value=value))
        for event in database.drain():
            # As the source's connector does: all events of a key go to one partition.
            self._topic.append(zlib.crc32(event.key or b"") % 2, [event])

    def _see_to_old_versions(self) -> None:
        now = self.clock.monotonic()
        self._log.care(self._newest())
        if now >= self._vacuum_at:
            self._vacuum_at = now + 3_600.0
            self._log.expire(self._newest())
        if now >= self._sweep_at:
            self._sweep_at = now + DAY_SECONDS
            before_ms = orphans_before_ms(self.clock.now_ms(), RETENTION_SECONDS)
            self._orphans.sweep(self._newest(), before_ms, at_once=False)

    def _newest(self) -> Snapshot:
        snapshot = self._driver.table.snapshot
        assert snapshot is not None
        return snapshot


def _with(row: Row, value: int) -> Row:
    return (*row[:2], value)


def live(
    month: Month,
    days: int,
    batches_per_day: int,
    say: Callable[[Reading], None] = lambda _reading: None,
) -> tuple[list[Reading], dict[int, float]]:
    """Live so many days; a reading a day, and how long opening took after some commits."""
    readings: list[Reading] = []
    opened: dict[int, float] = {}
    for day in range(days):
        for _ in range(batches_per_day):
            month.turn()
            due = [at for at in OPENED_AT if at not in opened and month.version >= at]
            opened |= {at: month.open_seconds() for at in due}
        month.clock.advance(max(0.0, DAY_SECONDS - batches_per_day * SECONDS_PER_BATCH))
        readings.append(month.read(day))
        say(readings[-1])
    return readings, opened


def growth(readings: Sequence[Reading]) -> dict[str, float]:
    """Per figure the mean of the last third over that of the first third, warm days left out."""
    warm = [asdict(reading) for reading in readings[WARM_DAYS:]]
    share = max(1, len(warm) // 3)
    first, last = warm[:share], warm[-share:]
    names = [name for name in warm[0] if name not in ("day", "version")]
    return {name: round(_mean(last, name) / max(_mean(first, name), 1e-9), 2) for name in names}


def _mean(readings: Sequence[Mapping[str, float]], name: str) -> float:
    return statistics.fmean(reading[name] for reading in readings)


def main() -> int:
    """Read the arguments, live, print and keep the figures; 1 if the rows aren't the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--batches", type=int, default=720, help="batches a day")
    parser.add_argument("--new-rows", type=int, default=0, help="rows that each batch adds")
    parser.add_argument("--store", type=Path, help="the folder to work in (a temporary one)")
    parser.add_argument("--bucket", action="store_true", help="in a bucket of a local S3 server")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="bench-month-", dir=args.store))
    try:
        if args.bucket:
            with S3Server(work) as server:
                address = f"s3://{server.make_bucket()}/lake"
                return _measure(open_store(address, options(server.endpoint)), args)
        return _measure(open_store(work / "lake"), args)
    finally:
        shutil.rmtree(work)


def _measure(lake: AnyStore, args: argparse.Namespace) -> int:
    month, started = Month(lake, new_rows=args.new_rows), time.monotonic()
    readings, opened = live(month, args.days, args.batches, lambda one: print(one, flush=True))
    difference = month.difference()
    found = {
        "days": args.days,
        "batches": month.batches,
        "compactions": month.compactions,
        "commits": month.version + 1,
        "seconds": round(time.monotonic() - started),
        "open_seconds_after_commits": {at: round(took, 5) for at, took in opened.items()},
        "growth": growth(readings) if args.days > WARM_DAYS + 1 else {},
        "readings": [asdict(reading) for reading in readings],
        "difference": difference,
    }
    print(json.dumps({name: value for name, value in found.items() if name != "readings"}))
    if args.out:
        args.out.write_text(json.dumps(found, indent=2))
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
