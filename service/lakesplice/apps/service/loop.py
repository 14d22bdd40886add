"""The main loop: queries, one after another, each from the offsets in the manifests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from lakesplice.apps.service.batching.restart import RestartReason
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.requests import Requests
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.service.sources.group_offsets import GroupOffsets
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.topic_reading import TICK_SECONDS, TopicReading
from lakesplice.errors import CredentialsRefused, RetryableError
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.health import Health

_REQUESTS_SECONDS = 5.0
_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class QueryLoop:
    """Keeps queries running until `stopping` is set; used by one thread.

    The queries of all `readings` restart together. `group` has other tools see how far tables are.
    """

    def __init__(
        self,
        driver: Driver,
        session: SparkSession,
        readings: Sequence[TopicReading],
        health: Health,
        stopping: threading.Event,
        reporter: StatusReporter,
        group: GroupOffsets | None = None,
    ) -> None:
        self._driver = driver
        self._readings = tuple(readings)
        self._health = health
        self._stopping = stopping
        self._reporter = reporter
        self._group = group
        shadows = ShadowFeed(session, driver.settings, driver.lake, driver.entropy, driver.schemas)
        sources = [reading.sources for reading in readings]
        self._requests = Requests(driver, sources, stopping, self._tick, shadows)
        self._failures = 0

    def run(self, on_start: Callable[[], None], *, once: bool) -> None:
        """Run queries until asked to stop; with `once` until they have read all present records.

        `on_start` is called when the first query reads, or when there is nothing to read. Raises
        `FencedError`; an error that may pass only delays the next queries.
        """
        # If no batch ever ends, that is told as well.
        self._driver.caught_up()
        while not self._stopping.is_set():
            self._tick()
            try:
                # First: they need no broker, and change where tables continue.
                self._requests.execute()
                for reading in self._readings:
                    reading.look(self._tick, self._stopping)
                if self._follow_group():
                    continue  # what it asks for comes before anything is read
                for reading in self._readings:
                    reading.start(once=once)
                self._health.reached("query")
                self._driver.activity.query_runs()
                on_start()
                reads = any(reading.has_topics for reading in self._readings)
                finished = self._watch() if reads else self._idle()
            except RetryableError as error:
                self._back_off(error, once)
                continue
            self._failures = 0
            if self._follow_group():
                continue
            if once and finished:
                if not any(
                    one.sources.any_rests() or one.drops.any_due() for one in self._readings
                ):
                    return
                self._stopping.wait(TICK_SECONDS)

    def drain(self, seconds: float) -> None:
        """Finish the running batches within `seconds`, or drop them whole. All queries are stopped,
        even if one of them doesn't stop, which is logged.
        """
        until = self._driver.clock.monotonic() + seconds
        for reading in self._readings:
            reading.end_batches()
        for reading in self._readings:
            for lane in self._lanes_at_work(reading, until):
                self._driver.log.warning("batch-dropped", lane=lane, stop_timeout=seconds)
        self._end_queries()
        self._follow_group()

    def _end_queries(self) -> None:
        for reading in self._readings:
            reading.end_queries()

    def _follow_group(self) -> bool:
        """Have the consumer group follow the tables; True if somebody has reset it."""
        return self._group is not None and self._group.follow()

    def _lanes_at_work(self, reading: TopicReading, until: float) -> list[str]:
        """Wait for running batches up to a moment, and return the lanes that still run one;
        meanwhile health checks see that the loop is alive.
        """
        while (left := until - self._driver.clock.monotonic()) > 0:
            self._health.tick()
            if not reading.lanes_at_work(min(left, TICK_SECONDS)):
                return []
        return reading.lanes_at_work(0)

    def _watch(self) -> bool:
        """Watch until the queries have to end; True if they ended by themselves without an
        error.
        """
        poll_seconds = self._driver.settings.kafka.topic_poll_seconds
        polled = asked = self._driver.clock.monotonic()
        while not self._stopping.is_set():
            self._tick()
            if not any(reading.is_running for reading in self._readings):
                return self._restart_reason() is None
            for reading in self._readings:
                reading.wait()
            self._follow_group()
            reason = self._restart_reason()
            if self._driver.clock.monotonic() - polled >= poll_seconds:
                polled = self._driver.clock.monotonic()
                reason = reason or self._news()
            if self._driver.clock.monotonic() - asked >= min(poll_seconds, _REQUESTS_SECONDS):
                asked = self._driver.clock.monotonic()
                if self._requests.waiting():
                    reason = reason or RestartReason.REQUEST
            if reason is None and any(reading.sources.any_due() for reading in self._readings):
                reason = RestartReason.RESTED
            if reason is not None:
                self._restart(reason)
                return False
        return False

    def _restart_reason(self) -> RestartReason | None:
        reasons = (reading.restart_reason for reading in self._readings)
        return next((reason for reason in reasons if reason is not None), None)

    def _news(self) -> RestartReason | None:
        """Return why the queries should restart, by what the broker has now; None if they
        needn't.
        """
        found = [reading.news() for reading in self._readings]
        if not any(waits for _, waits in found):
            self._driver.caught_up()
        return next((reason for reason, _ in found if reason is not None), None)

    def _idle(self) -> bool:
        """Wait, since nothing can be read, until that may have changed."""
        self._stopping.wait(min(self._driver.settings.kafka.topic_poll_seconds, 5.0))
        return True

    def _restart(self, reason: RestartReason) -> None:
        """End the queries, each between two batches."""
        self._driver.metrics.add(metric.QUERY_RESTARTS, reason=reason)
        self._driver.log.info("query-restarts", reason=reason)
        for reading in self._readings:
            reading.drain_all(self._tick, self._stopping)

    def _back_off(self, error: RetryableError, once: bool) -> None:
        """After an error that may pass, wait a little, longer each time; raise other errors."""
        fatal = next((one.fatal for one in self._readings if one.fatal is not None), None)
        if fatal is not None:
            raise fatal
        if isinstance(error, CredentialsRefused) and not self._readings[0].sources.has_looked:
            raise error  # they never worked, so that somebody has to correct them
        self._driver.metrics.add(metric.QUERY_RESTARTS, reason=RestartReason.ERROR)
        self._driver.log.error("query-failed", error=str(error))
        self._driver.activity.query_failed(str(error))
        self._end_queries()
        if once and self._failures >= len(_BACKOFF_SECONDS):
            raise error
        seconds = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS) - 1)]
        self._failures += 1
        self._stopping.wait(seconds)

    def _tick(self) -> None:
        self._health.tick()
        self._driver.generation.check()
        self._reporter.tick()
