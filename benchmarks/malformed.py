"""Ingest with malformed records beside ingest without any.

Run: python -m benchmarks.malformed [--rows N] [--share 0.01] [--repeats N] [--schemas]

A table of 23 columns gets Debezium updates of all its rows, two columns changed. A share of the
records is what broken producers send: half of it no JSON (cut off, empty, a raw line break, text),
half JSON with a wrong type or a number out of range. There is no Spark and no Kafka in it: the
tasks of a batch run in one process, on portions of 12,000 records (16 MiB), as Spark gives them to
a task. Each process measures one share, over and over, and the shares take turns; the figures are
medians of seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from benchmarks.service import COLUMNS
from lakesplice.formats.events import declare
from lakesplice.model.offsets import Offsets
from lakesplice.storage.local import LocalStore
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event, WideTable
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

SEED = 7
BATCHES = 4
_PORTION_ROWS = 12_000
# What stands in place of a number, and of a decimal, which is a text.
_WRONG = {"integer": "many", "decimal(7,2)": 5}


def damaged(events: Iterable[Event], share: float) -> Iterator[Event]:
    """Yield the events, a share of them malformed in one of eight ways."""
    chance, kind = random.Random(SEED), 0
    for event in events:
        if event.value is None or chance.random() >= share:
            yield event
        else:
            yield event._replace(value=malformed(event.value, kind % 8))
            kind += 1


def malformed(value: bytes, kind: int) -> bytes:
    """Return an event as a broken producer sends it."""
    broken = (value[: len(value) // 2], b"", value.replace(b"mariadb", b"maria\ndb"), b"no JSON")
    if kind < len(broken):
        return broken[kind]
    event = json.loads(value)
    of = "decimal(7,2)" if kind == 6 else "integer"
    name = [name for name, declared in COLUMNS.items() if declared == of][-1]
    event.get("payload", event)["after"][name] = 10**12 if kind == 7 else _WRONG[of]
    return json.dumps(event, separators=(",", ":")).encode()


class _Portions(SimulatedTopic):
    """A topic that is read once, in portions as Spark makes them."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._known: dict[tuple[str, str], list[pa.RecordBatch]] = {}

    def read(self, starts: Offsets, ends: Offsets) -> list[pa.RecordBatch]:
        asked = str(starts), str(ends)
        if asked not in self._known:
            self._known[asked] = [
                whole.slice(at, _PORTION_ROWS)
                for whole in super().read(starts, ends)
                for at in range(0, len(whole), _PORTION_ROWS)
            ]
        return self._known[asked]


def seconds(rows: int, share: float, *, with_schemas: bool) -> list[float]:
    """Return how long each of some equal batches takes, after one that isn't measured."""
    table = WideTable(rows, with_schemas=with_schemas)
    topic = _Portions(table.topic)
    declared = None if with_schemas else declare(COLUMNS)
    with tempfile.TemporaryDirectory(prefix="lakesplice-malformed-") as lake:
        driver = SimulatedDriver(
            LocalStore(lake), topic, FixedClock(), SeededEntropy(1), declared=declared
        )
        topic.append(0, table.snapshot())
        driver.batch()
        starts = driver.table.next_offsets(topic.ends)
        topic.append(0, damaged(table.updates(np.arange(rows) + 1), share))
        taken = []
        for _ in range(BATCHES + 1):
            topic.read(starts, topic.ends)
            started = time.process_time()
            answer = driver.answer(starts, topic.ends)
            taken.append(time.process_time() - started)
            assert not answer.errors, answer.errors
    return taken[1:]


def main() -> None:
    """Measure both shares in turn, each in a process of its own, and print them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--schemas", action="store_true")
    parser.add_argument("--alone", action="store_true", help="measure only this share")
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(seconds(options.rows, options.share, with_schemas=options.schemas)))
        return
    found: dict[float, list[float]] = {0.0: [], options.share: []}
    alike = ["--rows", str(options.rows), *(["--schemas"] if options.schemas else [])]
    for _ in range(options.repeats):
        for share, taken in found.items():
            command = [sys.executable, "-m", "benchmarks.malformed", "--alone", *alike]
            run = subprocess.run(
                [*command, "--share", str(share)], check=True, capture_output=True, text=True
            )
            taken += json.loads(run.stdout)
    sound, bad = (statistics.median(taken) for taken in found.values())
    print(
        f"{options.rows} records: {sound:.3f} s, with {options.share:.0%} malformed {bad:.3f} s,"
        f" {bad / sound - 1:+.1%}"
    )


if __name__ == "__main__":
    main()
