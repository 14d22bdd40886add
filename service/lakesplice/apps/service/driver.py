"""What all parts of a running driver share, and the clock by which it deletes what is old."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lakesplice.apps.service.activity import Activity
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.threads import ThreadErrors
from lakesplice.config import HistorySettings, Settings, history_settings
from lakesplice.model.moments import EpochMs
from lakesplice.planning.upkeep.retention import deletion_moment
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.ports import Clock, Entropy, SchemaSource, Store
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.registry import Metrics
from lakesplice.telemetry.tracing import Tracing


class DeletionClock:
    """`Clock` that goes by the lake's store as soon as this machine's clock is ahead of it.

    If this machine's clock jumps ahead by more than the retention, every old version would look
    expired. The driver compares the clocks each minute (`Activity.clock_difference`); before the
    first comparison nothing is old enough to be deleted. Safe from any thread.
    """

    def __init__(self, clock: Clock, activity: Activity) -> None:
        self._clock = clock
        self._activity = activity

    def now_ms(self) -> EpochMs:
        """See `Clock.now_ms`."""
        return deletion_moment(self._clock.now_ms(), self._activity.clock_difference)

    def monotonic(self) -> float:
        """See `Clock.monotonic`."""
        return self._clock.monotonic()

    def wait(self, seconds: float) -> object:
        """See `Clock.wait`."""
        return self._clock.wait(seconds)


@dataclass(frozen=True)
class Driver:
    """One driver of one lake. `log` is a structlog logger. `kill_point` is called before each step
    at which the tests provoke a crash, and does nothing in production. `schema_topics` know the
    types that events don't have.
    """

    settings: Settings
    lake: Store
    clock: Clock
    entropy: Entropy
    generation: Generation
    metrics: Metrics
    log: Any
    schemas: SchemaSource | None = None
    schema_topics: SchemaTopics | None = None
    activity: Activity = field(default_factory=Activity)
    tracing: Tracing = field(default_factory=Tracing)
    kill_point: Callable[[str], None] = lambda _name: None

    def caught_up(self) -> None:
        """Record that a batch ends now, or that there is nothing to read: what shows that no batch
        ends counts from here.
        """
        now_ms = self.clock.now_ms()
        self.metrics.since(metric.LAST_BATCH, now_ms / 1000)
        self.activity.batch_ended(now_ms)

    @property
    def feeds_histories(self) -> bool:
        """Whether its settings are those of the history tables beside others."""
        return isinstance(self.settings, HistorySettings)

    def for_histories(self, schema_topics: SchemaTopics | None = None) -> Driver | None:
        """Return what feeds the history tables beside others, None if there are none.

        It has `schema_topics` of its own, since each reports a DROP only until it is handled.
        """
        settings = history_settings(self.settings)
        if settings is None:
            return None
        return replace(self, settings=settings, schema_topics=schema_topics)

    @property
    def deletion_clock(self) -> DeletionClock:
        """By what the age of something counts that may be deleted."""
        return DeletionClock(self.clock, self.activity)

    @property
    def errors(self) -> ThreadErrors:
        """What reports errors of threads."""
        return ThreadErrors(self.metrics, self.log)
