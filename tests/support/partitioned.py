"""A table with partition columns that two topic partitions feed, and the rows that other readers
see.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable

from lakesplice.model.parking import ParkCode
from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import Clock
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.faulty_store import FaultyStore
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.altered import event
from tests.support.simulated import rows_of

ALL = 1 << 60
BY_NAME = SchemaPolicy(partition_by=("name",))
INT = {"id": "int32", "n": "int32", "name": "string"}
WITHOUT_N = {"id": "int32", "name": "string"}
WITHOUT_NAME = {"id": "int32", "n": "int32"}
MORE = {**INT, "c": "int32"}


def row(id_: int, n: int | None, name: str | None) -> dict[str, Any]:
    return {"id": id_, "n": n, "name": name}


class Life:
    """A topic of two partitions and the driver of its table."""

    def __init__(
        self,
        root: Path,
        policy: SchemaPolicy = BY_NAME,
        shape: Shape | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or FixedClock()
        self.root = root / "s" / "t"
        self.lake = LocalStore(str(root))
        self.topic = SimulatedTopic("t.s.t", 2)
        self.seed = 0
        self.drive(policy, shape)

    def drive(self, policy: SchemaPolicy = BY_NAME, shape: Shape | None = None) -> None:
        self.seed += 1
        self.driver = SimulatedDriver(
            self.lake,
            self.topic,
            self.clock,
            SeededEntropy(self.seed),
            ranges=2,
            policy=policy,
            shape=shape,
        )
        self.store = self.lake.within("s/t")

    def take(self, *events: Event, partition: int = 0) -> None:
        self.topic.append(partition, events)
        self.driver.batch()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return rows_of(self.store)

    @property
    def merged(self) -> list[dict[str, Any]]:
        self.driver.compact()
        return rows_of(self.store, View.READ_OPTIMISED)

    @property
    def partitions(self) -> list[tuple[str | None, ...]]:
        found = [file.partition for file in self.driver.table.manifest.files.values()]
        return sorted(found, key=str)

    def parked(self) -> tuple[ParkCode, str]:
        parked = self.driver.table.manifest.parked
        assert parked is not None
        return parked.code, parked.detail


def elsewhere(life: Life, name: str) -> list[int]:
    """The keys of live rows in the files that a Delta reader finds for a partition."""
    predicate = f"name = '{name}'" if name else "name is null"
    paths = DeltaTable(str(life.root)).file_uris(file_pruning_predicate=predicate)
    rows = [row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]
    return sorted(row["id"] for row in rows if not row["_is_deleted"])


def found_elsewhere(life: Life) -> list[tuple[Any, ...]]:
    """The live rows of the newest version, as Delta readers have them."""
    with duckdb.connect() as database:
        database.register("rows", DeltaTable(str(life.root)).to_pyarrow_table())
        found = database.sql("SELECT id, n, name FROM rows WHERE NOT _is_deleted ORDER BY id")
        return list(found.fetchall())


def rival_of(life: Life, lake: FaultyStore) -> SimulatedDriver:
    seed = SeededEntropy(99)
    return SimulatedDriver(lake, life.topic, FixedClock(), seed, ranges=2, policy=BY_NAME)


def sound(life: Life) -> bool:
    report = check(life.store, Table(life.store).snapshot)
    return report.sound and not report.duplicates


def begun(folder: Path, clock: Clock | None = None) -> Life:
    """With rows 1 and 2 in partition a, 3 in b, and 4 where the column is null."""
    found = Life(folder, clock=clock)
    found.take(*(event(INT, 10 + at, row(at, at, "a")) for at in (1, 2)))
    found.take(event(INT, 13, row(3, 3, "b")), event(INT, 14, row(4, 4, None)))
    return found
