"""What all parts of a running driver share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lakesplice.apps.service.activity import Activity
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.apps.service.threads import ThreadErrors
from lakesplice.config import Settings
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.ports import Clock, Entropy, SchemaSource, Store
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.registry import Metrics
from lakesplice.telemetry.tracing import Tracing


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
    def errors(self) -> ThreadErrors:
        """What reports errors of threads."""
        return ThreadErrors(self.metrics, self.log)
