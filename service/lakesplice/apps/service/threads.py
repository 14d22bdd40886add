"""What the service's threads have in common: an error in one of them is never silent, the main loop
continues to report that it is alive while long work runs in another thread, and compaction tasks
that run at the same time are limited.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from lakesplice.errors import FencedError
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.registry import Metrics

_TICK_SECONDS = 0.2

Result = TypeVar("Result")


class ThreadErrors:
    """Logs and counts errors that nobody expected in threads; any thread may call it."""

    def __init__(self, metrics: Metrics, log: Any) -> None:
        self._metrics = metrics
        self._log = log

    def report(self, thread: str, error: BaseException) -> None:
        """Report an error in a thread, by its name in `THREAD_ERRORS`."""
        self._metrics.add(metric.THREAD_ERRORS, thread=thread)
        self._log.error("thread-failed", thread=thread, error=error, exc_info=error)

    def report_unhandled(self, failed: threading.ExceptHookArgs) -> None:
        """Report the end of a thread that handled no error, as `threading.excepthook`."""
        if failed.exc_value is not None:
            self.report("other", failed.exc_value)


def run_beside(
    work: Callable[[], object], name: str, errors: ThreadErrors, over: threading.Event
) -> threading.Thread:
    """Run work in a thread of its own whose failure does no lasting harm; it is reported unless
    `over` is set: without the rest of the service it can't succeed.
    """

    def run() -> None:
        try:
            work()
        except Exception as error:
            if not over.is_set():
                errors.report(name, error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def repeat(
    turn: Callable[[], bool],
    pause_seconds: float,
    stopping: threading.Event,
    unexpected: Callable[[Exception], None],
) -> None:
    """Call `turn` until `stopping` is set, with a pause after each turn that returns False.

    An error is passed to `unexpected`, and the next turn follows after the pause: if the thread
    ended instead, nobody would do its work. Only a `FencedError` ends it: the main loop meets the
    same generation and ends the service.
    """
    while not stopping.is_set():
        try:
            idle = not turn()
        except FencedError:
            return
        except Exception as error:
            unexpected(error)
            idle = True
        if idle:
            stopping.wait(pause_seconds)


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
        """Take `count` slots while the block runs; blocks until that many are free.

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
