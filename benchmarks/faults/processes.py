"""Processes by their ids, as Linux's /proc shows them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and whose parent hasn't asked for it doesn't."""
    return bool(_stat(pid)) and _stat(pid)[0] != "Z"


def command_of(pid: int) -> str:
    """The arguments of a process; empty if there is none."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return ""


def descendants(pid: int) -> list[int]:
    """The ids of a process's children, of their children, and so on."""
    parents = {int(path.name): _parent(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
    found = [pid]
    for one in found:
        found.extend(child for child, parent in parents.items() if parent == one)
    return found[1:]


def signalled(pid: int, number: int) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _parent(pid: int) -> int:
    stat = _stat(pid)
    return int(stat[1]) if stat else 0


def _stat(pid: int) -> list[str]:
    """The state of a process, the id of its parent, and more; empty if there is no such process."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
