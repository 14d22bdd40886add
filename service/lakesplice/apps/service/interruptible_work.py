"""Runs long work in a thread, while the main loop continues to report that it is alive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
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
