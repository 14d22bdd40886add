"""Reads topics for one kind of tables: those of current rows, or the history tables beside them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import SparkSession

from lakesplice.apps.record_reading import broker_access
from lakesplice.apps.service.batching.batches import BatchRunner
from lakesplice.apps.service.batching.dropped_tables import TableDrops
from lakesplice.apps.service.batching.restart import RestartReason
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.topic_selection import ReadableTopics, TopicSelection
from lakesplice.apps.service.threads import run_interruptibly
from lakesplice.errors import RetryableError
from lakesplice.planning.sources.topic_lanes import catching_up
from lakesplice.spark.kafka.query import Query, QueryPlan, TopicOffsets
from lakesplice.spark.session import INGEST_POOL

TICK_SECONDS = 0.2


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


class TopicReading:
    """The queries that feed the tables of one kind; used by the main loop's thread.

    A topic with a history table beside its table of current rows is read twice, since each table
    has its own progress: once for each kind. Within a kind there are two lanes: topics that would
    hold up the others, by their backlogs or because others come first, have a query of their own
    until they have caught up. A topic is in one lane at a time. `open_query` starts a query.
    """

    def __init__(
        self,
        driver: Driver,
        session: SparkSession,
        sources: TopicSelection,
        drops: TableDrops,
        runners: tuple[BatchRunner, BatchRunner],
        open_query: OpenQuery = Query,
    ) -> None:
        self.sources = sources
        self.drops = drops
        self._driver = driver
        self._session = session
        kind = "history-" if driver.feeds_histories else ""
        self._main = Lane(f"{kind}main", runners[0])
        self._catch_up = Lane(f"{kind}catch-up", runners[1])
        self._open_query = open_query
        self._readable = ReadableTopics({}, {})
        self._behind: frozenset[str] = frozenset()

    @property
    def has_topics(self) -> bool:
        """Whether anything could be read when `look` was last called."""
        return bool(self._readable.starts)

    @property
    def is_running(self) -> bool:
        """Whether a query runs."""
        return any(lane.query is not None for lane in self._lanes)

    @property
    def restart_reason(self) -> RestartReason | None:
        """Why a query must end and another one start, if it must."""
        return self._main.runner.restart or self._catch_up.runner.restart

    @property
    def fatal(self) -> BaseException | None:
        """The error that must stop the service, if there was one."""
        return self._main.runner.fatal or self._catch_up.runner.fatal

    @property
    def _lanes(self) -> tuple[Lane, Lane]:
        return self._main, self._catch_up

    def look(self, tick: Callable[[], None], stopping: threading.Event) -> None:
        """Find out what can be read now, after dropped tables were handled. Blocks, and calls
        `tick` meanwhile.
        """
        self._readable = self.sources.look()
        self.drops.look()
        if self.drops.any_due():
            # A query that failed may have left a running batch, which doesn't know the fence.
            self.drain_all(tick, stopping)
            if stopping.is_set():
                return
        parked = run_interruptibly(self.drops.handle_all, "lakesplice-drops", tick, stopping)
        if parked:
            self._readable = self.sources.look()

    def start(self, *, once: bool) -> None:
        """Start queries over what `look` found."""
        starts = self._readable.starts
        self._behind = frozenset() if once else self._far_behind(self._readable, None)
        for lane in self._lanes:
            catches_up = lane is self._catch_up
            mine = {
                topic: at for topic, at in starts.items() if (topic in self._behind) == catches_up
            }
            lane.runner.begin(lane.name)
            if mine:
                self._start_query(lane, mine, once)

    def wait(self) -> None:
        """Wait a moment for each query, and let those go that have ended. Raises what one failed
        of.
        """
        for lane in self._lanes:
            if lane.query is not None and lane.query.wait(TICK_SECONDS):
                lane.end_query()

    def news(self) -> tuple[RestartReason | None, bool]:
        """Return why the queries should restart, by what the broker has now, None if they needn't;
        and whether records wait.
        """
        readable = self.sources.peek()
        waits = any(one.records for one in readable.backlogs.values())
        self.drops.look()
        if self.drops.any_due():
            return RestartReason.REDIRECT, waits
        for topic, offsets in readable.starts.items():
            if offsets.keys() - self._readable.starts.get(topic, {}).keys():
                return RestartReason.NEW_TOPICS, waits
        moved = self._far_behind(readable, self._behind) != self._behind
        return RestartReason.LANES if moved else None, waits

    def end_batches(self) -> None:
        """Let no further batch begin; returns at once."""
        for lane in self._lanes:
            lane.runner.end()

    def lanes_at_work(self, seconds: float) -> list[str]:
        """Wait at most `seconds` for the running batches; return the lanes that still run one."""
        return [lane.name for lane in self._lanes if not lane.runner.drain(seconds)]

    def drain_all(self, tick: Callable[[], None], stopping: threading.Event) -> None:
        """Wait for the running batches and end the queries, unless asked to stop meanwhile."""
        for lane in self._lanes:
            while not lane.runner.drain(TICK_SECONDS):
                tick()
                if stopping.is_set():
                    return
            lane.end_query()

    def end_queries(self) -> None:
        """Stop the running queries. One that doesn't stop must not prevent that another lane's
        query, or the service, is ended.
        """
        for lane in self._lanes:
            try:
                lane.end_query()
            except RetryableError as unstopped:
                self._driver.log.warning("query-not-stopped", lane=lane.name, error=str(unstopped))

    def _far_behind(
        self, readable: ReadableTopics, present: frozenset[str] | None
    ) -> frozenset[str]:
        most = self._driver.settings.kafka.offsets_per_batch_max
        return catching_up(readable.backlogs, most, present)

    def _start_query(self, lane: Lane, starts: TopicOffsets, once: bool) -> None:
        settings = self._driver.settings
        # Jobs of the query inherit the pool of the thread that starts it.
        self._session.sparkContext.setLocalProperty("spark.scheduler.pool", INGEST_POOL)
        plan = QueryPlan(
            broker_access(settings.kafka),
            starts,
            settings.kafka.offsets_per_batch_max,
            None if once else settings.trigger,
        )
        lane.query = self._open_query(self._session, plan, lane.runner)
        partitions = sum(len(numbers) for numbers in starts.values())
        self._driver.log.info(
            "query-started", lane=lane.name, topics=len(starts), partitions=partitions
        )
