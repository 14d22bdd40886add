"""Limits how many compaction tasks run at the same time, by the cores of the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
