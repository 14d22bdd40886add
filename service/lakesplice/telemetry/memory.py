"""The memory of the service's processes, as Linux reports it in /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

DRIVER, JVM, WORKERS = "driver", "jvm", "workers"
_PROC = Path("/proc")
# Fields of /proc/<pid>/stat after the command, which alone may hold spaces.
_PARENT, _RESIDENT_PAGES = 1, 21


@dataclass(frozen=True, slots=True)
class Process:
    """A process as /proc/<pid>/stat describes it."""

    pid: int
    parent: int
    command: str
    resident_pages: int

    @classmethod
    def from_stat(cls, text: str) -> Process:
        """Return the process of a line of /proc/<pid>/stat; its command may contain any
        character.
        """
        pid, _, rest = text.partition(" (")
        command, _, fields = rest.rpartition(") ")
        values = fields.split()
        return cls(int(pid), int(values[_PARENT]), command, int(values[_RESIDENT_PAGES]))


def resident_bytes(root: int | None = None) -> dict[str, int]:
    """Return the bytes used by `root`, by default this process, and all its descendants, by kind.

    All are 0 without /proc. Reads a small file per process of the machine.
    """
    top = os.getpid() if root is None else root
    totals = {DRIVER: 0, JVM: 0, WORKERS: 0}
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    for process in descendants(processes(), top):
        kind = DRIVER if process.pid == top else JVM if process.command == "java" else WORKERS
        totals[kind] += process.resident_pages * page_bytes
    return totals


def descendants(processes: list[Process], top: int) -> list[Process]:
    """Return the process `top` and all below it."""
    below: dict[int, list[Process]] = {}
    for process in processes:
        below.setdefault(process.parent, []).append(process)
    found = [process for process in processes if process.pid == top]
    for process in found:
        found.extend(below.get(process.pid, ()))
    return found


def processes() -> list[Process]:
    """Return all processes of the machine, in no order; none where there is no /proc."""
    found = []
    for folder in _PROC.glob("[0-9]*"):
        # The process may end while it is read.
        with suppress(OSError, ValueError, IndexError):
            found.append(Process.from_stat((folder / "stat").read_text(errors="replace")))
    return found
