"""A simulated driver's table whose versions are hours apart."""

from __future__ import annotations

from pathlib import Path

from lakesplice.model.offsets import Offset
from lakesplice.storage.local import LocalStore
from lakesplice.table.upkeep.restore import restore
from lakesplice.testing.doubles import FixedClock
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.simulated import Source, driver_of, require_finished, require_true

HOUR = 3_600


class Hourly:
    """A table that a source feeds; its versions are hours apart."""

    def __init__(self, folder: Path) -> None:
        self.source, self.clock, self.folder = Source(), FixedClock(), folder
        self.driver = self.new_driver(1)

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.folder).within(self.driver.name.path)

    def new_driver(self, generation: int) -> SimulatedDriver:
        lake = LocalStore(self.folder)
        return driver_of(
            self.source, lake, generation=generation, seed=generation, clock=self.clock
        )

    def live(self, *keys: int) -> int:
        """Change rows, take them in and compact; the version after it."""
        for key in keys:
            self.source.topic.append(key % 2, self.source.put(key))
        self.clock.advance(HOUR)
        self.driver.batch()
        self.driver.compact()
        return self.driver.table.version

    def read_again(self) -> None:
        """Take in what the table, which went back, has not got, by another driver in two batches;
        it ends in the truth.
        """
        driver = self.driver = self.new_driver(2)
        driver.batch({at: Offset(end - 1) for at, end in self.source.topic.ends.items()})
        require_true(self.source, self.store)
        driver.batch()
        driver.compact()
        driver.merge_runs(2)
        require_finished(self.source, driver)

    def restore(self, version: int) -> int:
        table = self.driver.table
        assert table.snapshot is not None
        return restore(
            table.store,
            table.snapshot,
            version,
            table.commit,
            table.generation,
            retries=table.retries(),
        ).version
