"""Facts about the lake's store, by a probe that leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from lakesplice.apps.lake import require_lake
from lakesplice.config import Settings
from lakesplice.errors import LakespliceError
from lakesplice.model.moments import outside
from lakesplice.planning.diagnosis.finding import Area, Finding, counted
from lakesplice.planning.diagnosis.store import (
    DriverFacts,
    ProbeFacts,
    judge_driver,
    judge_store,
)
from lakesplice.storage.local import LocalStore
from lakesplice.storage.objects import ObjectStore
from lakesplice.storage.stores import AnyStore, open_store
from lakesplice.storage.system import SystemClock, SystemEntropy
from lakesplice.table.driver.status import newest_status
from lakesplice.table.protocol.layout import examination_path
from lakesplice.table.protocol.ports import Store

_WRITERS = 4
_BYTES = 4 << 20


class LakeExamination:
    """Examines the lake of a configuration. Requests to a bucket are retried for at most
    `timeout_seconds`.
    """

    def __init__(self, settings: Settings, timeout_seconds: float) -> None:
        self._settings = settings
        self._timeout = timeout_seconds
        self._clock, self._entropy = SystemClock(), SystemEntropy()

    @property
    def folder(self) -> Path | None:
        """The lake's folder; None if it is in a bucket."""
        store = self._store()
        return store.root if isinstance(store, LocalStore) else None

    def place(self) -> Iterator[Finding]:
        """Check that tables can be made there; `UsageError` or `StorageError` if not."""
        require_lake(self._store())
        return iter(())

    def probe(self) -> Iterator[Finding]:
        """Write, read and delete some files."""
        store = self._store()
        made = _outermost_missing(store)
        try:
            yield from judge_store(self._probed(store))
        finally:
            if made is not None:
                _remove_empty(made)

    def catalog(self) -> Iterator[Finding]:
        """Ask the Iceberg catalog for its namespaces. Imports pyiceberg."""
        from lakesplice.storage.iceberg.catalog import namespaces

        found = namespaces(self._settings.iceberg.catalog, self._store())
        yield Area("iceberg").ok("catalog", f"it answers, with {counted(len(found), 'namespace')}")

    def driver(self) -> Iterator[Finding]:
        """Report whether a driver has the lake."""
        yield judge_driver(self.driver_facts())

    def driver_facts(self) -> DriverFacts | None:
        """Return what the newest driver reports about itself; None if there never was one."""
        status = newest_status(self._store())
        if status is None:
            return None
        silent = max(0, self._clock.now_ms() - status.written_ms) / 1000
        return DriverFacts(status.generation, status.running, silent)

    def _store(self) -> AnyStore:
        lake = self._settings.lake
        store = open_store(lake.address, lake.options)
        if isinstance(store, ObjectStore):
            bucket = replace(store.bucket, timeout=self._timeout, patience=self._timeout)
            return ObjectStore(bucket, store.prefix)
        return store

    def _probed(self, store: Store) -> ProbeFacts:
        once, raced, large = (examination_path(self._entropy) for _ in range(3))
        try:
            before_ms = self._clock.now_ms()
            created = store.put_new(once, b"first")
            after_ms = self._clock.now_ms()
            again = store.put_new(once, b"second")
            kept = store.read(once) == b"first"
            written_ms = store.modified_ms(once)
            winners = _winners(store, raced)
            speed = self._speed(store, large)
        finally:
            for path in (once, raced, large):
                store.delete(path)
        skew = None if written_ms is None else outside(written_ms, before_ms, after_ms)
        return ProbeFacts(
            address=self._settings.lake.address,
            created=created,
            refused=not again and kept,
            winners=winners,
            writers=_WRITERS,
            bytes_per_second=speed,
            skew_seconds=skew,
        )

    def _speed(self, store: Store, path: str) -> float:
        # Random bytes, so that nothing on the way can compress them.
        data = self._entropy.bits(_BYTES * 8).to_bytes(_BYTES, "big")
        started = self._clock.monotonic()
        store.put_new(path, data)
        store.read(path)
        return 2 * _BYTES / max(self._clock.monotonic() - started, 1e-6)


def _winners(store: Store, path: str) -> int:
    """Let several writers create one name at once; return for how many of them the store reported
    success. Raises an error that isn't the store's.
    """
    together = threading.Barrier(_WRITERS)
    won: list[bool] = []
    failed: list[Exception] = []

    def take(number: int) -> None:
        together.wait()
        try:
            won.append(store.put_new(path, str(number).encode()))
        except LakespliceError:
            pass
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=partial(take, at), daemon=True) for at in range(_WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(won)


def _outermost_missing(store: AnyStore) -> Path | None:
    """The outermost folder that a probe will create; None if there is none."""
    if not isinstance(store, LocalStore):
        return None
    innermost = store.root / examination_path(SystemEntropy())
    missing = [path for path in innermost.parents if not path.exists()]
    return missing[-1] if missing else None


def _remove_empty(folder: Path) -> None:
    """Remove a folder and its subfolders, unless something else was put into them meanwhile."""
    for path in (*sorted(folder.rglob("*"), reverse=True), folder):
        with suppress(OSError):
            path.rmdir()
