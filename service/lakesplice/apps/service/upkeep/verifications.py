"""The service's comparisons: each table with its database at the interval `verify.every`, one after
the other in a separate thread, so that compaction never waits for a database.

The lake has the time of each table's last comparison (`last_results.py`) and the progress of an
interrupted one, so a restarted service continues where it stopped.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from lakesplice.apps.service.activity import VERIFICATION, Work
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import PausesByName
from lakesplice.apps.service.tables import ServiceTable, ServiceTables
from lakesplice.apps.service.threads import repeat
from lakesplice.apps.table_commands.work import VERIFY, verified_arguments
from lakesplice.apps.verifying.lake_verification import SourceAccess, verify_topic
from lakesplice.apps.verifying.report import ComparisonOutcome, TableReport
from lakesplice.apps.verifying.verification import VerificationRequest
from lakesplice.errors import FencedError, LakespliceError, UsageError
from lakesplice.model.moments import EpochMs
from lakesplice.model.names import TableName
from lakesplice.model.progress.verified import LastResult
from lakesplice.storage.stores import open_store
from lakesplice.table.driver.last_results import keep_result, last_results, worst_by_folder
from lakesplice.table.protocol.intents import Note
from lakesplice.table.protocol.ports import Clock, Progress
from lakesplice.telemetry import catalogue as metric

_POLL_SECONDS = 60.0
_JOIN_SECONDS = 1.0
_PAUSES_SECONDS = (60.0, 300.0, 900.0, 3600.0)
_BY = "verify.every"

Verify = Callable[[TableName, str, Clock, Progress], TableReport]


class Stopped(BaseException):
    """Raised if the service must stop: it interrupts the present comparison, whatever handles
    errors there.
    """


class Verifications:
    """Compares tables. `start` and `stop` are called once each, `turn` by one thread at a time.

    `verify` compares a table with the database of one of its topics; it gets a clock and a progress
    watcher that raise `Stopped` once the service must stop.
    """

    def __init__(self, driver: Driver, tables: ServiceTables, verify: Verify | None = None) -> None:
        self._driver = driver
        self._tables = tables
        self._verify = verify or self._of_database
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="verifier", daemon=True)
        self._pauses = PausesByName(driver.clock, _PAUSES_SECONDS)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End the thread within a statement or a part of a scan; call `meanwhile` until then."""
        self._stopping.set()
        while self._thread.is_alive():
            meanwhile()
            self._thread.join(_JOIN_SECONDS)

    def turn(self) -> bool:
        """Compare the table whose last comparison is the oldest; False if none is due. Blocks."""
        results = last_results(self._driver.lake)
        self._show(results)
        due = self._due_table({(one.folder, one.topic): one.ended_ms for one in results})
        if due is None:
            return False
        work = Work(str(due.name), VERIFICATION, self._driver.clock.now_ms())
        with self._driver.activity.working(work):
            self._compare(due)
        self._show(last_results(self._driver.lake))
        return True

    def _watch(self) -> None:
        with suppress(Stopped):
            unexpected = partial(self._driver.errors.report, "verifier")
            repeat(self.turn, _POLL_SECONDS, self._stopping, unexpected)

    def _due_table(self, ended: Mapping[tuple[str, str], EpochMs]) -> ServiceTable | None:
        every, now_ms = self._driver.settings.verify.every, self._driver.clock.now_ms()
        if every is None:
            return None
        moments = {
            (ended.get((table.name.path, table.topic), 0), table.topic): table
            for table in self._tables.of_topics()
            if self._is_comparable(table)
        }
        oldest = min(moments, default=None)
        if oldest is None or now_ms - oldest[0] < every * 1000:
            return None
        return moments[oldest]

    def _is_comparable(self, table: ServiceTable) -> bool:
        """Whether a table can be compared: a parked one doesn't follow its source, so differences
        would stay unsettled.
        """
        has_rows = table.snapshot is not None and table.topic in table.manifest.sources
        return has_rows and table.parked is None and not self._pauses.is_on(table.topic)

    def _compare(self, table: ServiceTable) -> None:
        driver, name = self._driver, str(table.name)
        clock = _StoppingClock(driver.clock, self._stopping)
        watcher = _Watcher(clock, driver.settings.verify.rows_per_second)
        try:
            report = self._verify(table.name, table.topic, clock, watcher)
            if report.outcome is not ComparisonOutcome.NOT_COMPARED:
                self._note(table, report)
        except FencedError:
            raise
        except UsageError as error:
            reason = str(error)
            report = TableReport(
                name, ComparisonOutcome.NOT_COMPARED, reason, folder=table.name.path
            )
            keep_result(driver.lake, report.result(table.topic, driver.clock.now_ms()))
        except Exception as error:  # the others are compared meanwhile
            seconds = self._pauses.begin(table.topic, str(error))
            driver.metrics.add(metric.VERIFICATIONS, outcome=metric.VERIFICATION_FAILED)
            driver.log.warning(
                "verification-failed",
                table=name,
                topic=table.topic,
                error=str(error),
                retry_seconds=seconds,
                exc_info=not isinstance(error, LakespliceError),
            )
            return
        self._pauses.end(table.topic)
        if report.outcome is ComparisonOutcome.NOT_COMPARED:
            driver.metrics.add(metric.VERIFICATIONS, outcome=report.outcome.value)
        driver.log.info(
            "verified",
            table=name,
            topic=table.topic,
            outcome=report.outcome.value,
            reason=report.reason,
            rows=report.rows_at_source,
            different=len(report.differences),
            unsettled=report.unsettled + report.unexamined,
            seconds=report.seconds,
        )

    def _note(self, table: ServiceTable, report: TableReport) -> None:
        """Record the result in the table's history, as for the command."""
        said = verified_arguments(report.as_arguments)
        intent = Note(self._driver.generation.number, VERIFY, said["counts"])
        parameters = {**said["texts"], "by": _BY}
        table.commit_with_retries(lambda: intent, "the result isn't in the history", parameters)

    def _show(self, results: tuple[LastResult, ...]) -> None:
        worst = worst_by_folder(results)
        self._driver.activity.show_verified(worst)
        for table in self._tables:
            if (known := worst.get(table.name.path)) is not None:
                moment, name = known.ended_ms / 1000, str(table.name)
                self._driver.metrics.since(metric.VERIFICATION_AGE, moment, table=name)

    def _of_database(
        self, name: TableName, topic: str, clock: Clock, progress: Progress
    ) -> TableReport:
        settings = self._driver.settings
        sources = SourceAccess(settings, os.environ.get("MYSQL_PWD", ""), clock=clock)
        request = VerificationRequest(quick=settings.verify.quick, share=settings.verify.sample)
        lake = open_store(settings.lake.address, settings.lake.options)
        return verify_topic(lake, sources, name, topic, request, progress)


class _StoppingClock:
    """A clock whose waits end once the service must stop."""

    def __init__(self, clock: Clock, stopping: threading.Event) -> None:
        self._clock, self.stopping = clock, stopping

    def now_ms(self) -> EpochMs:
        return self._clock.now_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wait(self, seconds: float) -> None:
        self.require_on()
        self._clock.wait(seconds)
        self.require_on()

    def require_on(self) -> None:
        if self.stopping.is_set():
            raise Stopped


class _Watcher:
    """Limits the rate at which rows are read, from the lake as well as from the database."""

    def __init__(self, clock: _StoppingClock, rows_per_second: float) -> None:
        self._clock, self._rate = clock, rows_per_second
        self._begun, self._rows = clock.monotonic(), 0

    def expect(self, units: int) -> None:
        """See `Progress`."""

    def advance(self, units: int) -> None:
        """See `Progress`; but it blocks."""
        self._rows += units
        ahead = self._begun + self._rows / self._rate - self._clock.monotonic()
        self._clock.wait(max(0.0, ahead))
