"""The service as a process, and changes that come by the second."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.filling import fill
from benchmarks.service import COMMAND
from benchmarks.soak.fleet import Fleet
from lakesplice.errors import SourceUnavailable
from lakesplice.testing.shop import Event

_STOP_SECONDS_MAX = 180.0
_RUN = [*COMMAND, "run", "--config"]


@contextmanager
def service(config: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the service while the block runs."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [*_RUN, str(config)], stdout=sink, stderr=sink, start_new_session=True
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def changing(fleet: Fleet, servers: str, rate: int) -> Iterator[list[int]]:
    """Make changes every second while the block runs; gives their numbers."""
    over, sent = threading.Event(), list[int]()

    def work() -> None:
        due = time.monotonic()
        while not over.wait(max(0.0, due - time.monotonic())):
            due += 1.0
            sent.append(_send(servers, fleet.changes(rate)))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield sent
    finally:
        over.set()
        thread.join()


def _send(servers: str, events: list[Event]) -> int:
    """Send events until the broker has all; one that comes twice changes nothing."""
    while True:
        try:
            return fill(servers, events)
        except SourceUnavailable:
            time.sleep(1.0)
