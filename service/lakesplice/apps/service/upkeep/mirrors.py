"""The service's Iceberg mirrors, in a thread of their own: however long a catalog takes to answer,
neither ingest nor compaction waits for it. What a mirror lacks is found by comparison, so a service
that was restarted catches up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import RetryPauses
from lakesplice.apps.service.tables import DriverTables, ServiceTable
from lakesplice.apps.service.threads import repeat
from lakesplice.errors import FencedError, LakespliceError
from lakesplice.model.driver_status import MirrorStatus
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import EpochMs, earlier
from lakesplice.planning.upkeep.retention import ORPHAN_SECONDS_MIN
from lakesplice.secrets import masked_text
from lakesplice.storage.stores import open_store
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.table.upkeep.mirroring.mirror import Mirror, MirrorResult
from lakesplice.table.upkeep.mirroring.mirror_catalog import MirrorCatalog
from lakesplice.table.upkeep.mirroring.mirror_floor import delete_incarnations, floors
from lakesplice.telemetry import catalogue as metric

_POLL_SECONDS = 1.0
# A catalog that doesn't answer must not keep the service from ending.
_JOIN_SECONDS = 20.0
_PAUSES_SECONDS = (5.0, 15.0, 30.0, 60.0, 300.0)

Open = Callable[[ServiceTable], MirrorCatalog]


@dataclass
class _Progress:
    """What is known of a table's mirror, in this process: `shown` is what the mirror has, if that
    is known, and `shown_version` the newest version that has the same. `lacking_since` is when
    something was first lacking, in seconds since 1970.
    """

    rest: RetryPauses
    shown: Manifest | None = None
    shown_version: int | None = None
    lacking_since: float | None = None
    next_commit: float = 0.0
    next_expiry: float = 0.0
    is_ended: bool = False

    def has(self, manifest: Manifest) -> bool:
        """Whether the mirror is known to have everything of a version."""
        shown = self.shown
        if shown is None or shown is manifest:
            return shown is not None
        same = shown.files.keys() == manifest.files.keys()
        return same and shown.schema.stores_like(manifest.schema)

    def status(self) -> MirrorStatus:
        """What people see of it."""
        since = self.lacking_since
        return MirrorStatus(
            self.shown_version,
            None if since is None else EpochMs(round(since * 1000)),
            masked_text(self.rest.reason),
            self.rest.retry_ms,
        )


class Mirrors:
    """Lets mirrors follow. `start` and `stop` are called once each, the rest from any thread.

    `open_catalog` returns the catalog's side of a table's mirror.
    """

    def __init__(
        self, driver: Driver, tables: DriverTables, open_catalog: Open | None = None
    ) -> None:
        self._driver = driver
        self._tables = tables
        self._open = open_catalog or self._of_settings
        self._progress: dict[str, _Progress] = {}
        self._stopping = threading.Event()
        self._working = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="mirrors", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End the thread, but wait for a catalog's answer only for some seconds; call `meanwhile`
        until then.
        """
        self._stopping.set()
        left = _JOIN_SECONDS
        while self._thread.is_alive() and left > 0:
            meanwhile()
            self._thread.join(_POLL_SECONDS)
            left -= _POLL_SECONDS

    def finish(self) -> None:
        """Bring every mirror up to date once more, in the calling thread; failures are logged."""
        for progress in list(self._progress.values()):
            progress.next_commit = 0.0
        self.turn()

    def turn(self) -> bool:
        """See to every mirror that is due; False if none was. Blocks on the catalog, but not for
        long if another thread waits for it.
        """
        if not self._working.acquire(timeout=_JOIN_SECONDS):
            return False
        try:
            working = [table for table in self._tables if self._can_work_on(table)]
            for table in working:
                self._note(table)
            due = [table for table in working if self._is_due(table)]
            for table in due:
                self._see_to(table)
            return bool(due)
        finally:
            self._working.release()

    def _watch(self) -> None:
        unexpected = partial(self._driver.errors.report, "mirrors")
        repeat(self._pausing_turn, _POLL_SECONDS, self._stopping, unexpected)

    def _pausing_turn(self) -> bool:
        self.turn()
        return False

    def _progress_of(self, table: ServiceTable) -> _Progress:
        pauses = RetryPauses(self._driver.clock, _PAUSES_SECONDS)
        return self._progress.setdefault(str(table.name), _Progress(pauses))

    def _can_work_on(self, table: ServiceTable) -> bool:
        resting = self._progress_of(table).rest.is_on
        return table.snapshot is not None and not resting and not self._stopping.is_set()

    def _note(self, table: ServiceTable) -> None:
        """Find out whether the mirror lacks something, and show it."""
        driver, progress, name = self._driver, self._progress_of(table), str(table.name)
        if not table.wants_mirror:
            driver.activity.show_mirror(name, None)
            return
        assert table.snapshot is not None
        if progress.has(table.snapshot.manifest):
            progress.shown_version, progress.lacking_since = table.snapshot.version, None
        elif progress.lacking_since is None:
            progress.lacking_since = driver.clock.now_ms() / 1000
        driver.activity.show_mirror(name, progress.status())
        driver.metrics.since(metric.ICEBERG_LAG, progress.lacking_since, table=name)

    def _is_due(self, table: ServiceTable) -> bool:
        progress, now = self._progress_of(table), self._driver.clock.monotonic()
        if not table.wants_mirror:
            return not progress.is_ended
        lacks = progress.lacking_since is not None
        return (lacks and now >= progress.next_commit) or now >= progress.next_expiry

    def _see_to(self, table: ServiceTable) -> None:
        driver, progress, name = self._driver, self._progress_of(table), str(table.name)
        assert table.snapshot is not None
        driver.generation.check()
        try:
            if table.wants_mirror:
                with driver.metrics.timed(metric.ICEBERG_SECONDS):
                    self._follow(table, table.snapshot, progress)
            else:
                self._end(table)
                progress.is_ended = True
        except FencedError:
            raise
        except Exception as error:  # whatever a catalog answers, the other mirrors follow
            _connect_again()
            driver.metrics.add(metric.ICEBERG_COMMITS, table=name, result=metric.MIRROR_FAILED)
            driver.log.error(
                "iceberg-failed",
                table=name,
                error=str(error),
                retry_seconds=progress.rest.begin(str(error)),
                exc_info=not isinstance(error, LakespliceError),
            )
        else:
            progress.rest.end()
        if table.wants_mirror:
            driver.activity.show_mirror(name, progress.status())

    def _follow(self, table: ServiceTable, snapshot: Snapshot, progress: _Progress) -> None:
        driver, settings = self._driver, self._driver.settings
        now = driver.clock.monotonic()
        progress.next_commit = now + settings.iceberg.every
        mirror = Mirror(table.store, self._open(table), driver.entropy)
        done = mirror.follow(snapshot)
        if done.is_current:
            progress.shown, progress.lacking_since = snapshot.manifest, None
            progress.shown_version = snapshot.version
            driver.metrics.since(metric.ICEBERG_LAG, None, table=str(table.name))
        self._report(table, snapshot, done)
        if now >= progress.next_expiry:
            now_ms = driver.deletion_clock.now_ms()
            mirror.expire(
                snapshot,
                earlier(now_ms, settings.retention(table.origin)),
                earlier(now_ms, ORPHAN_SECONDS_MIN),
            )
            progress.next_expiry = now + settings.vacuum.every

    def _report(self, table: ServiceTable, snapshot: Snapshot, done: MirrorResult) -> None:
        driver, name = self._driver, str(table.name)
        if done.begun:
            driver.metrics.add(metric.ICEBERG_COMMITS, table=name, result=metric.MIRROR_BEGUN)
            driver.log.info("iceberg-begun", table=name, reason=done.begun, files=done.added)
        elif done.added or done.removed:
            driver.metrics.add(metric.ICEBERG_COMMITS, table=name, result=metric.MIRROR_COMMITTED)
            driver.log.info(
                "iceberg-committed",
                table=name,
                version=snapshot.version,
                added=done.added,
                removed=done.removed,
            )

    def _end(self, table: ServiceTable) -> None:
        """End a mirror that the settings no longer ask for. Without a catalog only its files go."""
        if not floors(table.store):
            return
        if self._driver.settings.iceberg.catalog:
            Mirror(table.store, self._open(table), self._driver.entropy).end()
        else:
            delete_incarnations(table.store, None)
        self._driver.log.info("iceberg-ended", table=str(table.name))

    def _of_settings(self, table: ServiceTable) -> MirrorCatalog:
        # pyiceberg takes a while to import, and most services have no mirror.
        from lakesplice.storage.iceberg.catalog import open_mirror

        settings = self._driver.settings
        store = open_store(settings.lake.address, settings.lake.options).within(table.name.path)
        return open_mirror(settings.iceberg.catalog, store, table.name, settings.iceberg.namespace)


def _connect_again() -> None:
    from lakesplice.storage.iceberg.catalog import forget_catalogs

    forget_catalogs()
