"""Topics with row images that lack columns, and the driver that reads them into a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lakesplice.formats.events import declare
from lakesplice.planning.schema.policy import PartialImages, SchemaPolicy
from lakesplice.storage.local import LocalStore
from lakesplice.table.files.dead_letters import dead_letters_of
from lakesplice.table.reading.scan import View
from lakesplice.table.reading.table import Table
from lakesplice.table.upkeep.index_check import check
from lakesplice.testing.doubles import FixedClock, SeededEntropy
from lakesplice.testing.shop import Event
from lakesplice.testing.simulation import SimulatedDriver, SimulatedTopic
from tests.support.simulated import rows_of

TOPIC = "maxwell.shop.items"
COLUMNS = {"id": "int", "name": "string", "stock": "int", "notes": "text"}
APPLY = SchemaPolicy(partial_images=PartialImages.APPLY)
Row = dict[str, Any]


def event(kind: str, position: int, data: Row, old: Row | None = None) -> Event:
    """Maxwell's event at a place of the binlog; of a row image `data` has what was in it."""
    value = {
        "database": "shop",
        "table": "items",
        "type": kind,
        "ts": 1_000 + position,
        "xid": position,
        "xoffset": 0,
        "position": f"binlog.000001:{position}",
        "primary_key_columns": ["id"],
        "data": data,
    }
    if old is not None:
        value["old"] = old
    key = {"database": "shop", "table": "items", "pk.id": data["id"]}
    spelt = [json.dumps(part, separators=(",", ":")).encode() for part in (key, value)]
    return Event(TOPIC, spelt[0], spelt[1], (), 1_000 + position)


def row(id_: int, **values: object) -> Row:
    return {"id": id_, "name": f"item {id_}", "stock": id_, "notes": "long text", **values}


class Life:
    """A topic of some partitions and its driver."""

    def __init__(
        self,
        lake: LocalStore,
        policy: SchemaPolicy = APPLY,
        partitions: int = 2,
        columns: Mapping[str, str] = COLUMNS,
    ) -> None:
        self.topic = SimulatedTopic(TOPIC, partitions)
        self.lake, self.store = lake, lake.within("shop/items")
        self.drive(policy, columns=columns)

    def drive(
        self,
        policy: SchemaPolicy = APPLY,
        generation: int = 1,
        columns: Mapping[str, str] = COLUMNS,
    ) -> None:
        self.driver = SimulatedDriver(
            self.lake,
            self.topic,
            FixedClock(),
            SeededEntropy(generation),
            ranges=2,
            read_tasks=2,
            declared=declare(columns),
            policy=policy,
            generation=generation,
        )

    def take(self, *events: Event, partition: int = 0) -> None:
        self.topic.append(partition, events)
        self.driver.batch()

    @property
    def rows(self) -> list[Row]:
        return rows_of(self.store)

    def require(self, *rows: Row) -> None:
        """Both ways to read, before and after compaction, show these rows; the index is sound."""
        assert self.driver.table.parked is None
        assert self.rows == [*rows]
        self.driver.compact()
        assert self.rows == [*rows]
        assert rows_of(self.store, View.READ_OPTIMISED) == [*rows]
        assert check(self.store, Table(self.store).snapshot).sound

    @property
    def letters(self) -> list[tuple[str, int]]:
        found = dead_letters_of(self.store, self.driver.table.manifest.dead_letters)
        return [(letter.reason, letter.offset) for letter in found]
