"""Health: is the service alive, and is it ready? If not, the reasons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping


class Health:
    """What /healthz and /readyz answer from. All methods may be called from any thread.

    Alive: the main loop has ticked within its deadline; what isn't alive should be restarted.
    Ready: alive, and nothing is awaited; a parked table doesn't count. `monotonic` gives seconds.
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
        """Say that the main loop lives; a deadline holds until the next tick that gives one."""
        with self._lock:
            self._ticked = self._monotonic()
            self._deadline_seconds = deadline_seconds or self._deadline_seconds

    def expect(self, what: str, reason: str) -> None:
        """Be unready for `what` until it is `reached`."""
        with self._lock:
            self._awaited[what] = reason

    def reached(self, what: str) -> None:
        """Wait no longer for `what`."""
        with self._lock:
            self._awaited.pop(what, None)

    def note_troubles(self, troubles: Mapping[str, str]) -> None:
        """Say, by topic, what keeps some from going on; the service is ready all the same."""
        with self._lock:
            self._troubles = dict(troubles)

    def troubles(self) -> dict[str, str]:
        """Return what was noted last."""
        with self._lock:
            return dict(self._troubles)

    def why_dead(self) -> dict[str, str]:
        """Return the reasons why the service isn't alive; none means that it is."""
        with self._lock:
            silent, deadline = self._monotonic() - self._ticked, self._deadline_seconds
        if silent <= deadline:
            return {}
        return {"main-loop": f"silent for {silent:.1f} s; its deadline is {deadline:g} s"}

    def why_unready(self) -> dict[str, str]:
        """Return what is being waited for and why; none means ready."""
        with self._lock:
            awaited = dict(self._awaited)
        return {**awaited, **self.why_dead()}
