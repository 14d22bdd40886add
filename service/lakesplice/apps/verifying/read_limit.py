"""Limits how fast a source's database is read: at most so many rows per second, and not while it is
busy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from lakesplice.storage.source.rows import SourceConnection
from lakesplice.table.protocol.ports import Clock

_BUSY_SECONDS = 1.0
_SECONDS_AT_ONCE = 1.0


@dataclass
class ReadLimit:
    """The limits for one connection. Not thread-safe."""

    clock: Clock
    rows_per_second: float
    threads_running_max: int
    _begun: float = field(default=0.0, init=False)
    _rows: int = field(default=0, init=False)

    @property
    def rows_at_once(self) -> int:
        """How many rows one statement may read."""
        return max(1, round(self.rows_per_second * _SECONDS_AT_ONCE))

    def wait_until_idle(self, connection: SourceConnection) -> None:
        """Block while more of the server's threads are running than allowed."""
        while connection.threads_running() > self.threads_running_max:
            self.clock.wait(_BUSY_SECONDS)

    def spend(self, rows: int) -> None:
        """Count rows that were read, and block until the rate is within the limit."""
        now = self.clock.monotonic()
        if not self._rows:
            self._begun = now - rows / self.rows_per_second / 2
        self._rows += rows
        ahead = self._begun + self._rows / self.rows_per_second - now
        if ahead > 0:
            self.clock.wait(ahead)
