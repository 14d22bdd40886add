"""Servers whose positions begin at the same numbers, and the table that their shards become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakesplice.planning.schema.policy import DEFAULT_POLICY, SchemaPolicy
from lakesplice.planning.shape.metadata_columns import MetadataContent
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.ingest.batch_commit import CommitOutcome
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.simulated import SMALL, row, truncate_at

SHAPE = Shape(metadata=(("database_name", MetadataContent.DATABASE_NAME),), key=("database_name",))


class Shard:
    """A server with a table of its own, and the driver that takes it."""

    def __init__(
        self,
        lake: LocalStore,
        number: int,
        beside: Shard | None = None,
        policy: SchemaPolicy = DEFAULT_POLICY,
        *,
        keeps_versions: bool = False,
    ) -> None:
        self.policy = policy
        self.keeps_versions = keeps_versions
        # One seed: the servers write the same binlog files, at the same offsets.
        self.database = Database((SMALL,), server=f"s{number}", database=f"shop_{number}")
        self.topic = SimulatedTopic(self.database.topic(SMALL.name), 2, f"topic-{number}")
        self.name = f"shop_{number}"
        self.lake = lake
        self.start(beside)

    def start(self, beside: Shard | None, generation: int = 1) -> None:
        self.driver: SimulatedDriver = SimulatedDriver(
            self.lake,
            self.topic,
            FixedClock(),
            SeededEntropy(7 * generation + int(self.name[-1])),
            generation=generation,
            ranges=2,
            read_tasks=2,
            shape=SHAPE,
            policy=self.policy,
            keeps_versions=self.keeps_versions,
            beside=beside.driver if beside is not None else None,
        )

    def send(self, partition: int = 0) -> list[Event]:
        events = self.database.drain()
        self.topic.append(partition, events)
        return events

    def put(self, *keys: int, value: int = 1) -> None:
        for key in keys:
            if (key,) in self.database.rows(SMALL.name):
                self.database.update(SMALL.name, [(key,)], lambda r: (r[0], f"v{value}", *r[2:]))
            else:
                more = len(self.database.tables[0].columns) - 3
                self.database.insert(SMALL.name, [(*row(key, value), *[value] * more)])
        self.send()

    def drop(self, *keys: int) -> None:
        for key in keys:
            self.database.delete(SMALL.name, [(key,)])
        self.send()

    def truncate(self) -> None:
        keys = [key for key, _ in self.database.rows(SMALL.name).items()]
        self.database.delete(SMALL.name, keys)
        event = self.database.drain()[0]
        told = truncate_at(event)
        self.topic.append(0, [told])

    @property
    def rows(self) -> list[dict[str, Any]]:
        names = [column.name for column in self.database.tables[0].columns]
        return [
            {"database_name": self.name, **dict(zip(names, image.values, strict=True))}
            for _, image in self.database.rows(SMALL.name).items()
        ]


class Scene:
    def __init__(
        self, folder: Path, policy: SchemaPolicy = DEFAULT_POLICY, *, keeps_versions: bool = False
    ) -> None:
        self.lake = LocalStore(folder)
        first = Shard(self.lake, 0, policy=policy, keeps_versions=keeps_versions)
        second = Shard(self.lake, 1, first, policy, keeps_versions=keeps_versions)
        self.shards = [first, second]
        self.store = self.lake.within(first.driver.name.path)

    @property
    def first(self) -> Shard:
        return self.shards[0]

    @property
    def second(self) -> Shard:
        return self.shards[1]

    def batch(self) -> None:
        for shard in self.shards:
            assert shard.driver.batch() is CommitOutcome.DONE

    def holds(self, *views: View) -> None:
        table = Table(self.store)
        assert table.snapshot.manifest.parkings == ()
        names = table.schema.names
        truth = [
            {name: found.get(name) for name in names}
            for shard in self.shards
            for found in shard.rows
        ]
        for view in views:
            assert by_key(table.read(view).to_pylist()) == by_key(truth)

    def settle(self) -> None:
        """Take all there is, compact, and hold both views to be what the shards hold."""
        self.batch()
        self.holds(View.REAL_TIME)
        while self.first.driver.table.manifest.deltas:
            self.first.driver.compact()
        self.holds(*View)
        found = check(self.store, Table(self.store).snapshot)
        assert found.sound
        assert not found.duplicates


def by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda found: (found["database_name"], found["id"]))


def filled(scene: Scene, rows: int = 5) -> Scene:
    """Equal keys at equal positions in both shards."""
    for shard in scene.shards:
        shard.put(*range(rows))
    scene.settle()
    return scene
