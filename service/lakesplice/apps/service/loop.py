"""The main loop: queries, one after another, each from the offsets in the manifests."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.restart import RestartReason
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.requests import Requests
from lakesplice.apps.service.shadow_feed import ShadowFeed
from lakesplice.apps.service.sources.group_offsets import GroupOffsets
from lakesplice.apps.service.sources.topic_selection import ReadableTopics, TopicSelection
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import ServiceTables
from lakesplice.apps.service.threads import run_interruptibly
from lakesplice.errors import CredentialsRefused, RetryableError
from lakesplice.planning.sources.topic_lanes import catching_up
from lakesplice.spark.kafka.query import Query, QueryPlan, TopicOffsets
from lakesplice.spark.session import INGEST_POOL
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.health import Health

_TICK_SECONDS = 0.2
_REQUESTS_SECONDS = 5.0
_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class RunningQuery(Protocol):
    """A query that passes its batches to a runner, one at a time, in a thread of its own."""

    def wait(self, seconds: float) -> bool:
        """See `Query.wait`."""

    def stop(self) -> None:
        """See `Query.stop`."""


OpenQuery = Callable[[SparkSession, QueryPlan, BatchRunner], RunningQuery]


@dataclass
class Lane:
    """One query at a time over some of the topics, and the runner of its batches."""

    name: str
    runner: BatchRunner
    query: RunningQuery | None = None

    def end_query(self) -> None:
        """Stop the query, if one runs."""
        if self.query is not None:
            query, self.query = self.query, None
            query.stop()


class QueryLoop:
    """Keeps queries running until `stopping` is set; used by one thread.

    There are two lanes: topics that would hold up the others, by their backlogs or because others
    come first, have a query of their own until they have caught up. Both queries restart together,
    so a topic is in one lane at a time. `open_query` starts a query; `group` has other tools see
    how far tables are.
    """

    def __init__(
        self,
        driver: Driver,
        session: SparkSession,
        sources: TopicSelection,
        runners: tuple[BatchRunner, BatchRunner],
        health: Health,
        stopping: threading.Event,
        tables: ServiceTables,
        drops: TableDrops,
        reporter: StatusReporter,
        open_query: OpenQuery = Query,
        group: GroupOffsets | None = None,
    ) -> None:
        self._driver = driver
        self._session = session
        self._selection = sources
        self._main, self._catch_up = Lane("main", runners[0]), Lane("catch-up", runners[1])
        self._health = health
        self._stopping = stopping
        self._drops = drops
        self._reporter = reporter
        self._open_query = open_query
        self._group = group
        feed = ShadowFeed(session, driver.settings, driver.lake, driver.entropy, driver.schemas)
        self._requests = Requests(driver, tables, sources, stopping, self._tick, feed)
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
                readable = self._look()
                if self._follow_group():
                    continue  # what it asks for comes before anything is read
                behind = frozenset() if once else self._behind(readable, None)
                self._start(readable.starts, behind, once)
                self._health.reached("query")
                self._driver.activity.query_runs()
                on_start()
                finished = self._watch(readable.starts, behind) if readable.starts else self._idle()
            except RetryableError as error:
                self._back_off(error, once)
                continue
            self._failures = 0
            if self._follow_group():
                continue
            if once and finished:
                if not self._selection.any_rests() and not self._drops.any_due():
                    return
                self._stopping.wait(_TICK_SECONDS)

    def drain(self, seconds: float) -> None:
        """Finish the running batches within `seconds`, or drop them whole. All queries are stopped,
        even if one of them doesn't stop, which is logged.
        """
        until = self._driver.clock.monotonic() + seconds
        for lane in self._lanes:
            lane.runner.end()
        for lane in self._lanes:
            if not self._drained(lane, until):
                self._driver.log.warning("batch-dropped", lane=lane.name, stop_timeout=seconds)
        self._end_queries()
        self._follow_group()

    def _end_queries(self) -> None:
        """Stop the running queries. One that doesn't stop must not prevent that the other lane's
        query, or the service, is ended.
        """
        for lane in self._lanes:
            try:
                lane.end_query()
            except RetryableError as unstopped:
                self._driver.log.warning("query-not-stopped", lane=lane.name, error=str(unstopped))

    def _follow_group(self) -> bool:
        """Have the consumer group follow the tables; True if somebody has reset it."""
        return self._group is not None and self._group.follow()

    def _drained(self, lane: Lane, until: float) -> bool:
        """Wait for a lane's batch up to a moment; meanwhile health checks see that the loop is
        alive.
        """
        while (left := until - self._driver.clock.monotonic()) > 0:
            self._health.tick()
            if lane.runner.drain(min(left, _TICK_SECONDS)):
                return True
        return lane.runner.drain(0)

    @property
    def _lanes(self) -> tuple[Lane, Lane]:
        return self._main, self._catch_up

    def _look(self) -> ReadableTopics:
        """Return what can be read now, after dropped tables were handled."""
        readable = self._selection.look()
        self._drops.look()
        if self._drops.any_due():
            # A query that failed may have left a running batch, which doesn't know the fence.
            self._drain_all()
            if self._stopping.is_set():
                return readable
        name = "lakesplice-drops"
        parked = run_interruptibly(self._drops.handle_all, name, self._tick, self._stopping)
        return self._selection.look() if parked else readable

    def _behind(self, readable: ReadableTopics, present: frozenset[str] | None) -> frozenset[str]:
        most = self._driver.settings.kafka.offsets_per_batch_max
        return catching_up(readable.backlogs, most, present)

    def _start(self, starts: TopicOffsets, behind: frozenset[str], once: bool) -> None:
        for lane in self._lanes:
            catches_up = lane is self._catch_up
            mine = {topic: at for topic, at in starts.items() if (topic in behind) == catches_up}
            lane.runner.begin(lane.name)
            if mine:
                self._start_query(lane, mine, once)

    def _start_query(self, lane: Lane, starts: TopicOffsets, once: bool) -> None:
        settings = self._driver.settings
        # Jobs of the query inherit the pool of the thread that starts it.
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", INGEST_POOL)
        plan = QueryPlan(
            settings.kafka.bootstrap_servers,
            starts,
            settings.kafka.options,
            settings.kafka.offsets_per_batch_max,
            None if once else settings.trigger,
        )
        lane.query = self._open_query(self._session, plan, lane.runner)
        partitions = sum(len(numbers) for numbers in starts.values())
        self._driver.log.info(
            "query-started", lane=lane.name, topics=len(starts), partitions=partitions
        )

    def _watch(self, starts: TopicOffsets, behind: frozenset[str]) -> bool:
        """Watch until the queries have to end; True if they ended by themselves without an
        error.
        """
        poll_seconds = self._driver.settings.kafka.topic_poll_seconds
        polled = asked = self._driver.clock.monotonic()
        while not self._stopping.is_set():
            self._tick()
            running = [lane for lane in self._lanes if lane.query is not None]
            if not running:
                return self._restart_reason() is None
            for lane in running:
                if lane.query is not None and lane.query.wait(_TICK_SECONDS):
                    lane.end_query()
            self._follow_group()
            reason = self._restart_reason()
            if self._driver.clock.monotonic() - polled >= poll_seconds:
                polled = self._driver.clock.monotonic()
                reason = reason or self._news(starts, behind)
            if self._driver.clock.monotonic() - asked >= min(poll_seconds, _REQUESTS_SECONDS):
                asked = self._driver.clock.monotonic()
                if self._requests.waiting():
                    reason = reason or RestartReason.REQUEST
            if reason is None and self._selection.any_due():
                reason = RestartReason.RESTED
            if reason is not None:
                self._restart(reason)
                return False
        return False

    def _restart_reason(self) -> RestartReason | None:
        return self._main.runner.restart or self._catch_up.runner.restart

    def _news(self, starts: TopicOffsets, behind: frozenset[str]) -> RestartReason | None:
        """Return why the queries should restart, by what the broker has now; None if they
        needn't.
        """
        readable = self._selection.peek()
        self._drops.look()
        if self._drops.any_due():
            return RestartReason.REDIRECT
        for topic, offsets in readable.starts.items():
            if offsets.keys() - starts.get(topic, {}).keys():
                return RestartReason.NEW_TOPICS
        return RestartReason.LANES if self._behind(readable, behind) != behind else None

    def _idle(self) -> bool:
        """Wait, since nothing can be read, until that may have changed."""
        self._stopping.wait(min(self._driver.settings.kafka.topic_poll_seconds, 5.0))
        return True

    def _restart(self, reason: RestartReason) -> None:
        """End the queries, each between two batches."""
        self._driver.metrics.add(metric.QUERY_RESTARTS, reason=reason)
        self._driver.log.info("query-restarts", reason=reason)
        self._drain_all()

    def _drain_all(self) -> None:
        """Wait for the running batches and end the queries, unless asked to stop meanwhile."""
        for lane in self._lanes:
            while not lane.runner.drain(_TICK_SECONDS):
                self._tick()
                if self._stopping.is_set():
                    return
            lane.end_query()

    def _back_off(self, error: RetryableError, once: bool) -> None:
        """After an error that may pass, wait a little, longer each time; raise other errors."""
        fatal = self._main.runner.fatal or self._catch_up.runner.fatal
        if fatal is not None:
            raise fatal
        if isinstance(error, CredentialsRefused) and not self._selection.has_looked:
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
