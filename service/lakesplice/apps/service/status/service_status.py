"""What a service reports to the program that embeds it: while it runs, and at the end of `run
--once`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lakesplice.apps.service.tables import ServiceTable
from lakesplice.model.driver_status import TROUBLES, DriverStatus, TopicState


@dataclass(frozen=True, slots=True)
class TableStatus:
    """One table now. Freshness is in seconds, and None until the table caught up once. `rows` are
    the visible rows of base files, `deltas_waiting` the deltas that aren't compacted yet.
    """

    name: str
    version: int
    rows: int
    changes_in: int
    deltas_waiting: int
    freshness_real_time_seconds: float | None
    freshness_read_optimised_seconds: float | None
    compactions: int
    parked: str | None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The whole service now."""

    tables: tuple[TableStatus, ...]
    running: bool


def table_status(table: ServiceTable, now: float) -> TableStatus:
    """Return the status of a table at a moment, in seconds since the epoch."""
    manifest = table.manifest
    fresh = table.freshness()
    return TableStatus(
        name=str(table.name),
        version=-1 if table.snapshot is None else table.snapshot.version,
        rows=manifest.stored_rows,
        changes_in=table.changes_in,
        deltas_waiting=len(manifest.deltas),
        freshness_real_time_seconds=None
        if fresh.real_time is None
        else max(0.0, now - fresh.real_time),
        freshness_read_optimised_seconds=None
        if fresh.read_optimised is None
        else max(0.0, now - fresh.read_optimised),
        compactions=table.compactions,
        parked=next((f"{parked.code}: {parked.detail}" for parked in manifest.parkings), None),
    )


def log_once_summary(log: Any, status: DriverStatus, tables: Iterable[ServiceTable]) -> bool:
    """Log what `run --once` did; return whether it succeeded.

    Topics that are parked or refused wait for a person, as before. But if no topic matches, or a
    table was given up that may succeed later, the end must not look like a success.
    """
    states = status.topics_by_state()
    for topic in status.topics:
        if topic.standing.state in TROUBLES:
            log.warning(
                "not-taken-in",
                topic=topic.topic,
                state=topic.standing.state.value,
                reason=topic.standing.reason,
            )
    well = bool(status.topics) and not states[TopicState.RESTING]
    say = log.info if well else log.error
    say(
        "once-ended",
        topics=states.total(),
        changes=sum(table.changes_in for table in tables),
        **{state.value: states[state] for state in TopicState if states[state]},
    )
    return well
