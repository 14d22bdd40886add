"""Stores whose files have times of a simulated clock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from lakesplice.model.moments import EpochMs
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Clock, Store


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


class StampedStore:
    """`Store` around any other, which remembers when each file was made through it."""

    def __init__(
        self, inner: Store, clock: Clock, prefix: str = "", stamps: dict[str, EpochMs] | None = None
    ) -> None:
        self._inner, self._clock, self._prefix = inner, clock, prefix
        self._stamps: dict[str, EpochMs] = {} if stamps is None else stamps

    @property
    def row_group_bytes(self) -> int:
        return self._inner.row_group_bytes

    def put_new(self, path: str, data: bytes) -> bool:
        """See `Store.put_new`."""
        created = self._inner.put_new(path, data)
        if created:
            self._stamps[self._prefix + path] = self._clock.now_ms()
        return created

    @contextmanager
    def writer(self, path: str) -> Iterator[pa.NativeFile]:
        """See `Store.writer`."""
        with self._inner.writer(path) as sink:
            yield sink
        self._stamps[self._prefix + path] = self._clock.now_ms()

    def modified_ms(self, path: str) -> EpochMs | None:
        """See `Store.modified_ms`."""
        modified_ms = self._inner.modified_ms(path)
        return None if modified_ms is None else self._stamps.get(self._prefix + path, modified_ms)

    def read(self, path: str) -> bytes:
        """See `Store.read`."""
        return self._inner.read(path)

    def open(self, path: str, tail_bytes: int = 0) -> pa.NativeFile:
        """See `Store.open`."""
        return self._inner.open(path, tail_bytes)

    def size(self, path: str) -> int | None:
        """See `Store.size`."""
        return self._inner.size(path)

    def list(self, prefix: str) -> Iterator[str]:
        """See `Store.list`."""
        return self._inner.list(prefix)

    def folders(self, folder: str = "") -> Sequence[str]:
        """See `Store.folders`."""
        return self._inner.folders(folder)

    def delete(self, path: str) -> None:
        """See `Store.delete`."""
        self._inner.delete(path)

    def within(self, folder: str) -> StampedStore:
        """See `Store.within`; the stamps are shared."""
        prefix = f"{self._prefix}{folder}/"
        return StampedStore(self._inner.within(folder), self._clock, prefix, self._stamps)
