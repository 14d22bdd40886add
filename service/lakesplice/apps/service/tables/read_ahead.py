"""Reads the tables of the driver before while Spark starts, so that hundreds of them are opened at
once.
"""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress

from lakesplice.errors import LakespliceError
from lakesplice.model.names import TableName
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.ports import Store
from lakesplice.table.protocol.snapshot import Snapshot, find_snapshot

_THREADS = 8


class TablesReadAhead:
    """The newest version of each table that the lake's last driver reported, read in several
    threads.

    Nothing depends on it: a table that it hasn't read, or can't read, is read when it is opened.
    What is committed meanwhile is read then, too. Safe from any thread.
    """

    def __init__(self, lake: Store) -> None:
        self._lake = lake
        self._reads: dict[TableName, Future[Snapshot | None]] = {}
        self._pool = ThreadPoolExecutor(_THREADS, "lakesplice-read-ahead")
        self._lock, self._closed = threading.Lock(), False

    def read(self) -> None:
        """Read the tables; blocks until they are read, or taken, or `close` is called."""
        try:
            status = newest_status(self._lake)
        except LakespliceError:
            return  # a store that fails is reported where tables are opened
        reported = () if status is None else status.topics
        for text in sorted({topic.table for topic in reported if topic.table}):
            database, _, table = text.partition(".")
            name = TableName(database, table)
            with self._lock:
                if self._closed:
                    return
                store = self._lake.within(name.path)
                self._reads[name] = self._pool.submit(find_snapshot, store)
        for begun in list(self._reads.values()):
            with suppress(CancelledError):
                begun.exception()

    def take(self, name: TableName) -> Snapshot | None:
        """Return a version of the table, the newest when it was read; None if none was. Blocks
        only while this table is being read.
        """
        read = self._reads.pop(name, None)
        if read is None or read.cancel() or read.exception() is not None:
            return None
        return read.result()

    def close(self) -> None:
        """Read no further table, and forget those that nobody took."""
        with self._lock:
            self._closed = True
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._reads = {}
