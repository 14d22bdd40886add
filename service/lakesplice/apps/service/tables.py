"""The tables of a running driver: the newest snapshot of each, and every commit to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from lakesplice.apps.service.driver import Driver
from lakesplice.apps.service.gauges import CHANGE_OPS, Freshness, count_commit, show_snapshot
from lakesplice.errors import TableNotFoundError, UsageError
from lakesplice.model.manifest import Manifest, ParkReason, PartitionState, SourceState
from lakesplice.model.names import TableName
from lakesplice.model.schema import TableSchema
from lakesplice.table.commit import Committed, Conflict, commit, create
from lakesplice.table.intents import Create, Evolve, Ingest, Intent, Redirect, Splice
from lakesplice.table.snapshot import Snapshot, latest, open_snapshot
from lakesplice.telemetry.catalogue import COMMIT_SECONDS

_PARK_ATTEMPTS = 10


class ServiceTable:
    """One table as the driver holds it. Ingest and compaction commit to it from several threads.

    `source` is where an unborn table (one without a snapshot) will start. A `refused` table is
    passed over by the running query: it read on from elsewhere than the table stands.
    """

    def __init__(self, driver: Driver, name: TableName, source: SourceState) -> None:
        self._driver = driver
        self._lock = threading.Lock()
        self.name = name
        self.store = driver.lake.within(name.path)
        self.snapshot = _open(self)
        self.refused = False
        self.changes_in = 0
        self.compactions = 0
        self._caught_up: float | None = None
        self._unborn_source = source
        self.show()

    @property
    def manifest(self) -> Manifest:
        """The present manifest; that of an unborn table is empty but for its source."""
        if self.snapshot is None:
            return Manifest(0, source=self._unborn_source)
        return self.snapshot.manifest

    @property
    def source(self) -> SourceState:
        """Where the table stands in its topic."""
        return self.manifest.source or self._unborn_source

    @property
    def schema(self) -> TableSchema:
        """The present schema; empty while the table has no columns."""
        return self.manifest.schema

    @property
    def parked(self) -> ParkReason | None:
        """Why the table is parked, or None."""
        return self.manifest.parked

    def commit(self, intent: Intent) -> Committed | Conflict:
        """Commit and keep the new snapshot; see `lakesplice.table.commit.commit`."""
        driver = self._driver
        driver.kill_point(f"before-commit:{type(intent).__name__.lower()}")
        with driver.metrics.timed(COMMIT_SECONDS):
            if isinstance(intent, Create):
                outcome = create(self.store, intent, clock=driver.clock, entropy=driver.entropy)
            else:
                known = self.snapshot or open_snapshot(self.store)
                outcome = commit(
                    self.store, known, intent, clock=driver.clock, entropy=driver.entropy
                )
        driver.kill_point(f"after-commit:{type(intent).__name__.lower()}")
        if isinstance(outcome, Committed):
            self._keep(outcome.snapshot)
            self._note(intent)
        elif self.snapshot is not None:
            self._keep(latest(self.store, self.snapshot))
        count_commit(driver.metrics, self.name, intent, outcome)
        return outcome

    def be_born(self, schema: TableSchema, parked: ParkReason | None = None) -> None:
        """Make version 0, at the start of the source; a table that another driver made is taken up."""
        if self.snapshot is not None:
            return
        hours = max(1, round(self._driver.settings.log.retention / 3600))
        intent = Create(self._driver.generation.number, schema, self._unborn_source, parked, hours)
        if isinstance(self.commit(intent), Conflict):
            self._keep(open_snapshot(self.store))

    def evolve(self, schema: TableSchema) -> Committed | Conflict:
        """Make `schema`, which extends the present one, the table's schema."""
        number = self._driver.generation.number
        return self.commit(Evolve.of(number, self.manifest, schema))

    def park(self, reason: ParkReason) -> None:
        """Park the table where it stands; a table that is parked already stays as it is."""
        self._driver.log.warning(
            "table-parked", table=str(self.name), code=reason.code.value, detail=reason.detail
        )
        if self.snapshot is None:
            self.be_born(TableSchema(), reason)
        for _ in range(_PARK_ATTEMPTS):
            if self.snapshot is None or self.parked is not None:
                return
            number = self._driver.generation.number
            intent = Redirect(number, self.snapshot.version, parked=reason)
            if isinstance(self.commit(intent), Committed):
                return

    def caught_up(self, moment: float) -> None:
        """Note that all the topic held at `moment`, in seconds since the epoch, is committed."""
        self._caught_up = moment
        self.show()

    def freshness(self) -> Freshness:
        """Return up to when the table's views are sure to be complete."""
        return Freshness.of(self.manifest, self._caught_up)

    def show(self) -> None:
        """Bring the table's metrics up to date."""
        show_snapshot(self._driver.metrics, self.name, self.snapshot, self.freshness())

    def _note(self, intent: Intent) -> None:
        if isinstance(intent, Ingest):
            self.changes_in += sum(intent.counts.get(op, 0) for op in CHANGE_OPS)
        elif isinstance(intent, Splice):
            self.compactions += 1

    def _keep(self, snapshot: Snapshot) -> None:
        with self._lock:
            if self.snapshot is None or snapshot.version > self.snapshot.version:
                self.snapshot = snapshot
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
            name = TableName.from_topic(topic)
            other = next((t.source.topic for t in self if t.name == name), None)
            if other is not None:
                raise UsageError(
                    "two topics are for one table; let kafka.topic_pattern match one of them",
                    table=str(name),
                    topic=topic,
                    taken_by=other,
                )
            self._driver.metrics.register_table(str(name))
            table = self._tables[topic] = ServiceTable(self._driver, name, source)
        return table


def unborn_source(topic: str, topic_id: str, earliest: Mapping[int, int]) -> SourceState:
    """Return the source of a table that starts at the beginning of its topic."""
    partitions = {number: PartitionState(offset) for number, offset in earliest.items()}
    return SourceState(topic, topic_id, partitions)


def _open(table: ServiceTable) -> Snapshot | None:
    try:
        return open_snapshot(table.store)
    except TableNotFoundError:
        return None
