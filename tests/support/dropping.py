"""A ledger whose table is dropped and created again, its topics and a driver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import Behaviour, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.dropped_tables import DropResult
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedTopic
from tests.support.dropped import Teller
from tests.support.ledgers import Ledger
from tests.support.simulated import driver_of


class Scene:
    """A ledger, its topic of two partitions, the topic of schema changes, and a driver."""

    def __init__(self, folder: Path, drop_table: Behaviour, **more: Any) -> None:
        self.ledger = Ledger("dropped", "in")
        self.topic = SimulatedTopic(self.ledger.topic, 2)
        self.policy, self.more = SchemaPolicy(drop_table=drop_table), more
        self.lake, self.generation = LocalStore(folder), 0
        self.start()
        self.store = self.lake.within(self.driver.name.path)
        self.teller = Teller(self.driver.name)

    def start(self) -> None:
        self.generation += 1
        number, more = self.generation, {"policy": self.policy, **self.more}
        self.driver = driver_of(self, self.lake, generation=number, seed=number, **more)

    def restart(self) -> None:
        """Another driver, which reads the topic of schema changes from its beginning."""
        self.start()
        self.teller.begin_anew()

    def dropped(self, keys: Sequence[int]) -> Event:
        """Drop the ledger of these keys; the place of the statement, which nothing tells of yet."""
        return self.ledger.delete(keys)[0]

    def drop(self, keys: Sequence[int]) -> None:
        """Drop the ledger of these keys, create it again, and tell of both."""
        place = self.dropped(keys)
        self.teller.drop(place)
        self.teller.create(place)

    def deal(self) -> DropResult | None:
        return self.driver.drops(self.teller.told())

    def take(self, events: Sequence[Event], partition: int = 0) -> None:
        self.topic.append(partition, events)
        self.driver.batch()

    @property
    def rows(self) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = Table(self.store).read().sort_by("id").to_pylist()
        return rows

    @property
    def keys(self) -> list[object]:
        return [row["id"] for row in self.rows]

    @property
    def parked(self) -> str:
        parked = self.driver.table.parked
        if parked is None:
            return ""
        assert parked.code in (ParkCode.DROPPED, ParkCode.ROWS_MOVED)
        return parked.detail

    def settle(self) -> None:
        """Compact, and hold both views to be the source's rows."""
        truth = self.ledger.truth.sort_by("id").to_pylist()
        assert self.rows == truth
        while self.driver.table.manifest.deltas:
            self.driver.compact()
        for view in View:
            assert Table(self.store).read(view).sort_by("id").to_pylist() == truth
        assert check(self.store, Table(self.store).snapshot).sound
