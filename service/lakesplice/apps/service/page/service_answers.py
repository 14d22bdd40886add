"""Makes the answers about a running service; there are none until a driver runs.

Everything is read from what the driver has in memory, so an answer about all tables asks no store.
Only a table's history does, in `history.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakesplice import __version__
from lakesplice.apps.alert_rules import limits_of
from lakesplice.apps.service.activity import Activity, Batch, ConnectorSighting, Work
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.page.answers import (
    BatchAnswer,
    ConnectorAnswer,
    LakeAnswer,
    TableAnswer,
    TopicAnswer,
    WorkAnswer,
)
from lakesplice.apps.service.page.table_answers import (
    severity,
    sum_up,
    table_answers,
    topic_answer,
)
from lakesplice.apps.service.status.status_reporter import StatusReporter
from lakesplice.apps.service.tables import DriverTables, ServiceTable
from lakesplice.config import Settings
from lakesplice.model.driver_status import DriverStatus
from lakesplice.model.moments import EpochMs, seconds_since, utc_time
from lakesplice.planning.upkeep.retention import CLOCK_SECONDS_MAX
from lakesplice.secrets import masked_text
from lakesplice.table.protocol.ports import Clock
from lakesplice.telemetry.health import Health

# Heartbeats come some ten seconds apart; the alert waits for more of them.
_SILENT_SECONDS = 120.0


@dataclass(frozen=True)
class RunningDriver:
    """A running driver, and the objects that know its state."""

    driver: Driver
    tables: DriverTables
    reporter: StatusReporter

    def table(self, name: str) -> ServiceTable | None:
        """Return a table of the driver."""
        return next((table for table in self.tables if str(table.name) == name), None)


@dataclass(frozen=True)
class ServiceOverview:
    """The service and all its tables at one moment."""

    lake: LakeAnswer
    tables: tuple[TableAnswer, ...]


class ServiceAnswers:
    """Shows one service; safe from any thread. `driving` is None until a driver runs."""

    def __init__(self, settings: Settings, health: Health, clock: Clock) -> None:
        self._settings = settings
        self._health = health
        self._clock = clock
        self._overdue_seconds = limits_of(settings).silence_seconds_max.value
        self.driving: RunningDriver | None = None

    def show(self, driver: Driver, tables: DriverTables, reporter: StatusReporter) -> None:
        """Set the driver to show from now on."""
        self.driving = RunningDriver(driver, tables, reporter)

    def overview(self) -> ServiceOverview:
        """Return the state of the service and its tables."""
        driving = self.driving
        if driving is None:
            return ServiceOverview(self._lake(None, (), Activity()), ())
        status = driving.reporter.status(running=True)
        held = {str(table.name): table for table in driving.tables}
        activity, now_ms = driving.driver.activity, self._clock.now_ms()
        tables = table_answers(status.topics, held, activity, now_ms)
        return ServiceOverview(self._lake(status, tables, activity), tables)

    def topics(self, table: str) -> list[TopicAnswer]:
        """Return the topics of a table, the one in the worst state first."""
        driving = self.driving
        status = None if driving is None else driving.reporter.status(running=True)
        topics = () if status is None else status.topics
        mine = sorted((one for one in topics if one.table == table), key=severity)
        return [topic_answer(one) for one in mine]

    def _lake(
        self, status: DriverStatus | None, tables: Sequence[TableAnswer], activity: Activity
    ) -> LakeAnswer:
        rates = [one.changes_per_second for one in tables if one.changes_per_second is not None]
        batch_age, clocks = self._age(activity.last_batch_ms), activity.clock_difference
        return LakeAnswer(
            version=__version__,
            moment=utc_time(self._clock.now_ms()),
            lake=masked_text(self._settings.lake.address),
            drives=status is not None,
            waits_for=self._health.why_unready(),
            generation=None if status is None else status.generation,
            topic_pattern=self._settings.kafka.topic_pattern.pattern,
            topics={} if status is None else status.topics_by_state(),
            other_topics=[] if status is None else list(status.other_topics),
            lag_records=sum(one.lag_records or 0 for one in tables),
            changes_per_second=sum(rates) if rates else None,
            waiting=sum_up(one.waiting for one in tables if one.waiting is not None),
            dead_letters=sum(one.dead_letters or 0 for one in tables),
            work=[_work_answer(work) for work in activity.work],
            batches=[_batch_answer(batch) for batch in activity.batches],
            batch_age_seconds=batch_age,
            is_batch_overdue=batch_age is not None and batch_age > self._overdue_seconds,
            clock_difference_seconds=clocks,
            is_clock_wrong=clocks is not None and abs(clocks) > CLOCK_SECONDS_MAX,
            query_failure=masked_text(activity.query_failure),
            connectors=[self._connector(one) for one in activity.connectors],
        )

    def _age(self, moment_ms: EpochMs | None) -> float | None:
        return seconds_since(moment_ms, self._clock.now_ms())

    def _connector(self, seen: ConnectorSighting) -> ConnectorAnswer:
        age = self._age(seen.wrote_ms) or 0.0
        return ConnectorAnswer(
            connector=seen.name,
            has_heartbeats=seen.has_heartbeats,
            wrote=utc_time(seen.wrote_ms),
            age_seconds=age,
            is_silent=seen.has_heartbeats and age > _SILENT_SECONDS,
        )


def _work_answer(work: Work) -> WorkAnswer:
    return WorkAnswer.model_validate(
        {
            "table": work.table,
            "what": work.what,
            "since": utc_time(work.began_ms),
            "changes": work.changes,
            "bytes": work.bytes,
        }
    )


def _batch_answer(batch: Batch) -> BatchAnswer:
    return BatchAnswer.model_validate(
        {
            "began": utc_time(batch.began_ms),
            "seconds": batch.seconds,
            "records": batch.records,
            "tables": batch.tables,
            "result": batch.result,
        }
    )
