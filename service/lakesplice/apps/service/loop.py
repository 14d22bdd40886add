"""The main loop: one query after another, each from where the manifests stand."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from lakesplice.apps.service.batches import BatchRunner
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources import Sources
from lakesplice.errors import RetryableError
from lakesplice.spark.query import Offsets, Query, QueryPlan
from lakesplice.spark.session import INGEST_POOL
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.health import Health

_TICK_SECONDS = 0.2
_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class QueryLoop:
    """Keeps a query running until `stopping` is set; used by one thread."""

    def __init__(
        self,
        driver: Driver,
        session: SparkSession,
        sources: Sources,
        runner: BatchRunner,
        health: Health,
        stopping: threading.Event,
    ) -> None:
        self._driver = driver
        self._session = session
        self._sources = sources
        self._runner = runner
        self._health = health
        self._stopping = stopping
        self._query: Query | None = None
        self._failures = 0

    def run(self, on_start: Callable[[], None], *, once: bool) -> None:
        """Run queries until told to stop; with `once` until a query has taken all there was.

        `on_start` is called when the first query reads, or nothing is there to read. Raises
        `FencedError`; an error that may pass only delays the next query.
        """
        while not self._stopping.is_set():
            self._tick()
            try:
                starts = self._sources.starts()
                if starts:
                    self._start(starts, once)
                self._health.reached("query")
                on_start()
                ended = self._watch(starts) if starts else self._idle(starts)
            except RetryableError as error:
                self._back_off(error, once)
                continue
            self._failures = 0
            if once and (ended or not starts):
                return

    def drain(self, seconds: float) -> None:
        """Finish the running batch within `seconds`, or drop it whole."""
        if not self._runner.drain(seconds):
            self._driver.log.warning("batch-dropped", stop_timeout=seconds)
        self._end_query()

    def _start(self, starts: Offsets, once: bool) -> None:
        settings = self._driver.settings
        self._runner.restart = None
        # Jobs of the query inherit the pool of the thread that starts it.
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", INGEST_POOL)
        plan = QueryPlan(
            settings.kafka.bootstrap_servers,
            starts,
            settings.kafka.options,
            settings.kafka.offsets_per_batch_max,
            None if once else settings.trigger,
        )
        self._query = Query(self._session, plan, self._runner)
        partitions = sum(len(numbers) for numbers in starts.values())
        self._driver.log.info("query-started", topics=len(starts), partitions=partitions)

    def _watch(self, starts: Offsets) -> bool:
        """Watch the query until it has to end; True if it ended by itself with nothing to mend."""
        assert self._query is not None
        poll_seconds = self._driver.settings.kafka.topic_poll_seconds
        polled = self._driver.clock.monotonic()
        while not self._stopping.is_set():
            self._tick()
            if self._query.wait(_TICK_SECONDS):
                self._end_query()
                return self._runner.restart is None
            if self._runner.restart is None and self._poll_is_due(polled, poll_seconds):
                polled = self._driver.clock.monotonic()
                if self._sources.differ_from(starts):
                    self._runner.restart = "new-topics"
            if self._runner.restart is not None:
                self._restart(self._runner.restart)
                return False
        return False

    def _idle(self, starts: Offsets) -> bool:
        """Nothing can be read: wait until that may have changed."""
        self._stopping.wait(min(self._driver.settings.kafka.topic_poll_seconds, 5.0))
        return not starts

    def _poll_is_due(self, polled: float, seconds: float) -> bool:
        return self._driver.clock.monotonic() - polled >= seconds

    def _restart(self, reason: str) -> None:
        """End the query between two batches."""
        self._driver.metrics.add(metric.QUERY_RESTARTS, reason=reason)
        self._driver.log.info("query-restarts", reason=reason)
        while not self._runner.drain(_TICK_SECONDS):
            self._tick()
            if self._stopping.is_set():
                return
        self._end_query()
        self._runner.draining.clear()

    def _end_query(self) -> None:
        if self._query is not None:
            query, self._query = self._query, None
            query.stop()

    def _back_off(self, error: RetryableError, once: bool) -> None:
        """After an error that may pass: raise what may not, wait a little, more each time."""
        if self._runner.fatal is not None:
            raise self._runner.fatal
        self._driver.metrics.add(metric.QUERY_RESTARTS, reason="error")
        self._driver.log.error("query-failed", error=str(error))
        self._end_query()
        if once and self._failures >= len(_BACKOFF_SECONDS):
            raise error
        seconds = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS) - 1)]
        self._failures += 1
        self._stopping.wait(seconds)

    def _tick(self) -> None:
        self._health.tick()
        self._driver.generation.check()
