"""Reports the state of every topic in the lake's status document, in metrics and at /readyz."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.sources.topic_selection import OTHER_TOPICS_MAX, TopicSelection
from lakesplice.apps.service.tables.setting_warnings import still_shown
from lakesplice.errors import LakespliceError
from lakesplice.model.driver_status import (
    TROUBLES,
    DriverStatus,
    TopicCondition,
    TopicStatus,
)
from lakesplice.model.moments import EpochMs, outside
from lakesplice.planning.upkeep.retention import CLOCK_SECONDS_MAX
from lakesplice.table.driver.status import StatusPublisher, newest_status
from lakesplice.telemetry import catalogue as metric
from lakesplice.telemetry.health import Health

# A change of state is shown within about this time (finding it takes some 50 ms with 400 topics);
# lag and freshness are shown this often.
_LOOK_SECONDS = 2.0
_PUBLISH_SECONDS = 10.0
# In a bucket each look at the store's clock is a request.
_CLOCK_SECONDS = 60.0


class _Fed(NamedTuple):
    """A topic, and the number of the selection that has it: a topic may feed two tables."""

    topic: str
    kind: int


class StatusReporter:
    """Reports for one driver; used by the main loop's thread, except for `status`. Blocks on
    stores.

    If the store fails, only this document becomes outdated: metrics and logs continue.
    """

    def __init__(
        self, driver: Driver, selections: Sequence[TopicSelection], health: Health
    ) -> None:
        """`selections` choose the topics of the tables of current rows and, if there are any, of
        the history tables beside them.
        """
        self._driver = driver
        self._selections = tuple(selections)
        self._health = health
        self._publisher = StatusPublisher(driver.lake, driver.generation.number)
        self._before = _previous_status(driver)
        for table, missing in {
            topic.table: topic.missing_changes for topic in self._before.values()
        }.items():
            if missing is not None:
                driver.activity.add_missing_changes(table, missing)
        self._known: dict[_Fed, TopicStatus] = {}
        self._looked = self._published = self._compared = float("-inf")
        self._began = driver.clock.now_ms(), driver.clock.monotonic()
        self._clocks_differ = False
        self._unsaid = True

    def tick(self) -> None:
        """Report what is due; called repeatedly."""
        now = self._driver.clock.monotonic()
        if not self._has_looked or now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        topics = self._topics()
        changed = _states(topics) != _states(self._known)
        self._known = topics
        if changed or self._unsaid:
            self._show()
        if changed or now - self._published >= _PUBLISH_SECONDS:
            self._published = now
            self._publish(running=True)

    def close(self) -> DriverStatus:
        """Publish the last document of a driver that ends in order, and return it."""
        self._known = self._topics()
        if self._has_looked:
            self._publish(running=False)
        return self.status(running=False)

    def status(self, *, running: bool) -> DriverStatus:
        """Return the document as it would be published now; may be called from any thread."""
        driver, known = self._driver, self._known
        return DriverStatus(
            driver.generation.number,
            driver.clock.now_ms(),
            running,
            driver.settings.kafka.topic_pattern.pattern,
            tuple(self._measured(fed, known[fed]) for fed in sorted(known)),
            self._selections[0].other_topics[:OTHER_TOPICS_MAX],
        )

    @property
    def _has_looked(self) -> bool:
        return all(selection.has_looked for selection in self._selections)

    def _topics(self) -> dict[_Fed, TopicStatus]:
        return {
            _Fed(topic, kind): self._topic(_Fed(topic, kind), standing)
            for kind, selection in enumerate(self._selections)
            for topic, standing in selection.conditions().items()
        }

    def _topic(self, fed: _Fed, standing: TopicCondition) -> TopicStatus:
        selection = self._selections[fed.kind]
        name = selection.table_of(fed.topic)
        known = self._known.get(fed, self._before.get((fed.topic, name)))
        same = known is not None and _state(known.standing) == _state(standing)
        now_ms = self._driver.clock.now_ms()
        since_ms = known.since_ms if known is not None and same else now_ms
        table = selection.tables.get(fed.topic)
        before = () if known is None else known.suspect_settings
        shown = () if table is None else table.setting_warnings.shown()
        return TopicStatus(
            fed.topic,
            name,
            standing,
            since_ms,
            suspect_settings=still_shown([*before, *shown], now_ms),
        )

    def _measured(self, fed: _Fed, status: TopicStatus) -> TopicStatus:
        """Add lag, freshness and its goal, which take longer to find out than the state."""
        table = self._selections[fed.kind].tables.get(fed.topic)
        if table is None:
            return status
        driver, fresh = self._driver, table.freshness()
        missing = driver.activity.missing_changes.get(str(table.name))
        return replace(
            status,
            lag_records=table.lag_records,
            real_time_ms=_ms(fresh.real_time),
            read_optimised_ms=_ms(fresh.read_optimised),
            goal=table.goal,
            mirror=driver.activity.mirrors.get(str(table.name)),
            missing_changes=missing
            if missing is not None and missing.is_recent(driver.clock.now_ms())
            else None,
        )

    def _show(self) -> None:
        """Update metrics and /readyz."""
        self._unsaid = False
        known = self._known.items()
        self._driver.metrics.show_topics(
            (fed.topic, status.table, status.standing.state.value) for fed, status in known
        )
        self._driver.metrics.show_suspect_settings(
            (fed.topic, status.table, setting.name)
            for fed, status in known
            for setting in status.suspect_settings
        )
        self._health.note_troubles(
            {
                fed.topic if fed.kind == 0 else f"{fed.topic} ({status.table or 'history'})": (
                    f"{status.standing.state}: {status.standing.reason}"
                )
                for fed, status in known
                if status.standing.state in TROUBLES
            }
        )

    def _publish(self, *, running: bool) -> None:
        clock = self._driver.clock
        try:
            before_ms = clock.now_ms()
            path = self._publisher.publish(self.status(running=running))
            if clock.monotonic() - self._compared >= _CLOCK_SECONDS:
                self._compared = clock.monotonic()
                self._compare_clocks(path, before_ms)
        except LakespliceError as error:
            self._driver.log.warning("status-not-published", error=str(error))

    def _compare_clocks(self, path: str, before_ms: EpochMs) -> None:
        """Show how far the store's clock is ahead, by the file that was just written there.

        A lake in a folder has this machine's clock. So it is compared with the time that has passed
        since this driver began, too; whichever differs more is shown.
        """
        driver, after_ms = self._driver, self._driver.clock.now_ms()
        written_ms = driver.lake.modified_ms(path)
        if written_ms is None:
            return
        ahead = outside(written_ms, before_ms, after_ms)
        if driver.settings.lake.is_folder:
            ahead = max(ahead, self._passed_ahead(after_ms), key=abs)
        driver.metrics.set(metric.CLOCK_DIFFERENCE, ahead)
        driver.activity.show_clock_difference(ahead)
        differ = abs(ahead) > CLOCK_SECONDS_MAX
        if differ != self._clocks_differ:
            self._clocks_differ = differ
            if differ:
                driver.log.warning("clocks-differ", store_ahead_seconds=round(ahead))
            else:
                driver.log.info("clocks-agree")

    def _passed_ahead(self, now_ms: EpochMs) -> float:
        """How many seconds further the time is that has passed than this machine's clock."""
        began_ms, began = self._began
        return self._driver.clock.monotonic() - began - (now_ms - began_ms) / 1000


def _previous_status(driver: Driver) -> dict[tuple[str, str], TopicStatus]:
    """What the previous driver reported, so that states keep the moment when they began."""
    with suppress(LakespliceError):
        status = newest_status(driver.lake)
        if status is not None:
            return {(topic.topic, topic.table): topic for topic in status.topics}
    return {}


def _states(topics: Mapping[_Fed, TopicStatus]) -> dict[_Fed, tuple[str, ...]]:
    return {fed: _shown_state(status) for fed, status in topics.items()}


def _state(standing: TopicCondition) -> tuple[str, str]:
    """What makes a state a new one: not the moment of its retry, nor its words."""
    return standing.state.value, standing.code


def _shown_state(status: TopicStatus) -> tuple[str, ...]:
    standing = status.standing
    settings = (setting.name for setting in status.suspect_settings)
    return standing.state.value, standing.reason, *settings


def _ms(seconds: float | None) -> EpochMs | None:
    return None if seconds is None else EpochMs(round(seconds * 1000))
