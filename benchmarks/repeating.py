"""Work that another thread repeats while a `with` block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def repeating(
    work: Callable[[], object],
    pause_seconds: float,
    ends_with: type[Exception] | tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Repeat the work in another thread, with pauses before and between, until the block ends.

    An error of the work ends the repetitions. It is raised at the end of the block, unless it is
    one of `ends_with`.
    """
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(pause_seconds):
            try:
                work()
            except ends_with:
                return

    with ThreadPoolExecutor(1) as thread:
        repeated = thread.submit(repeat)
        try:
            yield
        finally:
            over.set()
    repeated.result()
