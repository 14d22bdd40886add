"""One table of a running driver, for one of its topics, and what metrics and logs report of it."""

from __future__ import annotations

from collections.abc import Mapping

from lakesplice.apps.service.activity import ChangeRate
from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.retry_pauses import RetryPauses
from lakesplice.apps.service.tables.freshness import Freshness, TopicProgress, least_fresh
from lakesplice.apps.service.tables.gauges import (
    CHANGE_OPS,
    count_commit,
    log_commit,
    operation_of,
    show_freshness,
    show_snapshot,
)
from lakesplice.apps.service.tables.setting_warnings import SettingWarnings
from lakesplice.errors import FencedError, ForeignCommitError, LakespliceError, StorageError
from lakesplice.model.driver_status import FreshnessGoal, TopicCondition, TopicState, strictest
from lakesplice.model.moments import EpochSeconds
from lakesplice.model.names import TableName
from lakesplice.model.offsets import Offsets
from lakesplice.model.parking import ParkReason
from lakesplice.model.progress.source_state import SourceState
from lakesplice.spark.kafka.topics import Topic
from lakesplice.table.ingest.driver_table import DriverTable
from lakesplice.table.protocol.commit import NO_PARAMETERS, Committed, Conflict
from lakesplice.table.protocol.intents import Ingest, Intent, Splice
from lakesplice.table.protocol.snapshot import Snapshot
from lakesplice.telemetry.catalogue import COMMIT_SECONDS, LAG

_RATE_SECONDS_MIN = 60.0


