"""A table's life in a few steps with every kind of commit; tests interrupt it anywhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from lakesplice.errors import UsageError, VersionNotFoundError
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset, Offsets
from lakesplice.storage.stores import AnyStore, log_keeper
from lakesplice.table.protocol.commit import Conflict
from lakesplice.table.protocol.ports import Store
from lakesplice.table.upkeep.expiry import Expired, Expiry
from lakesplice.table.upkeep.log_maintenance import Maintenance, clean_up
from lakesplice.table.upkeep.orphans import Orphans
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import Source, driver_of
from tests.support.traps import require_excused

ALL_MS = 1 << 62


class Scenario:
    """The source's events are written beforehand; `play` and `finish` act on the lake alone."""

    def __init__(self) -> None:
        self.source = Source()
        self.clock = FixedClock()
        self.cuts: list[dict[int, Offset]] = []
        put, topic = self.source.put, self.source.topic
        for key in range(6):
            topic.append(key % 2, put(key))
        self._cut()
        for key in (0, 1, 6, 7):
            topic.append(key % 2, put(key))
        topic.append(0, self.source.delete(2))
        self._cut()
        for key in (1, 3, 7):
            topic.append(key % 2, put(key))
        topic.append(1, self.source.move(4, 8))
        self._cut()
        self.source.add_column("added", 5)
        for key in (0, 2, 5, 5):
            topic.append(0, put(key))
        self._cut()

    def driver(self, lake: Store, generation: int = 1, seed: int | None = None) -> SimulatedDriver:
        """A driver that draws the names of its files from `seed`, by default its generation."""
        return driver_of(
            self.source,
            lake,
            generation=generation,
            seed=generation if seed is None else seed,
            clock=self.clock,
        )

    def steps(self, bare: AnyStore, lake: Store) -> list[Callable[[], object]]:
        """The steps of one driver's life on a lake that may fail, whose store is `bare`; one that
        fails may be followed by the next.
        """
        driver = self.driver(lake)
        store = driver.table.store
        keeper = log_keeper(bare.within(driver.name.path))
        expiry = Expiry(store, driver.table.commit, 1)
        log = Maintenance(
            store, keeper, self.clock, checkpoint_every=1, retention_seconds=0, expiry=expiry
        )

        def attempt(ends: Offsets | None = None) -> object:
            return require_excused(driver.attempt(ends))

        def race() -> object:
            planned = driver.plan_compaction()
            attempt(self.cuts[2])
            return None if planned is None else driver.table.commit(planned)

        def merge_race() -> object:
            planned = driver.plan_file_merge(2)
            attempt({**self.cuts[2], 0: Offset(self.cuts[2][0] + 1)})
            return None if planned is None else driver.table.commit(planned)

        def care() -> object:
            self.clock.advance(3600)
            if driver.table.snapshot is not None:
                log.care(driver.table.snapshot)
            return vacuum() and clean_up(store, self.clock.now_ms())

        def vacuum() -> bool:
            self.clock.advance(3600)
            if driver.table.snapshot is None:
                return False
            done = expiry.run(driver.table.snapshot, self.clock.now_ms())
            return isinstance(done, Expired) and done.done

        def sweep() -> object:
            if driver.table.snapshot is None:
                return None
            orphans = Orphans(store, driver.table.commit, 1)
            return orphans.sweep(driver.table.snapshot, EpochMs(ALL_MS), at_once=True)

        def go_back() -> object:
            table = driver.table
            if table.snapshot is None:
                return None
            # Where the store failed, that version may never have been, or be the newest one.
            with suppress(UsageError, VersionNotFoundError):
                restore(
                    store,
                    table.snapshot,
                    max(0, table.version - 2),
                    table.commit,
                    1,
                    retries=table.retries(),
                )
            return None

        return [
            lambda: attempt(self.cuts[0]),
            lambda: driver.table.set_change_feed(on=True),
            lambda: attempt(self.cuts[1]),
            race,
            lambda: driver.merge_runs(2),
            merge_race,
            lambda: self._cluster_beside_a_batch(driver, attempt),
            care,
            lambda: attempt(self.cuts[3]),
            driver.compact,
            go_back,
            attempt,
            sweep,
            vacuum,
        ]

    def finish(self, lake: Store) -> SimulatedDriver:
        """What the next driver makes of what it finds."""
        driver = self.driver(lake, generation=2)
        driver.batch()
        driver.merge_runs(2)
        driver.compact()
        return driver

    def tidy(self, driver: SimulatedDriver) -> None:
        """Vacuum all that the newest version does not need, as the next driver's services would."""
        assert driver.table.snapshot is not None
        self.clock.advance(3600)
        table, store = driver.table, driver.table.store
        Expiry(store, table.commit, 2).run(driver.table.snapshot, self.clock.now_ms())
        Orphans(store, table.commit, 2).sweep(driver.table.snapshot, EpochMs(ALL_MS), at_once=True)

    def _cluster_beside_a_batch(
        self, driver: SimulatedDriver, batch: Callable[[Offsets], object]
    ) -> None:
        table, clustering = driver.table, driver.clustering(("n", "id"))
        if table.snapshot is not None:
            planned = clustering.plan(table.snapshot, table.generation)
            batch({**self.cuts[2], 0: Offset(self.cuts[2][0] + 2)})
            if planned is not None and isinstance(table.commit(planned), Conflict):
                planned = clustering.plan(table.snapshot, table.generation)
                if planned is not None:
                    table.commit(planned)

    def _cut(self) -> None:
        self.cuts.append(self.source.topic.ends)
