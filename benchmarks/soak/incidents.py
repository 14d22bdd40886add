"""Troubles of a long run: a table is parked, the broker is away for a while, the disk is full."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lakesplice.testing.broker import LocalBroker

BROKER_AWAY_SECONDS, DISK_FULL_SECONDS = 20.0, 30.0
_BLOCK = b"\0" * (4 << 20)
_SECONDS_MAX = 60.0


@contextmanager
def volume(folder: Path, size: str) -> Iterator[bool]:
    """Make the folder a volume of its own of this size, in memory, while the block runs; gives
    whether that was possible, which only root may do.
    """
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and not subprocess.run(command, check=False).returncode
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=False, timeout=_SECONDS_MAX)


def restart(broker: LocalBroker) -> None:
    """Have the broker away for a while."""
    broker.stop()
    time.sleep(BROKER_AWAY_SECONDS)
    broker.start()


def fill_disk(folder: Path) -> None:
    """Leave no byte on the folder's volume for a while."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            until = time.monotonic() + DISK_FULL_SECONDS
            # What the service deletes is taken, too.
            while time.monotonic() < until:
                with suppress(OSError):
                    while file.write(_BLOCK):
                        pass
                time.sleep(0.2)
    finally:
        filler.unlink(missing_ok=True)
