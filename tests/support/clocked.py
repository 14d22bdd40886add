"""A store on the local disk whose files are as old as a simulated clock says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from lakesplice.storage.local import LocalStore
from lakesplice.table.ports import Clock


class ClockedStore(LocalStore):
    """`LocalStore` that gives each file it makes the clock's time."""

    def __init__(self, root: str | Path, clock: Clock, _outermost: Path | None = None) -> None:
        super().__init__(root, _outermost)
        self._clock = clock

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`."""
        created = super().put_new(path, data)
        if created:
            self._stamp(path)
        return created

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        """See `Store.writer`."""
        with super().writer(path) as sink:
            yield sink
        self._stamp(path)

    def within(self, folder: str) -> ClockedStore:
        """See `Store.within`."""
        return ClockedStore(self._resolve(folder), self._clock, self._outermost)

    def _stamp(self, path: str) -> None:
        seconds = self._clock.now_ms() / 1000
        os.utime(self._resolve(path), (seconds, seconds))
