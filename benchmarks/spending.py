"""What a command and all its processes have used of the processor, beside the time it was then.

A service is a driver, a JVM and Python workers. On a machine with other work the seconds of the
processor of all of them say more than those of the clock.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np

_PAUSE_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
# The fields of /proc/<pid>/stat behind the name of the program.
_SESSION, _USER, _SYSTEM, _STARTED = 3, 11, 12, 19


class Spending:
    """Runs a command in a session of its own, and notes ten times a second what it has used."""

    def __init__(self, command: Sequence[str], log: IO[str], seconds_max: float) -> None:
        self._used: dict[tuple[str, str], float] = {}
        self._moments: list[float] = []
        self._totals: list[float] = []
        ends = time.monotonic() + seconds_max
        with subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as process:
            try:
                while process.poll() is None and time.monotonic() < ends:
                    self._note(str(process.pid))
                    time.sleep(_PAUSE_SECONDS)
            finally:
                process.kill()  # nothing happens if it has ended
        self.code = process.returncode

    def between(self, moments: Sequence[float]) -> list[float]:
        """The seconds of the processor from each of these moments to the next."""
        totals = np.interp(moments, self._moments, self._totals)
        return [float(later - earlier) for earlier, later in pairwise(totals)]

    def since(self, moment: float) -> float:
        """The seconds of the processor from this moment to the end."""
        return sum(self.between([moment, self._moments[-1]]))

    def _note(self, session: str) -> None:
        self._moments.append(time.time())
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            if fields[_SESSION] == session:
                # What has ended keeps what it used last.
                process = (stat.parent.name, fields[_STARTED])
                self._used[process] = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
        self._totals.append(sum(self._used.values()))
