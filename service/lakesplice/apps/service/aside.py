"""Work that may take long, while the main loop continues to report that it lives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

_TICK_SECONDS = 0.2

Result = TypeVar("Result")


def done_aside(
    work: Callable[[], Result], name: str, tick: Callable[[], None], stopping: threading.Event
) -> Result | None:
    """Do it in a thread of its own, with `tick` called again and again; return or raise what it
    does. None if the service is to stop before its end.

    Broken off it is as if the driver had died: each of its commits is whole.
    """
    given: Future[Result] = Future()

    def run() -> None:
        try:
            given.set_result(work())
        except BaseException as error:
            given.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    while not wait([given], _TICK_SECONDS).done:
        tick()
        if stopping.is_set():
            return None
    return given.result()
