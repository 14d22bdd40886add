"""What every part of a running driver shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lakesplice.apps.service.activity import Activity
from lakesplice.apps.service.schema_topics import SchemaTopics
from lakesplice.config import Settings
from lakesplice.table.driver.generation import Generation
from lakesplice.table.protocol.ports import Clock, Entropy, SchemaSource, Store
from lakesplice.telemetry.registry import Metrics


@dataclass(frozen=True)
class Driver:
    """One driver of one lake. `log` is a structlog logger; `kill_point` is named before each step
    whose crash the tests provoke and does nothing in production. `schema_topics` know types that
    events don't say.
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
    kill_point: Callable[[str], None] = lambda _name: None
