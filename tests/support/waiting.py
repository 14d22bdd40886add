"""Waits for what another thread or process does: bounded, and a failure says what was awaited."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def until(
    condition: Callable[[], bool],
    what: str,
    seconds_max: float = 60.0,
    poll_seconds: float = 0.05,
    *,
    works: Callable[[], bool] = lambda: True,
    said: Callable[[], str] = lambda: "",
) -> None:
    """Wait until the condition holds; fail if it doesn't in time, or once that which is to bring it
    about no longer `works`. The failure has what that has `said`.

    A condition that takes long to find out is asked less often, since others need the processor.
    """
    pause, deadline = threading.Event(), time.monotonic() + seconds_max
    while True:
        asked = time.monotonic()
        if condition():
            return
        assert works(), f"it ended before {what}: {said()}"
        assert time.monotonic() < deadline, f"not in {seconds_max} s: {what}: {said()}"
        pause.wait(max(poll_seconds, 3 * (time.monotonic() - asked)))
