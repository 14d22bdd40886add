"""Pauses after failures that may pass, each longer than the one before."""

from __future__ import annotations

from collections.abc import Sequence

from lakesplice.model.moments import EpochMs, later
from lakesplice.table.protocol.ports import Clock

PAUSES_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
# About 20 seconds with the pauses above.
_GIVEN_UP_AFTER = 5


class RetryPauses:
    """The pauses of one thing that fails repeatedly, until `end` reports a success.

    Without pauses a query would be restarted without end, for all tables, and each attempt may
    leave files that no version names.
    """

    def __init__(self, clock: Clock, pauses_seconds: Sequence[float] = PAUSES_SECONDS) -> None:
        self._clock = clock
        self._pauses_seconds = pauses_seconds
        self._until = 0.0
        self.failures = 0
        self.reason = ""

    @property
    def is_on(self) -> bool:
        """Whether it is too early for the next attempt."""
        return self.failures > 0 and self._clock.monotonic() < self._until

    @property
    def retry_ms(self) -> EpochMs | None:
        """When the next attempt is made, in milliseconds since 1970; None after no failure."""
        if not self.failures:
            return None
        left = max(0.0, self._until - self._clock.monotonic())
        return later(self._clock.now_ms(), left)

    @property
    def is_given_up(self) -> bool:
        """Whether it failed so often that `run --once` needn't wait for it."""
        return self.failures >= _GIVEN_UP_AFTER

    def begin(self, reason: str) -> float:
        """Begin a pause after a failure; return its length in seconds."""
        seconds = self._pauses_seconds[min(self.failures, len(self._pauses_seconds) - 1)]
        self.failures += 1
        self.reason = reason
        self._until = self._clock.monotonic() + seconds
        return seconds

    def end(self) -> None:
        """Forget failures that have passed."""
        self.failures, self.reason, self._until = 0, "", 0.0


class PausesByName:
    """The pauses of several things that fail independently, such as tables. Safe from several
    threads, one for each thing.
    """

    def __init__(self, clock: Clock, pauses_seconds: Sequence[float]) -> None:
        self._clock = clock
        self._pauses_seconds = pauses_seconds
        self._failing: dict[str, RetryPauses] = {}

    def is_on(self, name: str) -> bool:
        """Whether it is too early for the next attempt at one of them."""
        pauses = self._failing.get(name)
        return pauses is not None and pauses.is_on

    def begin(self, name: str, reason: str) -> float:
        """Begin a pause after a failure of one of them; return its length in seconds."""
        pauses = RetryPauses(self._clock, self._pauses_seconds)
        return self._failing.setdefault(name, pauses).begin(reason)

    def end(self, name: str) -> None:
        """Forget the failures of one of them, which has succeeded."""
        self._failing.pop(name, None)
