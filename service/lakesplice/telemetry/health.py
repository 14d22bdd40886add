"""Health: whether the service is alive, whether it is ready, and if not, why."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping


class Health:
    """The state behind /healthz and /readyz. All methods may be called from any thread.

    Alive: the main loop has reported within its deadline; a service that isn't alive should be
    restarted. Ready: alive, and not waiting for anything; parked tables don't count. `monotonic`
    returns seconds.
    """

    def __init__(
        self,
        deadline_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        awaited: dict[str, str] | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._deadline_seconds = deadline_seconds
        self._ticked = monotonic()
        self._awaited = dict(awaited or {})
        self._troubles: dict[str, str] = {}

    def tick(self, deadline_seconds: float | None = None) -> None:
        """Report that the main loop is alive; a deadline is valid until the next one."""
        with self._lock:
            self._ticked = self._monotonic()
            self._deadline_seconds = deadline_seconds or self._deadline_seconds

    def expect(self, what: str, reason: str) -> None:
        """Count as not ready until `what` is `reached`."""
        with self._lock:
            self._awaited[what] = reason

    def reached(self, what: str) -> None:
        """Stop waiting for `what`."""
        with self._lock:
            self._awaited.pop(what, None)

    def note_troubles(self, troubles: Mapping[str, str]) -> None:
        """Set, by topic, why some can't continue; the service is ready all the same."""
        with self._lock:
            self._troubles = dict(troubles)

    def troubles(self) -> dict[str, str]:
        """Return what `note_troubles` set last."""
        with self._lock:
            return dict(self._troubles)

    def why_dead(self) -> dict[str, str]:
        """Return why the service isn't alive; empty if it is."""
        with self._lock:
            silent, deadline = self._monotonic() - self._ticked, self._deadline_seconds
        if silent <= deadline:
            return {}
        return {"main-loop": f"silent for {silent:.1f} s; its deadline is {deadline:g} s"}

    def why_unready(self) -> dict[str, str]:
        """Return what the service waits for and why; empty if it is ready."""
        with self._lock:
            awaited = dict(self._awaited)
        return {**awaited, **self.why_dead()}
