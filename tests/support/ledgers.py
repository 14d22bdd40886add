"""A small table of a simulated source, a source to each scenario that shares a broker."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pyarrow as pa

from lakesplice.testing.oracle import Record
from lakesplice.testing.shop import Database, Event, TableSpec
from lakesplice.testing.shop.columns import bigint, datetime_millis, decimal, integer, varchar
from tests.support.simulated import truncate_at
from tests.support.topics import Sender

PARTITIONS = 3
COLUMNS = (
    bigint("id", optional=False),
    varchar("text"),
    integer("amount"),
    decimal("price", 10, 4),
    datetime_millis("at"),
)


def ledger(name: str = "ledger") -> TableSpec:
    """A table with a key and columns of some types."""
    return TableSpec(name, COLUMNS, ("id",))


class Ledger:
    """The table `<name>.ledger` with its topic `<server>.<name>.ledger`, in events with schemas or
    without.
    """

    def __init__(self, server: str, name: str, *, with_schemas: bool = True) -> None:
        self._database = Database(
            [ledger()], server=server, database=name, with_schemas=with_schemas
        )

    @property
    def topic(self) -> str:
        """The table's topic."""
        return self._database.topic("ledger")

    @property
    def truth(self) -> pa.Table:
        """The table as it stands after the events handed out."""
        return self._database.truth("ledger")

    def insert(self, start: int, stop: int) -> list[Event]:
        """Insert the keys of the range, in one statement."""
        rows = [(key, f"row {key}", key, key * 10_000, key * 1_000) for key in range(start, stop)]
        self._database.insert("ledger", rows)
        return self._database.drain()

    def snapshot(self) -> list[Event]:
        """Read all rows, as a connector does that takes a snapshot."""
        return self._database.snapshot()

    def update(self, keys: Iterable[int], text: str) -> list[Event]:
        """Update the rows' text, each in a statement of its own."""
        for key in keys:
            self._database.update("ledger", [(key,)], lambda row: (row[0], text, *row[2:]))
        return self._database.drain()

    def delete(self, keys: Iterable[int]) -> list[Event]:
        """Delete the rows, with their tombstones."""
        self._database.delete("ledger", [(key,) for key in keys])
        return self._database.drain()

    def truncate(self, keys: Iterable[int]) -> Event:
        """Delete all rows, whose keys are given, at once; the event that tells of it."""
        event = self.delete(keys)[0]
        return truncate_at(event)


def send(sender: Sender, events: Iterable[Event]) -> list[Record]:
    """Send events as a connector does: a key's to one partition."""
    return sender.send_all(
        (event.topic, partition_of(event), event.key, event.value) for event in events
    )


def partition_of(event: Event) -> int:
    """The partition of the event's key."""
    assert event.key is not None
    return zlib.crc32(event.key) % PARTITIONS
