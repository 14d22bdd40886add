"""The tables of a running driver, and what metrics and logs say of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.freshness import Freshness, Sightings
from lakesplice.apps.service.gauges import CHANGE_OPS, count_commit, show_snapshot
from lakesplice.errors import UsageError
from lakesplice.model.manifest import ParkReason, PartitionState, SourceState
from lakesplice.model.names import TableName
from lakesplice.spark.topics import Topic
from lakesplice.table.commit import NOTHING_TOLD, Committed, Conflict
from lakesplice.table.held import HeldTable
from lakesplice.table.intents import Ingest, Intent, Splice
from lakesplice.table.snapshot import Snapshot
from lakesplice.telemetry.catalogue import COMMIT_SECONDS, LAG

_REST_SECONDS = (1.0, 2.0, 5.0, 10.0, 30.0)


class ServiceTable(HeldTable):
    """A held table that tells metrics and logs what happens to it.

    A `refused` table is passed over by the running query: it read on from elsewhere than the table
    stands. One that `rests` is left out of the queries for a while. `origin` is the source's name
    of it, by which the configuration knows it.
    """

    def __init__(
        self,
        driver: Driver,
        name: TableName,
        source: SourceState,
        origin: TableName | None = None,
    ) -> None:
        self.origin = origin or name
        super().__init__(
            driver.lake.within(name.path),
            source,
            driver.generation.number,
            driver.clock,
            driver.entropy,
            log_retention_hours=max(1, round(driver.settings.retention(self.origin) / 3600)),
        )
        self._driver = driver
        self.name = name
        entry = driver.settings.table(self.origin)
        self.whole_snapshots = entry is None or entry.whole_snapshots
        self.refused = False
        self.changes_in = 0
        self.compactions = 0
        self._trips = 0
        self._rests_until = 0.0
        self._sightings = Sightings()
        self.show()

    @property
    def rests(self) -> bool:
        """Whether it is too early to try again what failed."""
        return self._driver.clock.monotonic() < self._rests_until

    def rest(self) -> None:
        """Rest after a failure that may pass, longer each time until `go_on` is called.

        Else queries, which start anew after a failure, would do so without end, for all tables.
        """
        seconds = _REST_SECONDS[min(self._trips, len(_REST_SECONDS) - 1)]
        self._trips += 1
        self._rests_until = self._driver.clock.monotonic() + seconds

    def go_on(self) -> None:
        """Forget failures that have passed."""
        self._trips = 0

    def commit(
        self, intent: Intent, told: Mapping[str, str] = NOTHING_TOLD
    ) -> Committed | Conflict:
        """See `HeldTable.commit`."""
        driver = self._driver
        driver.kill_point(f"before-commit:{type(intent).__name__.lower()}")
        with driver.metrics.timed(COMMIT_SECONDS):
            outcome = super().commit(intent, told)
        driver.kill_point(f"after-commit:{type(intent).__name__.lower()}")
        if isinstance(outcome, Committed):
            self._note(intent)
        count_commit(driver.metrics, self.name, intent, outcome)
        return outcome

    def park(self, reason: ParkReason) -> None:
        """See `HeldTable.park`."""
        self._driver.log.warning(
            "table-parked", table=str(self.name), code=reason.code.value, detail=reason.detail
        )
        super().park(reason)

    def sight(self, topic: Topic, moment: float) -> None:
        """Note how far the topic reached at `moment`, in seconds since the epoch."""
        self._sightings.add(topic.latest, moment)
        offsets = topic.behind(self.next_offsets(topic.earliest))
        self._driver.metrics.set(LAG, offsets, table=str(self.name))
        self.show()

    def freshness(self) -> Freshness:
        """Return up to when the table's views are sure to be complete."""
        offsets = self.next_offsets(self.source.partitions)
        return self._sightings.freshness(self.manifest, offsets)

    def show(self) -> None:
        """Bring the table's metrics up to date."""
        show_snapshot(self._driver.metrics, self.name, self.snapshot, self.freshness())

    def _note(self, intent: Intent) -> None:
        if isinstance(intent, Ingest):
            self.changes_in += sum(intent.counts.get(op, 0) for op in CHANGE_OPS)
        elif isinstance(intent, Splice):
            self.compactions += 1

    def _hold(self, snapshot: Snapshot) -> None:
        super()._hold(snapshot)
        self.show()


class ServiceTables:
    """All tables by topic. `get` and iteration are safe from any thread."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._tables: dict[str, ServiceTable] = {}

    def __iter__(self) -> Iterator[ServiceTable]:
        return iter(list(self._tables.values()))

    def __len__(self) -> int:
        return len(self._tables)

    def get(self, topic: str) -> ServiceTable | None:
        """Return the topic's table, if the driver holds it."""
        return self._tables.get(topic)

    def take_up(self, topic: str, source: SourceState) -> ServiceTable:
        """Return the topic's table, opened if it is new to the driver.

        `UsageError` if another topic is for the same table.
        """
        table = self._tables.get(topic)
        if table is None:
            origin = TableName.from_topic(topic)
            name = self._driver.settings.target(origin)
            other = next((t.source.topic for t in self if t.name == name), None)
            if other is not None:
                raise UsageError(
                    "two topics are for one table; read one of them (kafka.topic_pattern, tables)",
                    table=str(name),
                    topic=topic,
                    taken_by=other,
                )
            self._driver.metrics.register_table(str(name))
            table = self._tables[topic] = ServiceTable(self._driver, name, source, origin)
        return table


def unborn_source(topic: str, topic_id: str, earliest: Mapping[int, int]) -> SourceState:
    """Return the source of a table that starts at the beginning of its topic."""
    partitions = {number: PartitionState(offset) for number, offset in earliest.items()}
    return SourceState(topic, topic_id, partitions)
