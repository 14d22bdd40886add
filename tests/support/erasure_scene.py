"""A table of six rows of which some are to be erased, and what is left of them."""

from __future__ import annotations

from pathlib import Path

from lakesplice.model.offsets import Offset
from lakesplice.planning.sources.operator_directions import moved
from lakesplice.storage.local import LocalStore
from lakesplice.table.reading.table import Table
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver
from tests.support.erasing import found
from tests.support.simulated import Source, driver_of


class Scene:
    """A table of six rows, the history of each in two partitions; 3 is deleted."""

    def __init__(self, root: Path) -> None:
        self.root, self.source = root, Source()
        self.driver: SimulatedDriver = driver_of(self.source, LocalStore(root))
        for _ in range(2):
            for key in range(6):
                self.take(*self.source.put(key), partition=key % 2)
        self.driver.compact()
        self.take(*self.source.delete(3), partition=1)

    def take(self, *events: Event, partition: int) -> None:
        self.source.topic.append(partition, events)
        self.driver.batch()

    def left(self, *keys: int) -> dict[str, int]:
        return found(self.root, self.driver.table.manifest, keys)

    def stored_keys(self) -> list[int]:
        rows = Table(self.driver.table.store).read(include_deleted=True).to_pylist()
        return sorted(row["id"] for row in rows)

    def read_all_again(self) -> None:
        self.driver.table.continue_at(
            lambda source: moved(source, {0: Offset(0), 1: Offset(0)}), "again"
        )
        self.driver.batch()
