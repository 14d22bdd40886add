"""Reads a lake's tables while Spark starts, so that a driver of hundreds of tables opens them at
once.
"""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress

from lakesplice.model.names import TableName
from lakesplice.storage.stores import AnyStore
from lakesplice.table.protocol.snapshot import Snapshot, find_snapshot

_THREADS = 8


class TablesReadAhead:
    """The newest version of each table in a lake, read in several threads.

    Nothing depends on it: a table that it hasn't read, or can't read, is read when it is opened.
    What is committed meanwhile is read then, too. Safe from any thread.
    """

    def __init__(self, lake: AnyStore) -> None:
        self._lake = lake
        self._reads: dict[str, Future[Snapshot | None]] = {}
        self._pool = ThreadPoolExecutor(_THREADS, "lakesplice-read-ahead")
        self._lock, self._closed = threading.Lock(), False

    def read(self) -> None:
        """Read all tables; blocks until they are read, or taken, or `close` is called. Raises
        `StorageError` if the lake can't be listed.
        """
        for database in self._lake.folders():
            for table in self._lake.folders(database):
                path = f"{database}/{table}"
                with self._lock:
                    if self._closed:
                        return
                    self._reads[path] = self._pool.submit(find_snapshot, self._lake.within(path))
        for begun in list(self._reads.values()):
            with suppress(CancelledError):
                begun.exception()

    def take(self, name: TableName) -> Snapshot | None:
        """Return a version of the table, the newest when it was read; None if none was. Blocks
        only while this table is being read.
        """
        read = self._reads.pop(name.path, None)
        if read is None or read.cancel() or read.exception() is not None:
            return None
        return read.result()

    def close(self) -> None:
        """Read no further table, and forget those that nobody took."""
        with self._lock:
            self._closed = True
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._reads = {}
