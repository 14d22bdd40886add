"""Ctrl-C, SIGTERM and SIGHUP set a flag that the demo reads, so that they don't interrupt the code
anywhere.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_PATIENCE = 3


class StopRequested(Exception):
    """The demo was asked to end; raised only where the demo waits."""


class Stopper:
    """Records the request to stop; code that waits through this object is woken at once."""

    def __init__(self, tell: Callable[[str], None], abandon: Callable[[], None]) -> None:
        self._tell = tell
        self._abandon = abandon
        self._wished = threading.Event()
        self._count = 0

    @property
    def is_wished(self) -> bool:
        """Whether the demo was asked to stop."""
        return self._wished.is_set()

    def check(self) -> None:
        """Raise `StopRequested` if the demo was asked to stop."""
        if self._wished.is_set():
            raise StopRequested

    def wait(self, seconds: float) -> None:
        """Wait, unless the demo is asked to stop: then `StopRequested`."""
        self._wished.wait(seconds)
        self.check()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Treat SIGINT, SIGTERM and SIGHUP as the request to stop while the block runs; main thread
        only.
        """
        # SIGHUP: the servers have sessions of their own, so they outlive the terminal.
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._on_signal) for number in signals]
        try:
            yield
        finally:
            for number, handler in zip(signals, before, strict=True):
                signal.signal(number, handler)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._count += 1
        self._wished.set()
        if self._count == 1:
            self._tell("stopping all that was started …")
        elif self._count >= _PATIENCE:
            self._abandon()
