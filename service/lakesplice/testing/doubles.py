"""A clock that tests set, and randomness that a seed repeats."""

from __future__ import annotations

import random
import threading

from lakesplice.model.moments import EpochMs, later


class FixedClock:
    """`Clock` that moves only when the test moves it; waiting on it takes no time."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = EpochMs(now_ms)
        self._monotonic = 0.0

    def now_ms(self) -> EpochMs:
        """See `Clock.now_ms`."""
        return self._now_ms

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._monotonic

    def wait(self, seconds: float) -> None:
        """See `Clock.wait`: the time passes at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> bool:
        """Let time pass. Returns True, so that it can replace a wait that wasn't interrupted."""
        self._monotonic += seconds
        self._now_ms = later(self._now_ms, seconds)
        return True

    def jump_to(self, now_ms: int) -> None:
        """Set the wall clock, also backwards; the monotonic clock isn't changed."""
        self._now_ms = EpochMs(now_ms)


class SeededEntropy:
    """`Entropy` from a seed; safe from several threads, whose order then affects the numbers."""

    def __init__(self, seed: int) -> None:
        # A test's random numbers must repeat; no secret depends on them.
        self._random = random.Random(seed)  # noqa: S311
        self._lock = threading.Lock()

    def bits(self, count: int) -> int:
        """See `Entropy.bits`."""
        with self._lock:
            return self._random.getrandbits(count)