class ServiceTable(DriverTable):
    """A table, for one of its topics, that reports what happens to it in metrics and logs.

    A `refused` table is skipped by the running query, which reads from other offsets than the
    table's. A table that `rests` is left out of the queries for a while. `origin` is its name at
    the source, by which the configuration knows it. `beside` is the table's object for another
    topic, `known` a version of it that was read before.
    """

    def __init__(
        self,
        driver: Driver,
        name: TableName,
        source: SourceState,
        origin: TableName | None = None,
        beside: ServiceTable | None = None,
        known: Snapshot | None = None,
    ) -> None:
        self.origin = origin or name
        self.topic = source.topic
        # All objects of the table, including this one: metrics show the table with all its topics.
        self.holders: list[ServiceTable] = [] if beside is None else beside.holders
        super().__init__(
            driver.lake.within(name.path),
            source,
            driver.generation.number,
            driver.clock,
            driver.entropy,
            log_retention_hours=max(1, round(driver.settings.retention(self.origin) / 3600)),
            beside=beside,
            known=known,
        )
        self._driver = driver
        self.name = name
        self._own_goal = driver.settings.freshness_goal(self.origin)
        entry = driver.settings.table(self.origin)
        self.whole_snapshots = entry is None or entry.whole_snapshots
        self._own_feed = None if entry is None else entry.change_feed
        self.begins_with_feed = self.wants_change_feed is True
        self._own_cluster_by = () if entry is None else entry.cluster_by
        self._own_mirror = entry is not None and "iceberg" in entry.also
        self.refused = False
        self.changes_in = 0
        self.compactions = 0
        self._rate = ChangeRate(driver.clock, max(_RATE_SECONDS_MIN, 2 * driver.settings.trigger))
        self.setting_warnings = SettingWarnings(self.topic, driver.clock, driver.log)
        self._rest = RetryPauses(driver.clock)
        self._unwritable = False
        self._to_park: ParkReason | None = None
        self._reported: ParkReason | None = None
        self._sightings = TopicProgress()
        self._lag: int | None = None
        self.holders.append(self)
        self._show()

    @property
    def wants_change_feed(self) -> bool | None:
        """Whether the settings ask for a change feed, for any of its topics; None if no setting
        says anything.
        """
        asked = {holder._own_feed for holder in self.holders} | {self._own_feed}  # noqa: SLF001
        return True if True in asked else (False if False in asked else None)

    @property
    def cluster_by(self) -> tuple[str, ...]:
        """The columns by which the settings of any of its topics lay the table out; none if no
        setting says so.
        """
        chosen = (holder._own_cluster_by for holder in self.holders)  # noqa: SLF001
        return next((by for by in chosen if by), ())

    @property
    def wants_mirror(self) -> bool:
        """Whether the settings ask for an Iceberg mirror, for any of its topics."""
        return any(holder._own_mirror for holder in self.holders)  # noqa: SLF001

    @property
    def rests(self) -> bool:
        """Whether it is too early to retry what failed."""
        return self._rest.is_on

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to advance the table failed, and none has succeeded since."""
        return self._rest.failures > 0

    @property
    def is_left_out(self) -> bool:
        """Whether the running query skips the table until a pause is over."""
        return self.is_failing and self.refused

    def rest(self, reason: str, *, unwritable: bool = False) -> None:
        """Begin a pause after a failure that may pass, longer each time until `forget_failures` is
        called.

        `unwritable`: the store failed, so it is tried before anything else is written.
        """
        self._unwritable = unwritable
        seconds = self._rest.begin(reason)
        self._driver.log.warning(
            "table-rests",
            table=str(self.name),
            topic=self.topic,
            reason=reason,
            seconds=seconds,
            failures=self._rest.failures,
        )

    def may_resume(self) -> bool:
        """Whether the table was left out and can be read again; blocks on the store.

        A table that still can't be written begins another pause.
        """
        if self.rests or not self.is_left_out:
            return False
        if self._to_park is not None:
            self._park(self._to_park)
            return False
        if self._unwritable:
            try:
                self.require_writable()
            except StorageError as error:
                self.rest(str(error), unwritable=True)
                return False
        return True

    @property
    def is_unwritable(self) -> bool:
        """Whether the store failed when the table was last written, for any of its topics."""
        return any(one.is_failing and one._unwritable for one in self.holders)  # noqa: SLF001

    @property
    def is_given_up(self) -> bool:
        """Whether the table failed so often that `run --once` needn't wait for it."""
        return self._rest.is_given_up

    def forget_failures(self) -> None:
        """Forget failures that have passed."""
        if self._to_park is None:
            self._rest.end()

    @property
    def condition(self) -> TopicCondition:
        """The topic's state and the reason."""
        parked = self.parked
        if parked is not None:
            unsaid = f" ({self._rest.reason})" if self._to_park is not None else ""
            return TopicCondition(TopicState.PARKED, f"{parked.detail}{unsaid}", parked.code.value)
        if self.is_failing:
            return TopicCondition(TopicState.RESTING, self._rest.reason, "", self._rest.retry_ms)
        if self.snapshot is None:
            return TopicCondition(TopicState.WAITING, "the topic has had no change yet")
        return TopicCondition(TopicState.RUNNING)

    @property
    def lag_records(self) -> int | None:
        """How many records of the topic weren't committed when it was last looked at."""
        return self._lag

    def commit(
        self, intent: Intent, parameters: Mapping[str, str] = NO_PARAMETERS
    ) -> Committed | Conflict:
        """See `DriverTable.commit`."""
        driver = self._driver
        driver.kill_point(f"before-commit:{type(intent).__name__.lower()}")
        operation = operation_of(intent)
        with (
            driver.metrics.timed(COMMIT_SECONDS),
            driver.tracing.span("commit", table=str(self.name), operation=operation) as span,
        ):
            outcome = super().commit(intent, parameters)
            if isinstance(outcome, Committed):
                span.note(version=outcome.snapshot.version)
            else:
                span.note(conflict=outcome.reason.value)
        driver.kill_point(f"after-commit:{type(intent).__name__.lower()}")
        if isinstance(outcome, Committed):
            self._note(intent)
            log_commit(driver.log, self.name, intent, outcome)
        count_commit(driver.metrics, self.name, intent, outcome)
        return outcome

    @property
    def parked(self) -> ParkReason | None:
        """See `DriverTable.parked`; also a reason to park that couldn't be written yet.

        It is found only once, so nothing may be read until it is written.
        """
        return self._to_park or super().parked

    def park(self, reason: ParkReason) -> None:
        """See `DriverTable.park`; if that fails, the table rests and parking is retried."""
        self._report(reason)
        self._park(reason)

    def report_parking(self) -> None:
        """Log why the table is parked, unless that was logged already."""
        if self.parked is not None:
            self._report(self.parked)

    def _report(self, reason: ParkReason) -> None:
        if reason != self._reported:
            self._reported = reason
            self._driver.log.warning(
                "table-parked", table=str(self.name), code=reason.code.value, detail=reason.detail
            )

    def _park(self, reason: ParkReason) -> None:
        self._to_park = None
        try:
            super().park(reason)
            self.forget_failures()
        except FencedError:
            raise
        except ForeignCommitError as error:
            # Nothing can be committed until that is undone; other reasons are found again then.
            self.refused = True
            self.rest(str(error))
        except LakespliceError as error:
            self._to_park = reason
            self.refused = True
            detail = f"the table can't be parked, since the store can't be written: {error}"
            self.rest(detail, unwritable=isinstance(error, StorageError))

    def note_topic_ends(self, topic: Topic, moment: EpochSeconds) -> None:
        """Record how far the topic reached at `moment`."""
        self._sightings.add(topic.latest, moment)
        self._lag = topic.behind(self.next_offsets(topic.earliest))
        offsets = sum(holder._lag or 0 for holder in self.holders)  # noqa: SLF001
        self._driver.metrics.set(LAG, offsets, table=str(self.name))
        self._show_freshness()

    @property
    def changes_per_second(self) -> float | None:
        """How many changes per second were committed lately, over all topics; None if unknown."""
        return self.holders[0]._rate.per_second  # noqa: SLF001

    def has_committed(self, earliest: Offsets, ends: Offsets) -> bool:
        """Whether all records before `ends` that the topic still has are committed."""
        offsets = self.next_offsets(earliest)
        return all(max(offsets.get(at, 0), earliest.get(at, 0)) >= end for at, end in ends.items())

    def note_complete_up_to(self, moment: EpochSeconds) -> None:
        """Record that what is committed is complete up to `moment`."""
        self._sightings.note_complete(moment, self.next_offsets(self.source.partitions))
        self._show_freshness()

    def freshness(self) -> Freshness:
        """Return up to which moment the table's views are certainly complete, for all its
        topics.
        """
        return least_fresh([holder._own_freshness() for holder in self.holders])  # noqa: SLF001

    def _own_freshness(self) -> Freshness:
        source = self.source
        offsets = self.next_offsets(source.partitions)
        return self._sightings.freshness(self.manifest, offsets, source.topic)

    @property
    def goal(self) -> FreshnessGoal:
        """The table's freshness goal: the strictest of all its topics."""
        return strictest(holder._own_goal for holder in self.holders) or self._own_goal  # noqa: SLF001

    def _show(self) -> None:
        self._show_freshness()
        if self.snapshot is not None:
            show_snapshot(self._driver.metrics, self.name, self.snapshot)

    def _show_freshness(self) -> None:
        show_freshness(self._driver.metrics, self.name, self.freshness(), self.goal)

    def _note(self, intent: Intent) -> None:
        first = self.holders[0]
        if isinstance(intent, Ingest):
            changes = sum(intent.counts.get(op, 0) for op in CHANGE_OPS)
            first.changes_in += changes
            first._rate.add(changes)  # noqa: SLF001
        elif isinstance(intent, Splice):
            first.compactions += 1

    def keep_newest(self, snapshot: Snapshot) -> None:
        """See `NewestTable.keep_newest`; what changed is shown."""
        super().keep_newest(snapshot)
        if super().parked is None:
            self._reported = None
        self._show()
