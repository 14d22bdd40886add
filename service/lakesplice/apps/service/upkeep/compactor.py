"""The compactor: threads that watch all tables and merge waiting changes into base files.

Ingest continues meanwhile. A thread chooses the due table whose changes have waited the longest,
rewrites its files, larger ones in Spark's tasks, and commits. If the commit loses its race, the
next turn plans the table again (`_splice`). The same threads merge runs of the row index and keep
the logs short.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakesplice.apps.service.activity import Failure, Work
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import PausesByName
from lakesplice.apps.service.tables import DriverTables, ServiceTable
from lakesplice.apps.service.threads import Slots, repeat
from lakesplice.apps.service.upkeep.small_rewrites import rewrite_by_size
from lakesplice.apps.service.upkeep.table_memory import ComputedOnce
from lakesplice.apps.service.upkeep.table_upkeep import Upkeep
from lakesplice.errors import CorruptFileError, FencedError, LakespliceError
from lakesplice.formats.parquet import ROWS_PER_PAGE
from lakesplice.model.driver_status import MissingChanges
from lakesplice.model.manifest import Manifest
from lakesplice.model.moments import later
from lakesplice.model.parking import ParkCode, ParkReason
from lakesplice.planning.upkeep.compaction import (
    CompactionPolicy,
    Pressure,
    backlog,
    ingest_must_wait,
    next_tables,
    pressure,
    tasks,
    work,
)
from lakesplice.spark.jobs.rewrites import RewriteTask
from lakesplice.spark.session import cores
from lakesplice.storage.copying import ScratchFile
from lakesplice.storage.stores import open_sink
from lakesplice.table.files.page_rewriter import FALLBACK, WHOLE, best_rewriter
from lakesplice.table.protocol.commit import Committed
from lakesplice.table.protocol.intents import Splice
from lakesplice.table.upkeep.compact import Compacted, splice_of
from lakesplice.telemetry import catalogue as metric

_TASK_BYTES = 256 * 2**20
_HOLD_SECONDS = 0.1
_JOIN_SECONDS = 1.0
_FINISH_SECONDS = 0.05
# A table whose compaction failed is left out for a while, so that it can't keep the others waiting;
# longer each time, since each attempt leaves files that no version names.
_PAUSES_SECONDS = (30.0, 60.0, 120.0, 300.0)


class Compactor:
    """Compacts what is due. `start` and `stop` are called once each; the other methods may be
    called from any thread. `rewrite` runs the rewrites of one table's files; errors as in
    `rewrite_by_size`.
    """

    def __init__(
        self,
        driver: Driver,
        tables: DriverTables,
        session: SparkSession,
        rewrite: Callable[[SparkSession, Sequence[RewriteTask]], list[Compacted]] = rewrite_by_size,
    ) -> None:
        settings = driver.settings.compaction
        self._driver = driver
        self._tables = tables
        self._session = session
        self._run_rewrites = rewrite
        self._policy = CompactionPolicy(
            deltas_max=settings.deltas_max,
            bytes_max=settings.bytes_max,
            age_seconds_max=settings.age_max,
            ratio_max=settings.ratio_max,
            changes_per_page_min=settings.changes_per_page_min,
            rows_per_page=ROWS_PER_PAGE,
        ).due_by(settings.back_pressure_deltas)
        self._upkeep = Upkeep(driver, session)
        self._slots = Slots(self._tasks)
        self._lock = threading.Lock()
        self._running: set[str] = set()
        self._pauses = PausesByName(driver.clock, _PAUSES_SECONDS)
        self._backlogs = ComputedOnce(lambda _, manifest: backlog(manifest, ROWS_PER_PAGE))
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        for number in range(self._driver.settings.compaction.threads):
            thread = threading.Thread(target=self._watch, name=f"compactor-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End the threads; a running rewrite is finished, including its commit.

        `meanwhile` is called every second until then.
        """
        self._stopping.set()
        for thread in self._threads:
            while thread.is_alive():
                meanwhile()
                thread.join(_JOIN_SECONDS)

    def finish(self) -> None:
        """Compact until nothing is due any more, also in the calling thread.

        A table that another thread works on may be due again when that ends.
        """
        while self._turn() or self._has_work():
            self._stopping.wait(_FINISH_SECONDS)

    def hold_back(self, tables: Sequence[ServiceTable]) -> bool:
        """Block while one of the tables has so many waiting deltas that its ingest must wait;
        return whether it had to block.
        """
        waited = False
        most = self._driver.settings.compaction.back_pressure_deltas
        for table in tables:
            held = False
            while ingest_must_wait(self._backlogs.of(table), most):
                if not held:
                    self._driver.log.warning("ingest-waits", table=str(table.name), deltas_max=most)
                held = waited = True
                if self._stopping.wait(_HOLD_SECONDS) or self._is_paused(table):
                    break
        return waited

    def _watch(self) -> None:
        seconds = self._driver.settings.compaction.poll_seconds
        repeat(
            self._turn, seconds, self._stopping, partial(self._driver.errors.report, "compactor")
        )

    def _turn(self) -> bool:
        """Compact the table that is due the most and do its upkeep; False if nothing was due."""
        table = self._take()
        if table is None:
            return False
        try:
            if self._pressure(table).score >= 1:
                self._compact(table)
            if self._upkeep.is_due(table):
                upkeep = Work(str(table.name), "upkeep", self._driver.clock.now_ms())
                with self._driver.activity.working(upkeep):
                    self._upkeep.see_to(table)
            return True
        finally:
            with self._lock:
                self._running.discard(str(table.name))

    def _take(self) -> ServiceTable | None:
        with self._lock:
            table = self._next()
            if table is not None:
                self._running.add(str(table.name))
            return table

    def _has_work(self) -> bool:
        with self._lock:
            return bool(self._running) or self._next() is not None

    def _next(self) -> ServiceTable | None:
        """Return the table to compact or maintain next, if any; the caller holds the lock."""
        free = {
            str(table.name): table
            for table in self._tables
            if table.snapshot is not None and not table.is_unwritable and not self._is_paused(table)
        }
        pressures = {name: self._pressure(table) for name, table in free.items()}
        cap = len(self._running) + 1
        chosen = next_tables(pressures, self._running, cap) or tuple(
            name
            for name, table in free.items()
            if name not in self._running and self._upkeep.is_due(table)
        )
        return free[chosen[0]] if chosen else None

    def _pressure(self, table: ServiceTable) -> Pressure:
        found = pressure(self._backlogs.of(table), self._policy, self._driver.clock.now_ms())
        if found.score and table.parked is not None and table.parked.code is ParkCode.CORRUPT:
            return Pressure(0.0, 0.0, 0.0, 0.0, 0.0)
        return found

    def _is_paused(self, table: ServiceTable) -> bool:
        return self._pauses.is_on(str(table.name))

    def _compact(self, table: ServiceTable) -> None:
        driver, name, waiting = self._driver, str(table.name), self._backlogs.of(table)
        now_ms = driver.clock.now_ms()
        work = Work(name, "compaction", now_ms, waiting.changes, waiting.bytes)
        try:
            with (
                driver.activity.working(work),
                driver.metrics.timed(metric.COMPACTION_SECONDS),
                driver.tracing.span("compaction", table=name, changes=waiting.changes),
            ):
                committed = self._splice(table)
        except FencedError:
            raise
        except CorruptFileError as error:
            self._pause(table, error)
            table.park(ParkReason(ParkCode.CORRUPT, str(error), table.source.topic))
            return
        except (LakespliceError, PySparkException) as error:
            self._pause(table, error)
            return
        self._pauses.end(name)
        driver.activity.compaction_ended(name)
        result = "committed" if committed else "conflict"
        driver.metrics.add(metric.COMPACTIONS, table=name, result=result)

    def _tasks(self) -> int:
        """How many rewrites may run at once; one core is left to ingest if there are several."""
        most = self._driver.settings.compaction.tasks_max
        return min(most, max(1, cores(self._session) - 1))

    def _splice(self, table: ServiceTable) -> bool:
        """Compact a table once; False if another commit won the race. By then the table's newest
        version is read, and the next turn plans the table again.
        """
        planned_on, manifest = table.version, table.manifest
        files = work(manifest)
        shares = tasks(files, _TASK_BYTES, self._tasks())
        done = self._rewrite(table, manifest, shares)
        self._driver.kill_point("after-rewrite")
        intent = splice_of(self._driver.generation.number, planned_on, done)
        committed = isinstance(table.commit(intent), Committed)
        if committed:
            self._count(table, intent)
        return committed

    def _rewrite(
        self, table: ServiceTable, manifest: Manifest, shares: Sequence[tuple[str, ...]]
    ) -> list[Compacted]:
        rewrite = [
            RewriteTask(
                table.store,
                manifest,
                paths,
                best_rewriter(open_sink, open_scratch=ScratchFile),
                self._driver.entropy,
            )
            for paths in shares
        ]
        with self._slots.taken(len(rewrite)):
            return self._run_rewrites(self._session, rewrite)

    def _count(self, table: ServiceTable, intent: Splice) -> None:
        metrics, name, counts = self._driver.metrics, str(table.name), intent.counts
        metrics.add(metric.STALE_CHANGES, counts.get("stale", 0), table=name)
        unlinked = counts.get("unlinked", 0)
        metrics.add(metric.UNLINKED_CHANGES, unlinked, table=name)
        if unlinked:
            found = MissingChanges(unlinked, self._driver.clock.now_ms())
            self._driver.activity.add_missing_changes(name, found)
            self._driver.log.warning("changes-missing", table=name, changes=unlinked)
        metrics.add(metric.SPLICED_PAGES_EQUAL, counts.get("pages_equal", 0))
        for direction in ("read", "written"):
            count = counts.get(f"bytes_{direction}", 0)
            metrics.add(metric.COMPACTION_BYTES, count, direction=direction)
        for how in ("copied", "encoded"):
            pages, size = counts.get(f"pages_{how}", 0), counts.get(f"bytes_{how}", 0)
            metrics.add(metric.SPLICED_PAGES, pages, how=how)
            metrics.add(metric.SPLICED_BYTES, size, table=name, how=how)
        for what, prefix in (("file", FALLBACK), ("column", WHOLE)):
            for key, count in counts.items():
                reason = key.removeprefix(prefix)
                if reason != key:
                    metrics.add(
                        metric.SPLICE_FALLBACKS, count, table=name, what=what, reason=reason
                    )
        self._driver.log.info(
            "compacted",
            table=name,
            version=table.version,
            files=intent.files_written,
            changes=counts.get("changes", 0),
        )

    def _pause(self, table: ServiceTable, error: Exception) -> None:
        driver, name, reason = self._driver, str(table.name), str(error)
        seconds = self._pauses.begin(name, reason)
        retry_ms = later(driver.clock.now_ms(), seconds)
        driver.activity.compaction_failed(name, Failure(reason, retry_ms))
        driver.metrics.add(metric.COMPACTIONS, table=name, result="failed")
        driver.log.error("compaction-failed", table=name, error=reason)
