"""`lakesplice` with a clock that differs from the machine's by what a file says.

Run: python -m benchmarks.faults.shifted_clock FILE run --config ...

The file has a number of seconds and may change meanwhile: then the clock jumps. Only the service's
own Python is shifted. Its JVM, Kafka and the store keep the machine's clock, as those of other
machines would.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

_LOOK_SECONDS = 0.2
_NANOSECONDS = 1_000_000_000


class ShiftedTime:
    """The machine's time, plus the seconds in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._real_ns = time.time_ns
        self._looked = float("-inf")
        self._seconds = 0.0

    def time_ns(self) -> int:
        """As `time.time_ns`."""
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._seconds = float(self._file.read_text() or 0)
        return self._real_ns() + round(self._seconds * _NANOSECONDS)

    def time(self) -> float:
        """As `time.time`."""
        return self.time_ns() / _NANOSECONDS


def main() -> None:
    """Shift the clock, then run the command that the other arguments are."""
    shifted = ShiftedTime(Path(sys.argv.pop(1)))
    time.time_ns, time.time = shifted.time_ns, shifted.time
    # Not earlier: modules keep the functions that they find.
    from lakesplice.apps.cli import main as lakesplice

    lakesplice()


if __name__ == "__main__":
    main()
