"""Runs long work in a thread, while the main loop continues to report that it is alive; and limits
how many compaction tasks the threads run at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import TypeVar

_TICK_SECONDS = 0.2

Result = TypeVar("Result")


def run_interruptibly(
    work: Callable[[], Result], name: str, tick: Callable[[], None], stopping: threading.Event
) -> Result | None:
    """Run `work` in a thread of its own and call `tick` repeatedly meanwhile; return or raise what
    it does. None if the service is to stop before its end.

    Abandoned work is as if the driver had died: each of its commits is whole.
    """
    outcome: Future[Result] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    while not wait([outcome], _TICK_SECONDS).done:
        tick()
        if stopping.is_set():
            return None
    return outcome.result()


class Slots:
    """Slots shared by several threads; `most` returns how many there are now."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._taken = 0
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, count: int) -> Iterator[None]:
        """Take `count` slots while the block runs; blocks until so many are free.

        A caller that asks for more than there are, since executors have left, waits until all are
        free.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._taken + count <= max(self._most(), count))
            self._taken += count
        try:
            yield
        finally:
            with self._changed:
                self._taken -= count
                self._changed.notify_all()
