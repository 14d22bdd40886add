"""What a running service holds and how far behind it is, looked at from outside."""

from __future__ import annotations

import os
import re
import statistics
import time
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path

from lakesplice.telemetry.catalogue import DELTA_FILES, DELTA_OLDEST, FRESHNESS, LAG, REAL_TIME
from lakesplice.telemetry.memory import descendants, processes

Sample = dict[str, float]
_SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_VIEW = f'view="{REAL_TIME}"'
_OPTIMISED = "freshness of the read-optimised view"
_TIMEOUT_SECONDS = 20.0
_MIB = 1 << 20
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def sample(pid: int, port: int, lake: Path) -> Sample:
    """Measure the process `pid` with all below it, its page, and its lake; blocks for a moment."""
    return {**_held(pid), **_told(port), **_on_disk(lake)}


def _held(pid: int) -> Sample:
    """Memory, open files and threads of the processes."""
    found: defaultdict[str, float] = defaultdict(float)
    for process in descendants(processes(), pid):
        kind = "driver" if process.pid == pid else "jvm" if process.command == "java" else "workers"
        found[f"{kind}_mib"] += process.resident_pages * _PAGE_BYTES / _MIB
        folder = Path("/proc") / str(process.pid)
        try:
            found["open_files"] += sum(1 for _ in (folder / "fd").iterdir())
            threads = re.search(r"Threads:\s+(\d+)", (folder / "status").read_text())
        except OSError:
            continue
        found["threads"] += int(threads[1]) if threads else 0
    return {name: round(value, 1) for name, value in found.items()}


def _told(port: int) -> Sample:
    """What the page says, and how long it took; nothing if it doesn't answer."""
    started = time.perf_counter()
    address = f"http://127.0.0.1:{port}/metrics"
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as answer:
            page = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return {}
    taken = 1_000 * (time.perf_counter() - started)
    series = [match.groups() for match in map(_SERIES.match, page.splitlines()) if match]
    values: defaultdict[str, list[float]] = defaultdict(list)
    for name, labels, value in series:
        other = name == FRESHNESS.name and _VIEW not in (labels or "")
        values[_OPTIMISED if other else name].append(float(value))
    ages = sorted(values[FRESHNESS.name]) or [0.0]
    return {
        "series": len(series),
        "scrape_ms": round(taken, 1),
        "age_median_s": round(statistics.median(ages), 1),
        # The parked table is the oldest.
        "age_99_percent_s": round(ages[int(0.99 * (len(ages) - 1))], 1),
        "optimised_age_median_s": round(statistics.median(values[_OPTIMISED] or [0.0]), 1),
        "delta_oldest_s": round(max(values[DELTA_OLDEST.name], default=0.0), 1),
        "lag_records": sum(values[LAG.name]),
        "waiting_deltas": sum(values[DELTA_FILES.name]),
    }


def _on_disk(lake: Path) -> Sample:
    """How many files the lake has, and their bytes."""
    files, size, folders = 0, 0, [lake]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        files += 1
                        size += entry.stat().st_size
        except OSError:
            continue
    return {"lake_files": files, "lake_mib": round(size / _MIB, 1)}
