"""The machine's clock and randomness behind the ports."""

from __future__ import annotations

import secrets
import time

from lakesplice.model.moments import EpochMs


class SystemClock:
    """`Clock` of this machine."""

    def now_ms(self) -> EpochMs:
        """See `Clock.now_ms`."""
        return EpochMs(time.time_ns() // 1_000_000)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """See `Clock.wait`."""
        time.sleep(seconds)


class SystemEntropy:
    """`Entropy` of the operating system."""

    def bits(self, count: int) -> int:
        """See `Entropy.bits`."""
        return secrets.randbits(count)
