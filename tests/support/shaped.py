"""A table of people under one shape or another, driven without Spark and Kafka."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakesplice.planning.schema.policy import SchemaPolicy
from lakesplice.planning.shape.shaping import Shape
from lakesplice.storage.local import LocalStore
from lakesplice.table.protocol.ports import SchemaSource
from lakesplice.table.reading.table import Table
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import bigint, integer, varchar
from lakesplice.testing.shop.database import Row
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic

PEOPLE = TableSpec(
    "people",
    (bigint("id", optional=False), varchar("name"), varchar("email"), integer("age")),
    ("id",),
)


def aged(age: int) -> Callable[[Row], Row]:
    """The change of a person's age, for `Database.update`."""
    return lambda row: (*row[:3], age)


class Life:
    """A database's table, its topic, and drivers of the lake's table with one shape or another."""

    def __init__(self, root: Path, shape: Shape | None, policy: SchemaPolicy | None = None) -> None:
        self.root = root
        self.lake = LocalStore(str(root))
        self.database = Database((PEOPLE,), seed=1, with_schemas=True)
        self.topic = SimulatedTopic(self.database.topic("people"))
        self.drivers = 0
        self.drive(shape, policy)

    def drive(
        self,
        shape: Shape | None,
        policy: SchemaPolicy | None = None,
        schemas: SchemaSource | None = None,
    ) -> None:
        self.drivers += 1
        self.driver = SimulatedDriver(
            self.lake,
            self.topic,
            FixedClock(),
            SeededEntropy(self.drivers),
            policy=policy or SchemaPolicy(),
            shape=shape,
            schemas=schemas,
        )

    def take(self, *more: Event) -> None:
        self.topic.append(0, [*self.database.drain(), *more])
        self.driver.batch()

    @property
    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = Table(self.driver.table.store).read().sort_by("id").to_pylist()
        return rows

    def on_disk(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.root.rglob("*") if path.is_file())
