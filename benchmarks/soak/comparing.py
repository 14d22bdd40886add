"""Waits until the lake has everything that a fleet sent, and compares tables with the truth."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from benchmarks.soak.fleet import DATABASE, Fleet
from lakesplice import Table
from lakesplice.apps.demo.comparison import stands_at
from lakesplice.errors import LakespliceError
from lakesplice.testing.compare import compare

_CATCH_UP_SECONDS_MAX = 900.0


def catch_up(
    fleet: Fleet,
    names: Sequence[str],
    servers: str,
    lake: Path,
    process: subprocess.Popen[bytes],
) -> float | None:
    """Wait until these tables have everything; the seconds until then, None if it takes too long
    or the service ended.
    """
    places = [TopicPartition(fleet.database.topic(name), 0) for name in names]
    consumer = KafkaConsumer(bootstrap_servers=servers)
    found = consumer.end_offsets(places)
    consumer.close()
    ends = {(place.topic, place.partition): end for place, end in found.items()}
    began = time.monotonic()
    while not stands_at(lake, ends):
        passed = time.monotonic() - began
        if process.poll() is not None or passed > _CATCH_UP_SECONDS_MAX:
            return None
        time.sleep(1.0)
    return round(time.monotonic() - began, 1)


def is_equal(fleet: Fleet, lake: Path, name: str) -> bool:
    """Whether the table has the expected rows; prints the first difference."""
    try:
        found = Table.open(lake / DATABASE / name).read()
    except LakespliceError as error:
        print(f"{name}: {error}", flush=True)
        return False
    difference = compare(fleet.database.truth(name), found, ["id"])
    if difference is not None:
        print(f"{name}: {difference}", flush=True)
    return difference is None
